"""Training in several processes: how long a step takes, what is exchanged, and what sharding saves (docs/scale.md).

    python -m studies.processes

starts groups of one, two and four processes on this machine, which take about six minutes, and writes
data/processes.json and the tables of docs/scale.md; with --tables it only writes the tables again.

What is exchanged is counted where it passes: gloo sends it through the machine's loopback interface, and Linux counts
the bytes there, those of other programs and of the protocol included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from transformer_lib._files import DATA, write_atomically
from transformer_lib._machine import processor
from transformer_lib._streams import run_command
from transformer_lib.baselines import count_parameters
from transformer_lib.costs import transformer_cost
from transformer_lib.course.lab import stored
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer
from transformer_lib.training import distributed
from transformer_lib.training.gradients import count_targets
from transformer_lib.training.loop import train
from transformer_lib.training.loss import TrainingLoss

from .engine import save
from .pages import ROOT, write_between
from .speed import table

RESULTS = DATA / "processes.json"
ALONE, TWO_THREADS = "alone, one thread", "alone, two threads"
WHOLE, SHARDED = "whole", "sharded"
GROUPS = ((ALONE, 1, 1, WHOLE), (TWO_THREADS, 1, 2, WHOLE)) + tuple(
    (f"{n} processes, {way}", n, 1, way) for n in (2, 4) for way in (WHOLE, SHARDED)
)  # name, processes, threads of each, way
SENTENCES, LENGTH, WARM, STEPS, ROUNDS = 32, 32, 2, 6, 3
RATE, BETAS, EPS = 1e-4, (0.9, 0.98), 1e-9
BYTES = {"weights": 4, "gradients": 4, "Adam": 8}  # of one parameter, in float32


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what `measure` found, with the command and the date."""
    return stored.read(path)


def new_model() -> Transformer:
    """Return the model that every process starts with, without dropout."""
    torch.manual_seed(0)
    sizes = {"d_model": 256, "n_heads": 8, "n_layers": 3, "d_ff": 1024, "dropout": 0.0, "max_len": LENGTH + 1}
    return Transformer(TransformerConfig(src_vocab_size=8000, tgt_vocab_size=8000, **sizes))


class OneBatch:
    """The same batch again and again, as `train` takes batches."""

    def __init__(self, steps: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.src = torch.randint(3, 8000, (SENTENCES, LENGTH), generator=generator)
        self.tgt = torch.randint(3, 8000, (SENTENCES, LENGTH + 1), generator=generator)
        self.steps = steps

    def __len__(self) -> int:
        return self.steps

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batch `steps` times."""
        yield from [(self.src, self.tgt)] * self.steps


def shard(model: Transformer) -> Transformer:
    """Leave each process its share of every parameter; a layer is put together when it is needed."""
    from torch.distributed.fsdp import fully_shard

    for layer in layers_of(model):
        fully_shard(layer)
    return fully_shard(model)


def layers_of(model: Transformer) -> list[nn.Module]:
    """Return the layers of both stacks."""
    return [*model.encoder.layers, *model.decoder.layers]


class Clock:
    """What process 0 notes after each step: the time, the bytes that have passed, and the loss."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.passed: list[int] = []
        self.losses: list[float] = []

    def __call__(self, step: int, loss: float) -> None:
        """Note the end of a step; `train` calls this."""
        self.seconds.append(time.perf_counter())
        self.passed.append(loopback_bytes())
        self.losses.append(loss)


def train_whole(model: Transformer, steps: int, clock: Clock) -> int:
    """Train as `tl.train` does; return how many numbers this process keeps for parameters."""
    options: dict[str, Any] = {"learning_rate": RATE, "schedule": "constant", "warmup_steps": 1, "clip_norm": None}
    train(model, OneBatch(steps), on_step=clock, progress=False, label_smoothing=0.0, **options)  # type: ignore[arg-type]
    return count_parameters(model)


def train_sharded(model: Transformer, steps: int, clock: Clock) -> int:
    """Take the same steps with `shard`; return how many numbers this process keeps for parameters."""
    shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPS)
    summed, rank, world = TrainingLoss(model), distributed.rank(), distributed.world_size()
    for step, (src, tgt) in enumerate(OneBatch(steps).epoch(0), start=1):
        tokens = count_targets(tgt, model.config.pad_id)
        loss = summed(src[rank::world], tgt[rank::world])
        (loss * world / tokens).backward()  # fully_shard averages over the processes
        optimizer.step()
        optimizer.zero_grad()
        clock(step, distributed.add_up(loss.item()) / tokens)
    return sum(parameter.to_local().numel() for parameter in model.parameters())  # type: ignore[operator]


def loopback_bytes() -> int:
    """Return how many bytes the loopback interface has received so far; 0 where the system does not say."""
    counters = Path("/proc/net/dev")
    lines = counters.read_text(encoding="utf-8").splitlines() if counters.exists() else []
    return next((int(line.split()[1]) for line in lines if line.split()[0] == "lo:"), 0)


