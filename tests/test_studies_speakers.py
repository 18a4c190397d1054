"""The small GPT-2 and BERT: stored folders, the same in transformers, gaps filled in three orders, what is stored."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

import transformer_lib as tl
from studies import speakers as study
from studies import speakers_files as files
from transformer_lib.course.lab import masks, one_stack
from transformer_lib.course.lab import speakers as lab
from transformer_lib.model import interop

pytestmark = pytest.mark.fast


def test_the_stored_models_speak():
    gpt2, bert = lab.gpt2(), lab.bert()
    assert lab.perplexity(gpt2) == pytest.approx(3.597, abs=0.01)
    assert masks.is_grammatical(lab.continued(gpt2, "Der Vater"))
    assert study.one_gap(bert)["right"] == pytest.approx(0.63, abs=0.01)
    assert {sum(p.numel() for p in model.parameters()) // 1000 for model in (gpt2, bert)} <= {84, 85, 86, 87, 88}


@torch.no_grad()
@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_transformers_reads_the_folders_too(kind):
    transformers = pytest.importorskip("transformers")
    ids = one_stack.heldout()[:7]
    if kind == "gpt2":
        theirs = transformers.GPT2LMHeadModel.from_pretrained(lab.folder(kind)).eval()
        wanted, ours = theirs(ids).logits, lab.gpt2()(ids)
    else:
        theirs = transformers.BertForMaskedLM.from_pretrained(lab.folder(kind)).eval()
        wanted, ours = theirs(ids, attention_mask=(ids != 0).long()).logits, lab.logits_of(lab.bert())(ids)
    torch.testing.assert_close(ours[ids != 0], wanted[ids != 0], rtol=0, atol=1e-4)


@torch.no_grad()
def test_what_is_written_is_what_was_trained():
    ids = one_stack.heldout()[:3]
    gpt2, bert = study.new_gpt2(1).eval(), study.new_bert(1).eval()
    for parameter in (*gpt2.parameters(), *bert.parameters()):
        parameter.data += 0.1 * torch.randn_like(parameter)
    again = interop.load_gpt2(files.gpt2_state(gpt2), files.gpt2_config(gpt2))
    assert torch.equal(again(ids), gpt2(ids))
    again = interop.load_bert(files.bert_state(bert), files.bert_config(bert))
    assert torch.equal(again(ids), bert(ids))
    for kind, state, config in (
        ("gpt2", files.gpt2_state(gpt2), files.gpt2_config(gpt2)),
        ("bert", files.bert_state(bert), files.bert_config(bert)),
    ):
        assert json.loads((lab.folder(kind) / "config.json").read_text()) == config
        stored = load_file(lab.folder(kind) / "model.safetensors")
        assert {n: t.shape for n, t in stored.items()} == {n: t.shape for n, t in state.items()}


def pretend(ids):
    """A model that is surest of later places, and says there how many gaps it has seen."""
    gaps = (ids == 3).sum(dim=1)
    logits = torch.zeros(*ids.shape, 9)
    logits[torch.arange(len(ids))[:, None], torch.arange(ids.shape[1]), 3 + gaps[:, None]] = 1.0 + torch.arange(
        ids.shape[1]
    )
    return logits


def test_the_three_orders():
    ids = torch.tensor([[1, 3, 8, 3, 3, 2], [1, 3, 2, 0, 0, 0]])
    filled = {order: lab.filled(ids, pretend, order).tolist() for order in lab.ORDERS}
    assert filled["all at once"] == [[1, 6, 8, 6, 6, 2], [1, 4, 2, 0, 0, 0]]
    assert filled["left to right"] == [[1, 6, 8, 5, 4, 2], [1, 4, 2, 0, 0, 0]]
    assert filled["surest first"] == [[1, 4, 8, 5, 6, 2], [1, 4, 2, 0, 0, 0]]
    assert ids[0, 1] == 3


def test_gaps_are_words_and_are_shown_as_lines():
    ids = lab.with_gaps(0.5, 40)
    changed = ids != one_stack.heldout()[:40]
    assert (ids[changed] == 3).all() and (one_stack.heldout()[:40][changed] > 3).all()
    assert 0.4 < changed.sum() / (one_stack.heldout()[:40] > 3).sum() < 0.6
    assert lab.shown([1, 3, 3, 2, 0]) == "___ ___"


def test_all_trainings_say_the_same():
    runs = lab.load_results()["runs"]
    assert len(runs) == 3 * len(study.BUDGETS)
    for run in runs:
        for by_order in run["gaps"].values():
            once, *others = (by_order[order]["grammatical"] for order in lab.ORDERS)
            assert once < min(others)
    assert min(lab.shares(3000)["surest first"]) > 1.6 * max(lab.shares(3000)["all at once"])


def test_a_real_gpt2_is_looked_for_and_not_missed(monkeypatch, capsys):
    monkeypatch.delenv("GPT2_DIR", raising=False)
    assert lab.real_gpt2() is None
    assert "GPT2_DIR is not set" in capsys.readouterr().out


@torch.no_grad()
def test_a_real_gpt2_goes_on_with_a_text(monkeypatch, tmp_path):
    transformers = pytest.importorskip("transformers")
    words = {word: i for i, word in enumerate(["<|endoftext|>", "a", "b", "c", "\u0120", "\u0120a"])}
    (tmp_path / "vocab.json").write_text(json.dumps(words), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n\u0120 a\n", encoding="utf-8")
    config = transformers.GPT2Config(vocab_size=6, n_positions=40, n_embd=6, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    monkeypatch.setenv("GPT2_DIR", str(tmp_path))
    model, tokenizer = lab.real_gpt2()
    assert isinstance(model, tl.LanguageModel)
    assert lab.continued_for_real(model, tokenizer, "ab a", words=5).startswith("ab a")
