"""The study of the factor √d_model: its own arms, short runs that repeat the stored ones, and what is stored."""

from __future__ import annotations

import copy
import math

import pytest
import torch

import transformer_lib as tl
from factories import make_model, sources, targets
from studies import embedding_scale as study
from studies import parts
from transformer_lib.course.lab import ablations
from transformer_lib.course.lab import embedding_scale as study_lab
from transformer_lib.training.loss import shift_right, translation_loss


def test_short_rows_shorten_the_embeddings_and_nothing_else():
    model = make_model()
    short = copy.deepcopy(model)
    study.with_short_rows(short)
    root = math.sqrt(model.config.d_model)
    tables = ("src_embedding.weight", "tgt_embedding.weight")
    for (name, before), after in zip(model.named_parameters(), short.parameters(), strict=True):
        torch.testing.assert_close(after, before / root if name in tables else before)


def test_short_positions_make_up_for_the_factor_at_the_start():
    translator = study.translators.new_translator(tl.load_corpus("context")["train"][:64], seed=0)
    other = copy.deepcopy(translator)
    study.with_short_positions(other.model)
    root, ids = math.sqrt(translator.model.config.d_model), torch.tensor([[5, 6, 7]])
    nothing = torch.zeros(1, 3, translator.model.config.d_model)
    positions = [t.model.position(nothing) for t in (translator, other)]
    torch.testing.assert_close(positions[1] * root, positions[0])
    embedded = [t.model._embed(t.model.src_embedding, ids) for t in (translator, other)]
    torch.testing.assert_close(embedded[1] * root, embedded[0])


def test_the_factor_is_a_longer_start_and_a_larger_rate_and_nothing_else():
    losses = {}
    for name in ("factor", "rate"):
        torch.manual_seed(0)
        model = make_model(dropout=0.0).double()
        if name == "rate":
            parts.without_embedding_scale_but_unit_tables(model)
        tables = [model.src_embedding.weight, model.tgt_embedding.weight]
        others = [p for p in model.parameters() if all(p is not table for table in tables)]
        larger = math.sqrt(model.config.d_model) if name == "rate" else 1.0
        groups = [{"params": others}, {"params": tables, "lr": 1e-2 * larger}]
        optimizer = torch.optim.Adam(groups, lr=1e-2, eps=1e-16)
        losses[name] = []
        for _ in range(30):
            tgt_in, tgt_out = shift_right(targets())
            loss = translation_loss(model(sources(), tgt_in), tgt_out, pad_id=model.config.pad_id)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[name].append(loss.item())
    assert losses["rate"] == pytest.approx(losses["factor"], rel=1e-6)
    assert losses["rate"][-1] < losses["rate"][0] / 2


def budgets(arm: str) -> tuple[int, ...]:
    return study.BUDGETS.get(arm, ablations.PASSES)


def test_the_stored_study_is_complete_and_says_what_notebook_12_says():
    arms = study_lab.load_results()
    assert tuple(arms) == tuple(study_lab.ARMS)
    exact = {
        arm: {passes: [run["scores"]["heldout"]["exact match"] for run in runs] for passes, runs in by.items()}
        for arm, by in arms.items()
    }
    assert all(len(found) == 3 for arm, by in exact.items() for passes, found in by.items() if passes in budgets(arm))
    long, short, slow, neither, balanced = exact.values()
    assert all(abs(a - b) < 0.02 for a, b in zip(sorted(long[1]), sorted(short[1]), strict=True))
    assert max(slow[1]) < 0.7 < min(*long[1], *short[1]) and max(neither[1]) == 0 and min(neither[4]) < 0.1
    assert min(*long[4], *short[4]) > 0.97 and min(balanced[1]) > 0.8 and not balanced[4]


def test_a_translator_with_short_rows_begins_with_short_words():
    translator = study.translators.new_translator(tl.load_corpus("context")["train"][:64], seed=0)
    study.with_short_rows(translator.model)
    row = translator.model.src_embedding.weight.norm(dim=1).mean().item()
    assert row * math.sqrt(translator.model.config.d_model) == pytest.approx(1.0, abs=0.05)
