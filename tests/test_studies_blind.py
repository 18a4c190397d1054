"""The study of a translator without a source: its pairs, a short run that repeats the stored one, what is stored."""

from __future__ import annotations

import transformer_lib as tl
from studies import blind as study
from transformer_lib.course.lab import blind as study_lab

STORED = study_lab.load_results()


def test_a_blindfold_hides_the_source_and_nothing_else():
    pairs = tl.load_corpus("context")["validation"][:7]
    hidden = study.blindfold(pairs)
    assert {pair.src for pair in hidden} == {"."} and [pair.tgt for pair in hidden] == [pair.tgt for pair in pairs]


def test_without_the_source_the_loss_stays_high():
    for blind, sighted in zip(STORED["without the source"], study_lab.sighted(STORED), strict=True):
        assert len(blind) == len(sighted) == len(study.PASSES)
        assert blind[-1] < blind[0] and max(sighted) < 0.2 < 1 < min(blind)
