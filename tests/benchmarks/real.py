"""A real language model: tokens a second of each way to run it, and what reading its weights would allow."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from importlib import util
from pathlib import Path

import torch
from torch import Tensor, nn

import transformer_lib as tl
from studies.speed import OURS, REAL_PEER
from transformer_lib.fast.modern_stepper import ModernStepper
from transformer_lib.fast.modern_weights import ModernWeights
from transformer_lib.fast.products import has_int8

from .measure import interleaved, spread, timed, times_faster
from .run import machine

BATCHES = (1, 8)
FAST, READABLE, INT8 = f"{OURS}, fast path", f"{OURS}, readable path", f"{OURS}, fast path, int8"
LLAMA = "llama.cpp, the file's own bits"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
NAMES = (*(f"{way}, {name}" for name in DTYPES for way in (REAL_PEER, READABLE, FAST)), INT8, LLAMA)
READ = 2**29  # bytes that are read to see how fast memory is, more than a processor keeps


@dataclass(frozen=True)
class RealWork:
    """What every candidate does: read a prompt, then say words greedily."""

    prompt: int = 128  # tokens
    new_tokens: int = 32  # after the first, which the prompt alone gives
    rounds: int = 7
    threads: int = 2


TRIED = RealWork(prompt=5, new_tokens=3, rounds=2, threads=1)


@dataclass(frozen=True)
class Way:
    """A way to run the model: ids [batch, prompt] and a number -> that many new ids [batch, number]."""

    says: Callable[[Tensor, int], Tensor]
    bytes_read: int  # of weights, for each step
    batches: tuple[int, ...] = BATCHES


def measured(
    folder: Path, work: RealWork, llama: Sequence[Path] | None = None, say: Callable[[str], None] = print
) -> dict:
    """Return, for each number of texts at a time, the rates of each way to run the model in this folder.

    Args:
        folder: in the format of Hugging Face, as `tl.interop.load_hf` and transformers read it.
        llama: the Python of an environment with llama-cpp-python, and the GGUF file for it.
    """
    torch.set_num_threads(work.threads)
    ways, missing = ways_of(folder)
    if llama is None:
        missing[LLAMA] = "needs --llama"
    else:
        ways[LLAMA] = Way(partial(llama_says, llama_worker(*llama), work.threads), llama[1].stat().st_size, (1,))
    parts = {}
    for batch in BATCHES:
        say(f"{batch} at a time …")
        parts[str(batch)] = _rows({name: way for name, way in ways.items() if batch in way.batches}, batch, work)
    return {
        "command": f'make bench BENCH="--real FOLDER{" --llama PYTHON FILE" if llama else ""}"',
        "date": date.today().isoformat(),
        "machine": machine() | {"load": round(os.getloadavg()[0], 1), "gigabytes_a_second": memory_speed(work.rounds)},
        "work": asdict(work),
        "decoding": parts,
        "missing": missing,
    }


def ways_of(folder: Path) -> tuple[dict[str, Way], dict[str, str]]:
    """Return the ways to run the model by name, and why others are missing."""
    ways, missing = {}, {}
    for name, dtype in DTYPES.items():
        model = tl.interop.load_hf(folder).to(dtype).eval().requires_grad_(False)
        size = matrices(model) * dtype.itemsize
        if util.find_spec("transformers") is None:
            missing[f"{REAL_PEER}, {name}"] = "transformers is not installed"
        else:
            ways[f"{REAL_PEER}, {name}"] = Way(partial(generated, peer(folder, dtype)), size)
        ways[f"{READABLE}, {name}"] = Way(partial(read, model), size)
        ways[f"{FAST}, {name}"] = Way(partial(stepped, ModernWeights(model)), size)
        if name == "float32" and has_int8():
            ways[INT8] = Way(partial(stepped, ModernWeights(model, weights="int8")), matrices(model))
    if not has_int8():
        missing[INT8] = "no products in eight bits here"
    return ways, missing


def matrices(model: nn.Module) -> int:
    """Return the number of weights that a step reads."""
    return sum(part.weight.numel() for part in model.modules() if isinstance(part, nn.Linear))


def peer(folder: Path, dtype: torch.dtype) -> nn.Module:
    """Return the model as transformers loads it."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True).eval()
    model.generation_config.eos_token_id = None  # so that everyone says as many words
    return model


