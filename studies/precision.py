"""Does training in bfloat16 cost quality? The course's recipe with `precision="bfloat16"`; float32 is in results.json.

Also writes a sentence of docs/speed.md. On a processor without units for bfloat16 it takes several times as long as in
float32: there, 16 bits are an exercise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev

import torch

from transformer_lib._files import DATA
from transformer_lib.course.lab.translators import TEST_SPLITS, load_results
from transformer_lib.data.corpora import load_corpus

from .engine import Study, at_once
from .pages import ROOT, write_between
from .translators import run_seed, short_run

RESULTS = DATA / "precision.json"
METRIC = "exact match"


def measure(seeds: Sequence[int]) -> dict:
    """Return the scores of the Transformer trained in bfloat16 with each seed, and a short run's losses."""
    corpus, runs = load_corpus("context"), []
    for seed in seeds:
        runs.append(run_seed(corpus, "transformer", seed, precision="bfloat16")[1])
        print(seed, {split: runs[-1]["scores"][split][METRIC][0] for split in TEST_SPLITS}, flush=True)
    short = short_run(corpus, "transformer", precision="bfloat16")
    return {"threads": torch.get_num_threads(), "short": short, "bfloat16": runs}


def compared(results: dict) -> dict[str, dict[str, list[float]]]:
    """Return {precision: {split: exact match of each seed}} of both precisions."""
    runs = {"float32": load_results()["transformer"], "bfloat16": results["bfloat16"]}
    return {
        name: {split: [run["scores"][split][METRIC][0] for run in of] for split in TEST_SPLITS}
        for name, of in runs.items()
    }


def differences(results: dict) -> dict[str, tuple[float, float]]:
    """Return {split: (mean of bfloat16 − float32, seed by seed, and two standard errors of it)}."""
    table = compared(results)
    changes = {
        split: [low - full for low, full in zip(table["bfloat16"][split], table["float32"][split], strict=True)]
        for split in TEST_SPLITS
    }
    return {split: (mean(of), 2 * stdev(of) / math.sqrt(len(of))) for split, of in changes.items()}


def sentence(results: dict) -> str:
    """Return the comparison in words."""
    means = {
        name: _listed(f"{mean(scores):.3f}" for scores in splits.values()) for name, splits in compared(results).items()
    }
    changes = _listed(f"{change:+.3f} ± {noise:.3f}" for change, noise in differences(results).values())
    return (
        f"Over seeds {_listed(map(str, results['seeds']))}, the course's translator gets {means['float32']} of the "
        f"sentences of {_listed(TEST_SPLITS)} exactly right when trained in float32, and {means['bfloat16']} when "
        f"trained in bfloat16: changes of {changes} (two standard errors, from the changes of the seeds)."
    ).replace("-", "−")


def write_pages(results: dict, root: Path = ROOT) -> None:
    """Write the sentence into docs/speed.md."""
    write_between(root / "docs" / "speed.md", "precision", sentence(results))


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}"


STUDY = Study("precision", __doc__, at_once(measure), write_pages=write_pages, indent=1)


if __name__ == "__main__":
    STUDY.command()
