"""What does a model learn that is trained without the causal mask? (notebook 07)

A small writer and the translator of rung 07; the translator with the mask is the ladder's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.lab import ladder
from transformer_lib.course.lab import peeking as lab
from transformer_lib.data.corpora import Corpus, load_corpus
from transformer_lib.decoding.translator import Translator
from transformer_lib.model.masks import padding_mask

from . import ladder as ladder_study
from .engine import Step, Steps, Study, rounded
from .ladder_models import Reader

PASSES = (2, 4)  # of a translator over the corpus
BUDGETS = (250, 1250)  # steps; the notebook trains for 400
RATES = (2e-3, 5e-3, 1e-2)
SAMPLES = 3  # translations that are kept of each translator


def measure(model: lab.Writer) -> dict[str, Any]:
    """Return what `judge`, `after`, `reading_the_same` and `with_full_window` find, and each row's loss in one pass.

    The lists "at the end" and "from the start" are for 1, 2, … visible words: the last one is at the last position, or
    the first one at position 0.
    """
    inputs, labels = lab.test_sentences()
    in_training, alone, written = lab.judge(model)
    single = {"training": in_training, "honest": alone, "written": written, "full window": lab.with_full_window(model)}
    visible = range(1, lab.INPUTS + 1)
    curves = {
        "by position": lab.losses(model(inputs), labels),
        "the same reading": lab.reading_the_same(model),
        "at the end": [lab.after(model, n_words, lab.INPUTS - 1) for n_words in visible],
        "from the start": [lab.after(model, n_words, n_words - 1) for n_words in visible],
    }
    return rounded({**single, **curves})


class Peeker(Reader):
    """The translator of rung 07 without its causal mask: target words read all others, only padding is hidden."""

    def _readable(self, x: Tensor, memory: Tensor, tgt_in: Tensor, src: Tensor) -> tuple[Tensor, Tensor]:
        masks = [padding_mask(ids, self.config.pad_id) for ids in (src, tgt_in)]
        return torch.cat((memory, x), dim=1), torch.cat(masks, dim=-1).expand(-1, -1, tgt_in.shape[1], -1)


def new_peeker(corpus: Corpus, seed: int) -> Translator:
    """Return the untrained translator of rung 07 with this seed, but without the mask."""
    rung = ladder_study.new_translator(corpus, "07", seed)
    model = Peeker(rung.model.config, ladder.find("07").parts or ())
    model.load_state_dict(rung.model.state_dict())
    return Translator(model, rung.src_tokenizer, rung.tgt_tokenizer)


def run_peeker(corpus: Corpus, seed: int, passes: Sequence[int] = PASSES) -> dict[str, Any]:
    """Train the translator without the mask as rung 07 is trained; return its scores after each budget and samples."""
    translator, scores = new_peeker(corpus, seed), {}
    pairs = corpus["validation"]

    def look(done: int) -> None:
        if done in passes:
            scores[str(done)] = ladder_study.measure(translator, pairs)

    rate = ladder_study.chosen_rate(ladder.load_results(), "07")
    ladder_study.climb(translator, "07", corpus["train"], seed, epochs=passes[-1], learning_rate=rate, on_epoch=look)
    said = translator.translate([pair.src for pair in pairs[:SAMPLES]])
    samples = [[pair.src, pair.tgt, text] for pair, text in zip(pairs[:SAMPLES], said, strict=True)]
    return {"seed": seed, "rate": rate, "scores": scores, "samples": samples}


def run(**setup: Any) -> dict[str, Any]:
    """Train one writer, and return what `measure` finds."""
    return measure(lab.train(**setup))


def steps(seeds: Sequence[int]) -> Steps:
    """Train writers with the mask and without it; without it also on cut sentences, or without the last row's loss.

    Then translators without the mask.
    """
    kinds = ((True, False, True), (False, False, True), (False, True, True), (False, False, False))
    for (masked, cut, last_row), rate, budget, seed in itertools.product(kinds, RATES, BUDGETS, seeds):
        setup = {"masked": masked, "cut": cut, "last_row": last_row, "seed": seed, "rate": rate, "steps": budget}
        yield Step(("writers", setup), partial(run, **setup))
    corpus = load_corpus("context")
    for seed in seeds:
        yield Step(("translators", {"seed": seed}), run_peeker, corpus, seed)


STUDY = Study("peeking", __doc__, steps, by_seed=True)


if __name__ == "__main__":
    STUDY.command()
