"""What do hiding and replacing rows of the memory show, in the course's translator and in four others (notebook 11)?

The four are trained with the course's recipe, from other seeds; that takes about ten minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer_lib.course.lab import alignments
from transformer_lib.course.lab import hiding as lab
from transformer_lib.data import metrics
from transformer_lib.data.corpora import load_corpus
from transformer_lib.decoding.translator import Translator

from .engine import Steps, Study, rounded
from .translators import each_training

PAIRS = 500  # held-out sentences: how many are translated, and are looked at for alignments


def measure(translator: Translator) -> dict[str, Any]:
    """Return all that is stored about one translator."""
    heldout = load_corpus("context")["heldout"]
    some = heldout[:PAIRS]
    exact = metrics.exact_matches(translator.translate([pair.src for pair in some]), some)
    found = {kind: shares[:, -1] for kind, shares in alignments.shares(translator, some).items()}
    return {
        "exact match": round(sum(exact) / len(exact), 4),
        **lab.measure(translator),
        "aligned": rounded(found),  # {kind: [layer 1, layer 2]}, mean over the heads
        "pronouns": alignments.pronoun_counts(translator, heldout),
    }


def steps(seeds: Sequence[int]) -> Steps:
    """Measure the course's translator, and those of the seeds."""
    return each_training(measure, seeds)


STUDY = Study("hiding", __doc__, steps, seeds=(1, 2, 3, 4), by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
