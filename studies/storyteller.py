"""How do stories sound under greedy decoding, beam search and sampling, with a model that only ever read (notebook 14)?

`python -m studies.storyteller` trains six storytellers, and writes data/storyteller.json and, for seed 0 after the
longer training, the weights data/storyteller.safetensors. It takes about a quarter of an hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from safetensors.torch import save

from transformer_lib._files import write_atomically
from transformer_lib.course.lab import storyteller as lab
from transformer_lib.model import modern

from .engine import Step, Steps, Study, rounded

COMMAND = "python -m studies.storyteller --seeds 0 1 2"
STEPS = (300, 900)
BEAMS = (2, 8)
SAMPLERS: dict[str, dict[str, Any]] = {
    **{f"T = {temperature}": {"temperature": temperature} for temperature in (0.5, 0.7, 1.0, 1.3)},
    "top-k 10": {"top_k": 10},
    "top-p 0.9": {"top_p": 0.9},
}
REPEATS = 6  # how often the loop's sentence is read in a row: as many as fit into a window of the training


@dataclass(frozen=True)
class Training:
    """One storyteller: its steps and its seed."""

    steps: int
    seed: int


def measured(model: modern.LanguageModel, texts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return what is counted in texts that begin with three given words, and how surprising each further token is."""
    logs = [lab.log_probabilities(model, ids)[2:] for ids in texts]
    nats = -sum(row.sum() for row in logs) / sum(len(row) for row in logs)
    return rounded(asdict(lab.counts(texts)) | {"nats": float(nats)})


def written(model: modern.LanguageModel) -> dict[str, list[list[int]]]:
    """Return the texts that each way of decoding writes."""
    starts = lab.starts().tolist()
    beams = {f"{size} beams": [lab.search(model, start, size, lab.NEW) for start in starts] for size in BEAMS}
    sampled = {name: lab.tell(model, lab.starts(), lab.picker(0, **how), lab.NEW) for name, how in SAMPLERS.items()}
    return {"greedy": lab.tell(model, lab.starts(), lab.greedy, lab.NEW)} | beams | sampled


def read() -> list[list[int]]:
    """Return as many held-out texts of the same length."""
    ids, length = lab.text("heldout").tolist(), lab.NEW + 3
    ends = [i + 1 for i, token in enumerate(ids) if lab.words().words[token] in (lab.FULL_STOP, lab.QUESTION)]
    firsts = [next(end for end in ends if end >= 2 * length * text) for text in range(lab.STARTS)]
    return [ids[first : first + length] for first in firsts]


def loop(model: modern.LanguageModel, texts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the last whole sentence of the first greedy text, and its log-probability when read again and again."""
    sentence = lab.sentences(texts[0])[-1]
    ids = lab.words().encode(sentence)
    row = [lab.words().words.index(lab.FULL_STOP), *REPEATS * ids]
    logs = lab.log_probabilities(model, row).view(REPEATS, len(ids)).sum(dim=1)
    return {"sentence": sentence, "again": rounded(logs.tolist())}


def keep(model: modern.LanguageModel) -> None:
    """Store the weights that notebook 14 loads; the output head is the table of words."""
    weights = {name: weight for name, weight in model.state_dict().items() if name != "head.weight"}
    write_atomically(lab.WEIGHTS, save(weights, metadata={"command": COMMAND, "seed": "0"}))


def run_setup(setup: Training) -> dict[str, Any]:
    """Train a storyteller and return what is measured of it; that of notebook 14 is stored."""
    model = lab.train(setup.seed, setup.steps)
    if setup == Training(STEPS[-1], 0):
        keep(model)
    texts = written(model)
    ways = {name: measured(model, each) for name, each in texts.items()}
    return {"corpus": measured(model, read()), "written": ways, "loop": loop(model, texts["greedy"])}


def steps(seeds: Sequence[int]) -> Steps:
    """Train for every budget and with every seed."""
    for budget in STEPS:
        for seed in seeds:
            setup = Training(budget, seed)
            yield Step(("runs", setup), run_setup, setup)


STUDY = Study("storyteller", __doc__, steps, by_seed=True, constants={"texts": lab.STARTS, "tokens": lab.NEW}, indent=1)


if __name__ == "__main__":
    STUDY.command()