def exchange_seconds(numbers: int) -> float:
    """Return the median time in which all processes add up this number of float32 numbers."""
    gradient, taken = torch.ones(numbers), []
    for _ in range(STEPS):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(gradient)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def work(way: str, steps: int) -> dict[str, Any]:
    """Train as one process of the group; return what it measured."""
    model, clock = new_model(), Clock()
    numbers, in_layers = count_parameters(model), sum(map(count_parameters, layers_of(model)))
    local = (train_whole if way == WHOLE else train_sharded)(model, WARM + steps, clock)
    result: dict[str, Any] = {"parameters": numbers, "in_layers": in_layers, "kept": local}
    if distributed.rank() == 0:
        ends, passed = clock.seconds[WARM - 1 :], clock.passed[WARM - 1 :]
        result["seconds"] = statistics.median(b - a for a, b in zip(ends, ends[1:], strict=False))
        result["bytes"] = (passed[-1] - passed[0]) // steps
        result["losses"] = clock.losses
    if distributed.together():
        result["exchange"] = exchange_seconds(numbers)
    return result


def run_group(processes: int, threads: int, way: str, steps: int = STEPS) -> dict[str, Any]:
    """Start a group on this machine, and return what process 0 measured."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "found.json")
        name = "studies.processes"
        command = [sys.executable, "-m", name, "--work", str(file), way, str(steps)]
        distributed.launch(command, processes, environment={"OMP_NUM_THREADS": str(threads)}, timeout=600)
        return stored.read(file)


def measure(rounds: int = ROUNDS) -> dict[str, Any]:
    """Return what all groups measured, one after the other in each round: medians, and the losses, which are the same.

    Raises:
        AssertionError: a group computed other losses than a process alone.
    """
    runs_of: dict[str, list[dict[str, Any]]] = {name: [] for name, *_ in GROUPS}
    for number in range(rounds):
        for name, processes, threads, way in GROUPS[:: -1 if number % 2 else 1]:
            runs_of[name].append(run_group(processes, threads, way))
    wanted = runs_of[ALONE][0]["losses"]
    rows = {}
    for name, runs in runs_of.items():
        apart = max(abs(a - b) for run in runs for a, b in zip(run["losses"], wanted, strict=True))
        assert apart < 1e-4, f"{name} computed other losses, by up to {apart}"
        keys = [key for key in ("seconds", "bytes", "exchange", "kept") if key in runs[0]]
        numbers = {key: statistics.median(run[key] for run in runs) for key in keys}
        faster = [alone["seconds"] / run["seconds"] for alone, run in zip(runs_of[ALONE], runs, strict=True)]
        rows[name] = numbers | {"faster": statistics.median(faster), "apart": apart}
    config = new_model().config
    flops = 3 * 2 * SENTENCES * transformer_cost(config, LENGTH, LENGTH).total
    sizes = {name: runs_of[ALONE][0][name] for name in ("parameters", "in_layers")}
    return sizes | {"flops": flops, "rounds": rounds, "groups": rows}


def sent_by_each(parameters: float, processes: int, way: str) -> float:
    """Return the bytes that each process sends in a step in float32, if they form a ring.

    To add up gradients, a process sends 2 (n − 1) / n of their bytes (Patarasuk and Yuan 2009). Sharded, it sends its
    share of the parameters to the others before the forward and before the backward pass, and parts of the gradients
    afterwards: 3 (n − 1) / n (Rajbhandari et al. 2020).
    """
    times = 2 if way == WHOLE else 3
    return times * (processes - 1) / processes * 4 * parameters


def sent_through_gloo(parameters: float, in_layers: float, processes: int, way: str) -> float:
    """Return the same as `sent_by_each`, for what `shard` does and gloo can.

    The tables outside the layers stay together between the passes, so that the backward pass gathers the layers alone.
    And gloo adds up all gradients everywhere to give each process its part, so that these pass twice.
    """
    if way == WHOLE:
        return sent_by_each(parameters, processes, way)
    return (processes - 1) / processes * 4 * (3 * parameters + in_layers)


def kept_by_each(parameters: float, processes: int, shared: Sequence[str] = ()) -> float:
    """Return the bytes that each process keeps of weights, gradients and Adam's two averages, some of them sharded."""
    return sum(parameters * size / (processes if name in shared else 1) for name, size in BYTES.items())


def tokens_to_balance(flops_per_second: float, bytes_per_second: float, processes: int, way: str) -> float:
    """Return how many tokens a process must have in a step so that computing takes as long as sending.

    A step computes about 6 operations for each parameter and token (Kaplan et al. 2020), so that the size of the model
    cancels.
    """
    return sent_by_each(1.0, processes, way) * flops_per_second / (6 * bytes_per_second)


def described() -> dict[str, Any]:
    """Return what the stored file begins with: how it was made, when, and on what machine."""
    command = "python -m studies.processes"
    machine = {"processor": processor(), "processors": os.cpu_count(), "torch": torch.__version__}
    return {"command": command, "date": date.today().isoformat()} | machine


