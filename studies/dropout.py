"""How much dropout? The course's translator with none to a fifth, judged by the validation split (notebook 13).

`python -m studies.dropout` trains each with every seed, with half of the passes of the course's
recipe and with all, and writes data/dropout.json after each run; what the file already has is not run again. The rate
with the lowest validation loss, smoothed as in training, is the course's: `translators.SIZES["dropout"]`. No test split
is looked at here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

from transformer_lib._streams import run_command
from transformer_lib.course.lab import translators
from transformer_lib.course.lab.dropout import RESULTS, load_results
from transformer_lib.data.corpora import Corpus, load_corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.fast.eligibility import fastest_path

from . import stored

RATES = (0.0, 0.1, 0.2)
PASSES = (2, 4)
TRAIN_EVERY = 20  # every twentieth training pair is read again at the end, without dropout


def run_rate(corpus: Corpus, rate: float, seed: int, **options: Any) -> dict[str, Any]:
    """Train one translator and return its losses in nats per token, and the share of validation pairs exactly right."""
    translator = translators.new_translator(corpus["train"], seed=seed, dropout=rate)
    validation = translators.Watched(translator, corpus["validation"])
    train = translators.Watched(translator, corpus["train"][::TRAIN_EVERY])
    translators.train_translator(
        translator, corpus["train"], seed=seed, progress=False, on_step=validation.look, **options
    )
    translate = functools.partial(translator.translate, path=fastest_path(translator.model))
    right = exact_matches(translate([pair.src for pair in corpus["validation"]]), corpus["validation"])
    smoothing = translators.TRAINING["label_smoothing"]
    return {
        "seed": seed,
        "curve": validation.curve,
        "validation": round(validation.loss(label_smoothing=smoothing), 4),
        "training": round(train.loss(label_smoothing=smoothing), 4),
        "validation, not smoothed": round(validation.loss(), 4),
        "exact match": round(mean(map(float, right)), 4),
    }


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict[str, Any]:
    """Run what `path` does not have yet, and write it after each run."""
    corpus, content = load_corpus("context"), load_results(path) if path.exists() else {"runs": {}}
    content |= {"command": stored.command("dropout", seeds), "date": date.today().isoformat(), "seeds": list(seeds)}
    for passes, rate, seed in itertools.product(PASSES, RATES, seeds):
        found = content["runs"].setdefault(f"{passes} passes", {}).setdefault(f"{rate:g}", [])
        if seed not in [one["seed"] for one in found]:
            found.append(run_rate(corpus, rate, seed, epochs=passes))
            stored.save(path, content)
            print(passes, rate, seed, {name: found[-1][name] for name in ("validation", "exact match")}, flush=True)
    return content


def chosen(content: dict[str, Any]) -> float:
    """Return the rate with the lowest validation loss after the course's number of passes, as the mean of the seeds."""
    runs = content["runs"][f"{translators.TRAINING['epochs']} passes"]
    return float(min(runs, key=lambda rate: mean(one["validation"] for one in runs[rate])))


def main() -> None:
    """Run the command line."""
    run(*stored.arguments(__doc__, RESULTS))


if __name__ == "__main__":
    run_command(main)