def generated(model: nn.Module, ids: Tensor, new_tokens: int) -> Tensor:
    """Say words with `generate` of transformers."""
    options = {"max_new_tokens": new_tokens, "do_sample": False, "pad_token_id": 0}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **options)[:, ids.shape[1] :]


@torch.no_grad()
def read(model: nn.Module, ids: Tensor, new_tokens: int) -> Tensor:
    """Say words with the model's own code and its cache."""
    cache = model.new_cache()
    return _said(lambda words: model(words, cache)[:, -1], ids, new_tokens)


def stepped(weights: ModernWeights, ids: Tensor, new_tokens: int) -> Tensor:
    """Say words by the fast path."""
    stepper = ModernStepper(weights, len(ids), ids.shape[1] + new_tokens)
    return _said(stepper.next_logits, ids, new_tokens)


def llama_worker(python: Path, file: Path) -> subprocess.Popen[str]:
    """Start llama.cpp in its own environment. It ends with this process, whose end closes its input."""
    command = [str(python), str(Path(__file__).with_name("llama.py")), str(file)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def llama_says(worker: subprocess.Popen[str], threads: int, ids: Tensor, new_tokens: int) -> Tensor:
    """Say words with llama.cpp, one text at a time."""
    assert worker.stdin is not None and worker.stdout is not None
    print(json.dumps([ids[0].tolist(), new_tokens, threads]), file=worker.stdin, flush=True)
    answer = worker.stdout.readline()
    if not answer:
        raise RuntimeError("llama.cpp ended without an answer; what it said stands above")
    return torch.tensor([json.loads(answer)])


def _said(logits: Callable[[Tensor], Tensor], words: Tensor, new_tokens: int) -> Tensor:
    said = []
    for _ in range(new_tokens):
        words = logits(words).argmax(-1, keepdim=True)  # [batch, 1]
        said.append(words)
    return torch.cat(said, dim=1)


def _rows(ways: dict[str, Way], batch: int, work: RealWork) -> list[dict]:
    vocabulary = 256  # of every model that there is
    ids = torch.randint(vocabulary, (batch, work.prompt), generator=torch.Generator().manual_seed(0))
    clocks = {name: (_seconds(way, ids, 1), _seconds(way, ids, 1 + work.new_tokens)) for name, way in ways.items()}
    said = {name: way.says(ids, 1 + work.new_tokens) for name, way in ways.items()}  # and everything is warm
    taken = interleaved(
        {(name, i): clock for name, pair in clocks.items() for i, clock in enumerate(pair)}, work.rounds
    )
    steps = {name: [b - a for a, b in zip(taken[name, 0], taken[name, 1], strict=True)] for name in ways}
    first = next(iter(ways))
    exact = said[f"{READABLE}, float32"]
    return [
        {
            "name": name,
            "tokens_a_second": round(batch * work.new_tokens / statistics.median(steps[name]), 2),
            "ratio": times_faster(steps[first], steps[name]),
            "prompt_seconds": spread(taken[name, 0]),
            "prompt_ratio": times_faster(taken[first, 0], taken[name, 0]),
            "bytes_read": way.bytes_read,
            "same": round((said[name] == exact).float().mean().item(), 3),
        }
        for name, way in ways.items()
    ]


def _seconds(way: Way, ids: Tensor, new_tokens: int) -> Callable[[], float]:
    return lambda: timed(lambda: way.says(ids, new_tokens))


def memory_speed(rounds: int) -> float:
    """Return how fast memory is read, in 10⁹ bytes a second: the fastest of some rounds."""
    numbers = torch.ones(READ // 4)
    return round(READ / min(timed(numbers.sum) for _ in range(rounds)) / 1e9, 1)
