"""The study of one change at a time: its arms, its measures by hand, a short run of each arm, and what is stored."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from studies import masks
from studies import one_change as study
from transformer_lib.course.lab import masks as masks_lab
from transformer_lib.course.lab import one_change as study_lab
from transformer_lib.course.lab import one_stack

STORED = study_lab.load_results()


@torch.no_grad()
def test_the_base_is_the_model_of_notebook_19():
    ids = next(masks_lab.heldout())[:3]
    assert torch.equal(study_lab.new_model("base", 5)(ids), masks.new_model("next word", 5)(ids))
    again = study_lab.new_model("base drawn again", 5)
    assert again.config == study_lab.config("base") and not torch.equal(again(ids), study_lab.new_model("base", 5)(ids))


def test_each_arm_changes_what_it_says():
    base = study_lab.config("base")
    for arm, changes in study_lab.CHANGES.items():
        assert study_lab.config(arm) == replace(base, **changes)
        assert bool(changes) == (arm not in ("base", "base drawn again", *study.SLOW))


def test_sizes_are_comparable():
    size = {arm: sum(p.numel() for p in study_lab.new_model(arm, 0).parameters()) for arm in study_lab.CHANGES}
    biases = 2 * (192 + 96)
    assert size["SwiGLU"] == size["base"] - biases
    assert size["QK-norm"] == size["base"] + 2 * 2 * 24
    assert size["one head of keys"] == size["base"] - 2 * 2 * 72 * 96
    assert size["RMSNorm"] == size["base"] - 5 * 96
    assert size["experts"] == size["dense, total size"] + 2 * 4 * 96  # but for the routers
    experts = study_lab.config("experts")
    assert experts.experts_per_token * experts.d_ff == study_lab.config("SwiGLU").d_ff
    assert experts.n_experts * experts.d_ff == study_lab.config("dense, total size").d_ff


def test_slow_matrices_take_smaller_steps_and_no_others():
    setup = study.Setup("slow W_Q, W_K", 2, 0)
    before = dict(study_lab.new_model("base", 0).named_parameters())
    slow, base = (dict(study.train(one)[0].named_parameters()) for one in (setup, replace(setup, arm="base")))
    step = {name: (slow[name] - before[name]).norm() / (base[name] - before[name]).norm() for name in before}
    for name, ratio in step.items():
        wanted = study.SLOWER if name.endswith(("w_q.weight", "w_k.weight")) else 1.0
        assert ratio.item() == pytest.approx(wanted, rel=0.35), name


def test_a_larger_rate_takes_larger_first_steps():
    before = study_lab.new_model("base", 0).head.weight
    moved = [
        (study.train(study.Setup("base", 1, 0, rate))[0].head.weight - before).norm().item()
        for rate in (1.0, study.LARGE)
    ]
    assert moved[1] == pytest.approx(study.LARGE * moved[0], rel=1e-3)


@torch.no_grad()
def test_nats_are_a_mean_over_words(monkeypatch):
    sentences = [torch.tensor([ids]) for ids in masks_lab.german()[1]["heldout"][:5]]
    model, total, words = study_lab.new_model("base", 0).eval(), 0.0, 0
    for ids in sentences:
        total += F.cross_entropy(model(ids[:, :-1])[0], ids[0, 1:], reduction="sum").item()
        words += ids.shape[1] - 1
    padded = tl.pad_batch([ids[0].tolist() for ids in sentences])
    monkeypatch.setattr(masks_lab, "heldout", lambda: iter([padded[:2], padded[2:]]))
    assert study_lab.nats(model) == pytest.approx(total / words, rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("arm", ["base", "QK-norm"])
def test_score_sizes_are_lengths_of_queries_times_lengths_of_keys(arm, monkeypatch):
    ids = torch.tensor([[1, 7, 5, 2], [1, 9, 2, masks_lab.PAD]])
    monkeypatch.setattr(one_stack, "heldout", lambda: ids)
    model = study_lab.new_model(arm, 0).eval()
    for parameter in model.parameters():
        parameter.mul_(1.7)
    found = study.score_sizes(model)
    assert not any(norm._forward_hooks for norm in model.modules())
    x = model.embedding(ids) * model.config.embedding_scale
    for layer, size in zip(model.layers, found, strict=True):
        attention, lengths = layer.attention, []
        for matrix, norm in ((attention.w_q, attention.q_norm), (attention.w_k, attention.k_norm)):
            vectors = norm(matrix(layer.attention_norm(x)).view(2, 4, 4, 24))
            real = [vectors[0], vectors[1, :3]]
            lengths.append(torch.cat(real).pow(2).sum(-1).sqrt().mean().item())
        assert size == pytest.approx(lengths[0] * lengths[1] / 24**0.5, abs=0.06)
        x = layer(x)


def test_a_run_is_that_of_notebook_19s_loop():
    model = study_lab.new_model("base", 1)
    losses = one_stack.fit(model, study_lab.next_word_loss, 3, seed=1)
    assert study.train(study.Setup("base", 3, 1))[1] == pytest.approx(losses, rel=1e-5)


def test_differences_are_paired_and_their_interval_is_students():
    runs = [{"arm": arm, "steps": 400, "seed": s, "rate": 2.0, "nats": n} for arm, s, n in (
        ("base", 0, 1.0), ("base", 1, 3.0), ("base", 2, 2.0), ("x", 2, 2.3), ("x", 0, 1.1), ("x", 1, 3.2), ("y", 0, 1.0)
    )]  # fmt: skip
    mean, half, count = study_lab.difference({"runs": runs}, "x", 400)
    assert (mean, count) == (pytest.approx(0.2), 3)
    assert half == pytest.approx(4.303 * 0.1 / math.sqrt(3))  # differences .1, .2, .3
    assert study_lab.difference({"runs": runs}, "base", 400, of=("x", 2.0))[0] == pytest.approx(-0.2)
    assert study_lab.runs_of({"runs": runs}, "x", 400, 1.0) == {}
    with pytest.raises(ValueError, match="two seeds of 'y' and of 'base' at 400 steps, got 1"):
        study_lab.difference({"runs": runs}, "y", 400)


@pytest.mark.parametrize(("freedom", "quantile"), study_lab.QUANTILES.items())
def test_the_quantiles_are_students(freedom, quantile):
    t = torch.linspace(0, quantile, 200_001, dtype=torch.float64)
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    inside = 2 * torch.trapezoid(scale * (1 + t**2 / freedom) ** (-(freedom + 1) / 2), t)
    assert inside.item() == pytest.approx(0.95, abs=5e-5)


@pytest.mark.parametrize(("steps", "rates"), [(400, (0.5, 1, 2, 4, 8)), (2000, (0.5, 1, 2, 4))])
def test_the_best_rate_is_the_bases_best(steps, rates):
    means = {}
    for rate in rates:
        runs = study_lab.runs_of(STORED, "base", steps, rate)
        means[rate] = sum(runs[seed] for seed in range(study.FEWER)) / study.FEWER
    assert means[study_lab.BEST[steps]] < min(means.values()) + 0.005


def test_scores_are_stored_of_the_runs_that_are_looked_at():
    for run in STORED["runs"]:
        setup = study.Setup(*(run[name] for name in ("arm", "steps", "seed", "rate")))
        assert ("scores" in run) == study.has_scores(setup)


def test_a_sweep_has_every_rate_that_was_tried_and_the_best_one_has_the_lowest_mean():
    runs = [{"arm": "x", "steps": 400, "seed": s, "rate": r, "nats": r * s + 7 - r} for s in range(3) for r in (2, 5)]
    runs += [{"arm": "x", "steps": 2000, "seed": 0, "rate": 11, "nats": 0.0}]
    assert study_lab.sweep({"runs": runs}, "x", 400) == {2: [5, 7, 9], 5: [2, 7, 12]}
    runs[1]["nats"] = 1.5  # of rate 5
    assert study_lab.best_rate({"runs": runs}, "x", 400) == 5
    with pytest.raises(ValueError, match="runs of 'y' with 400 steps, got none"):
        study_lab.sweep({"runs": runs}, "y", 400)


def test_each_arm_of_today_is_at_its_best_where_notebook_20_says():
    best = {arm: study_lab.best_rate(STORED, arm, 400) for arm in ("base", "QK-norm", "today, no QK-norm", "today")}
    assert best == {"base": 2, "QK-norm": 4, "today, no QK-norm": 2, "today": 8}


def test_scores_are_those_of_one_layer():
    runs = [{"arm": "x", "rate": 8.0, "scores": [3, 5]}, {"arm": "x", "rate": 8.0}, {"arm": "x", "rate": 2.0}]
    assert study_lab.scores_of({"runs": runs}, "x", 8, 1) == [5]