def report(results: dict[str, Any]) -> str:
    """Return, as Markdown, how fast groups of processes are on this machine, and what they exchange."""
    parameters, rows = results["parameters"], []
    apart = max(row["apart"] for row in results["groups"].values())
    for name, processes, _, way in GROUPS:
        row = results["groups"][name]
        expected = processes * sent_through_gloo(parameters, results["in_layers"], processes, way)
        rows.append(
            [
                name,
                f"{row['seconds'] * 1e3:,.0f}",
                f"**{row['faster']:.2f}**",
                f"{row['kept'] / parameters:.3f}",
                f"{expected / 2**20:.0f}",
                f"{row['bytes'] / 2**20:.0f}",
                f"{row['exchange'] * 1e3:.0f}" if processes > 1 else "",
            ]
        )
    head = ["", "ms a step", "× as fast", "share kept", "MiB computed", "MiB counted"]
    setting = (
        f"Measured on {results['date']} by `{results['command']}`: {results['processor']}, {results['processors']} "
        f"processors, torch {results['torch']}; {results['rounds']} rounds, medians. A step of the model of "
        f"{parameters / 1e6:.1f} million parameters on {SENTENCES} × {LENGTH} tokens in float32, readable path. "
        "Each process has the model whole or sharded, and keeps a share of the parameters. “Computed” is what all "
        "processes of a group send by the formulas above, “counted” what passed through the loopback interface, "
        "and the last column the time in which the group adds up so many numbers when it does nothing else. "
        f"The losses of all groups are those of the first to {apart:.0e}."
    )
    return f"{setting}\n\n{table([*head, 'ms to exchange'], rows)}"


def kept_report() -> str:
    """Return, as Markdown, what a process keeps of models of several sizes, in GiB."""
    ways = [(n, name, shared) for n in (8, 64) for name, shared in (("Adam", ("Adam",)), ("all", tuple(BYTES)))]
    head = ["", "parameters", "alone", *(f"{name} in {n} parts" for n, name, _ in ways)]
    rows = []
    for name, parameters in MODELS.items():
        sizes = [kept_by_each(parameters, 1), *(kept_by_each(parameters, n, shared) for n, _, shared in ways)]
        shown = (f"{size / 2**30:,.0f}" if size >= 10 * 2**30 else f"{size / 2**30:.2f}" for size in sizes)
        rows.append([name, f"{parameters / 1e6:,.0f} M", *shown])
    what = "GiB of weights, gradients and Adam's two averages in each process, in float32"
    return f"{what} (base and big: Vaswani et al. 2017):\n\n{table(head, rows)}"


def balance_report(results: dict[str, Any]) -> str:
    """Return, as Markdown, how many tokens keep a process busy for as long as it sends."""
    own = results["flops"] / results["groups"][ALONE]["seconds"]
    pair = results["groups"][f"2 processes, {WHOLE}"]
    through = sent_by_each(results["parameters"], 2, WHOLE) / pair["exchange"]
    places = {
        "a core of this machine, loopback": (own, through),
        "a core of this machine, Ethernet of 1 Gbit/s": (own, 1e9 / 8),
        "a GPU of 4 · 10¹⁴ operations a second, 400 Gbit/s": (4e14, 400e9 / 8),
        "the same GPU, Ethernet of 10 Gbit/s": (4e14, 10e9 / 8),
    }
    head = ["8 processes", "operations a second", "bytes a second", "tokens, whole", "tokens, sharded"]
    rows = []
    for name, (rate, link) in places.items():
        tokens = [tokens_to_balance(rate, link, 8, way) for way in (WHOLE, SHARDED)]
        rows.append([name, f"{rate:.1e}", f"{link:.1e}", *(f"{number:,.0f}" for number in tokens)])
    return table(head, rows)


def paper_parameters(d_model: int, n_heads: int, d_ff: int) -> int:
    """Return the parameters of a model of Vaswani et al. (2017): six layers, one table of 37,000 subwords."""
    sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": 6, "d_ff": d_ff}
    with torch.device("meta"):
        config = TransformerConfig(src_vocab_size=37_000, tgt_vocab_size=37_000, tie_embeddings=True, **sizes)
        return count_parameters(Transformer(config))


MODELS = {
    "base": paper_parameters(512, 8, 2048),
    "big": paper_parameters(1024, 16, 4096),
    "7 billion": 7e9,
    "70 billion": 70e9,
}


def write_pages(results: dict[str, Any], root: Path = ROOT) -> None:
    """Write the tables into docs/scale.md."""
    page = root / "docs" / "scale.md"
    write_between(page, "processes", report(results))
    write_between(page, "kept", kept_report())
    write_between(page, "balance", balance_report(results))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line, or one process of a group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--tables", action="store_true", help="only write the tables of docs/scale.md")
    parser.add_argument("--work", nargs=3, metavar=("FILE", "WAY", "STEPS"), help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.work:
        file, way, steps = given.work
        with distributed.process_group():
            result = work(way, int(steps))
            if distributed.rank() == 0:
                write_atomically(Path(file), json.dumps(result).encode("utf-8"))
        return
    if not given.tables:
        save(given.results, described() | measure(given.rounds), indent=1)
    if given.results == RESULTS:
        write_pages(load_results())
    print(report(stored.read(given.results)))


if __name__ == "__main__":
    run_command(main)
