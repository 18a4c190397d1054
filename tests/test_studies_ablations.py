"""The ablation study: its variants, a short run that must repeat the stored one, and what is stored."""

from __future__ import annotations

import pytest
import torch

from read_once import CORPUS
from studies import ablations as study
from transformer_lib.course.lab import ablations as study_lab
from transformer_lib.data.corpora import Corpus
from transformer_lib.decoding.translator import load_trained

STRETCHED = {  # weights that are made larger or smaller, for what is no longer multiplied
    "no scaling, small queries": ("w_q",),
    "no embedding scale, unit tables": ("src_embedding", "tgt_embedding"),
}


STORED = study_lab.load_results()


@pytest.fixture
def tiny() -> Corpus:
    few = CORPUS["train"][:64]
    return Corpus("context", {"train": few, "heldout": few[:9], "compositional": few[9:23]})


def test_variants_begin_with_the_baselines_weights(tiny):
    baseline = study.new_variant(tiny, "baseline", 5).model.state_dict()
    for name in study.VARIANTS:
        for key, value in study.new_variant(tiny, name, 5).model.state_dict().items():
            if not any(part in key for part in STRETCHED.get(name, ())):
                assert torch.equal(value, baseline[key]), (name, key)


def test_controls_change_the_size_of_weights_so_that_the_model_begins_as_the_baseline(tiny):
    src, tgt = next(iter(study.new_variant(tiny, "baseline", 5).batches(tiny["train"][:5], 5)))
    wanted = study.new_variant(tiny, "baseline", 5).model(src, tgt[:, :-1])
    for name in STRETCHED:
        found = study.new_variant(tiny, name, 5).model(src, tgt[:, :-1])
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    for name in ("no scaling", "no embedding scale", "no feed-forward"):
        assert (study.new_variant(tiny, name, 5).model(src, tgt[:, :-1]) - wanted).abs().max() > 0.01


def test_label_smoothing_is_off_in_its_arm(tiny):
    losses = {
        name: study.train_variant(
            study.new_variant(tiny, name, 5), name, tiny["train"], 5, epochs=1, warmup_steps=2
        ).loss
        for name in ("baseline", "no label smoothing")
    }
    assert losses["baseline"][0] != losses["no label smoothing"][0]


def test_the_teacher_forced_loss_is_the_mean_surprise_per_token(tiny):
    translator = study.new_variant(tiny, "baseline", 3)
    log_probs = translator.log_probabilities([p.src for p in tiny["heldout"]], [p.tgt for p in tiny["heldout"]])
    assert study.teacher_forced_loss(translator, tiny["heldout"]) == pytest.approx(
        -log_probs[log_probs != 0].mean().item(), abs=1e-5
    )


def test_greedy_is_the_translators():
    translator, texts = load_trained(), [pair.src for pair in CORPUS["heldout"][:7]]
    assert study.greedy(translator, texts) == translator.translate(texts)


def test_taking_nothing_out_scores_as_the_run_itself():
    for run, entry in zip(STORED["trained"]["baseline"], STORED["off at test"]["baseline"], strict=True):
        assert entry["scores"]["nothing"] == entry["scores"]["causal mask, cache kept"] == run["scores"]
