"""How does a model learn to count in its context? Markov chains, a new one in each sequence (notebook 21).

The task is that of Edelman et al. (2024). `python -m transformer_lib.course.studies.chains` trains one layer and two
and writes data/chains.json after each run: how far the model is from three predictors, all along the training.
What the file already has is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ..._streams import run_command
from ..._validate import check_ids
from ...model.circuits import AttentionOnly
from . import stored
from .descending import Watch, descend

RESULTS = DATA / "chains.json"
STATES, LENGTH = 3, 64
D_MODEL, BATCH_SIZE, WARMUP = 32, 64, 20
RATE = 3e-3
RATES = (1e-3, 3e-3, 1e-2)  # what one layer is given to choose from
STEPS = (1500, 4500)
TESTED, TEST_SEED = 256, 99
SHORT = 12  # steps of a run that a test repeats
PREDICTORS: dict[str, Callable[[Tensor, int], Tensor]]


@dataclass(frozen=True)
class Setup:
    """One run: the layers, with one head each, the steps, the peak rate, and the seed of weights and chains."""

    n_layers: int
    steps: int
    rate: float
    seed: int


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order: the shorter budget, the longer one, the other rates."""
    found = [Setup(n, STEPS[0], RATE, seed) for seed in seeds for n in (2, 1)]
    found += [Setup(n, STEPS[1], RATE, seeds[0]) for n in (2, 1)]
    return found + [Setup(1, STEPS[0], rate, seeds[0]) for rate in RATES if rate != RATE]


def measured_at(steps: int) -> list[int]:
    """Return after how many steps a run is measured: often at first, then at every sixtieth part of it."""
    return sorted({*range(0, 50, 5), *range(50, 200, 10), *range(200, steps, steps // 60), steps})


def batch(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return chains [size, LENGTH], and the matrix [size, STATES, STATES] that each was drawn with.

    Each row of a matrix is drawn evenly from all distributions (a flat Dirichlet distribution); so is no first state
    likelier than another.
    """
    spaces = -torch.rand(size, STATES, STATES, generator=generator).clamp(min=1e-12).log()
    matrices = spaces / spaces.sum(dim=-1, keepdim=True)
    states = [torch.randint(STATES, (size,), generator=generator)]
    edges, drawn = matrices.cumsum(dim=-1)[..., :-1], torch.rand(LENGTH - 1, size, 1, generator=generator)
    for each in drawn:
        states.append((each > edges[torch.arange(size), states[-1]]).sum(dim=-1))
    return torch.stack(states, dim=1), matrices


def uniform(ids: Tensor, vocab_size: int) -> Tensor:
    """Return 1 / vocab_size for each state, [batch, seq_len, vocab_size]."""
    return torch.full((*ids.shape, vocab_size), 1 / vocab_size)


def unigram(ids: Tensor, vocab_size: int) -> Tensor:
    """Return how often each state came so far, one added to each count, as probabilities of the next state.

    Args:
        ids: [batch, seq_len].

    Returns:
        [batch, seq_len, vocab_size]; row t has counted the states up to t.
    """
    check_ids("ids", ids, vocab_size)
    return _shares(F.one_hot(ids, vocab_size).cumsum(dim=1))


def bigram(ids: Tensor, vocab_size: int) -> Tensor:
    """Return how often each state followed the present one so far, one added to each count, as probabilities.

    For chains whose rows are drawn from a flat Dirichlet distribution no predictor is better. Where the present state
    came for the first time, it is uniform.

    Args:
        ids: [batch, seq_len].

    Returns:
        [batch, seq_len, vocab_size]; row t has counted the pairs up to (t − 1, t).
    """
    check_ids("ids", ids, vocab_size)
    one_hot = F.one_hot(ids, vocab_size)
    pairs = F.pad((one_hot[:, :-1, :, None] * one_hot[:, 1:, None, :]).cumsum(dim=1), (0, 0, 0, 0, 1, 0))
    index = ids[..., None, None].expand(*ids.shape, 1, vocab_size)
    return _shares(pairs.gather(2, index)[:, :, 0])


def _shares(counts: Tensor) -> Tensor:
    return (counts + 1) / (counts + 1).sum(dim=-1, keepdim=True)


PREDICTORS = {"uniform": uniform, "unigram": unigram, "bigram": bigram}


def new_model(n_layers: int, seed: int, n_heads: int = 1) -> AttentionOnly:
    """Return an untrained model with learned positions."""
    torch.manual_seed(seed)
    return AttentionOnly(STATES, n_layers, D_MODEL, n_heads, max_len=LENGTH)


def next_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the mean loss of the next state, a scalar: logits [batch, seq_len, STATES], ids [batch, seq_len]."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def fit(
    model: nn.Module,
    steps: int,
    seed: int = 0,
    rate: float = RATE,
    *,
    watch: Watch | None = None,
) -> list[float]:
    """Train a model by Adam, with warm-up and a cosine to zero; return the loss of each step.

    Args:
        model: ids [batch, LENGTH] -> logits [batch, LENGTH, STATES]. rate: the peak.
        watch: called with the number of steps done, from 0, and the model, before each step and after the last.
    """
    generator = torch.Generator().manual_seed(seed)

    def loss_of() -> Tensor:
        ids, _ = batch(BATCH_SIZE, generator)
        return next_loss(model(ids), ids)

    return descend(model, loss_of, steps, rate, WARMUP, watch)


def tested() -> tuple[Tensor, Tensor]:
    """Return the chains that are measured on, [TESTED, LENGTH], and their matrices; always the same."""
    return batch(TESTED, torch.Generator().manual_seed(TEST_SEED))


@torch.no_grad()
def distances(model: nn.Module, ids: Tensor) -> dict[str, float]:
    """Return how far a model is from each predictor: the mean of KL(predictor ‖ model) over all positions, in nats.

    Args:
        ids: [batch, seq_len].
    """
    log_p = model(ids).log_softmax(dim=-1)
    found = {name: predict(ids, STATES) for name, predict in PREDICTORS.items()}
    return {name: (p * (p.log() - log_p)).sum(dim=-1).mean().item() for name, p in found.items()}


def losses_of_predictors() -> dict[str, float]:
    """Return the loss of the next state of each predictor on the tested chains, and of the true matrices."""
    ids, matrices = tested()
    found = {name: predict(ids, STATES) for name, predict in PREDICTORS.items()}
    found["true matrix"] = matrices.gather(1, ids[..., None].expand(*ids.shape, STATES))
    return {name: round(next_loss(p.log(), ids).item(), 4) for name, p in found.items()}


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up; return its last loss on the tested chains and the distances all along."""
    model, (ids, _), at = new_model(setup.n_layers, setup.seed), tested(), measured_at(setup.steps)
    found: dict[str, Any] = {"after": at} | {name: [] for name in PREDICTORS}

    def watch(step: int, model: nn.Module) -> None:
        if step in at:
            for name, distance in distances(model, ids).items():
                found[name].append(round(distance, 4))

    fit(model, setup.steps, setup.seed, setup.rate, watch=watch)
    with torch.no_grad():
        found["loss"] = round(next_loss(model(ids), ids).item(), 4)
    print(setup, found["loss"], *(found[name][-1] for name in PREDICTORS), flush=True)
    return found


def short_run(n_layers: int) -> list[float]:
    """Return the losses of SHORT steps, seed 0: quick to repeat."""
    return [round(loss, 4) for loss in fit(new_model(n_layers, 0), SHORT)]


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict[str, Any]:
    """Run what `path` does not have yet, and write it after each run."""
    content = stored.head("chains", seeds) | {"losses": losses_of_predictors()}
    content["short"] = {str(layers): short_run(layers) for layers in (1, 2)}
    return stored.fill(content, path, setups(seeds), run_setup)


def runs_of(results: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return the stored runs whose set-up has these fields, such as n_layers=2, steps=1500, rate=3e-3."""
    return stored.runs_of(results, **fields)


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote: losses of the predictors, and a record for each set-up with its curves."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    run(*stored.arguments(__doc__, RESULTS))


if __name__ == "__main__":
    run_command(main)
