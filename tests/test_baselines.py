from __future__ import annotations

from collections import Counter

import pytest
import torch

import transformer_lib as tl
from factories import BATCH, POSITIONS, SIZES, greedy_by_forward, make_config, randomise, sources, targets
from transformer_lib.baselines import (
    DictionaryBaseline,
    GRUTranslator,
    SelfOnlyTransformer,
    TorchTranslator,
    count_parameters,
)

pytestmark = pytest.mark.fast

HOUSES = [
    tl.Pair("The house.", "Das Haus."),
    tl.Pair("The book.", "Das Buch."),
    tl.Pair("A book.", "Ein Buch."),
    tl.Pair("A house!", "Ein Haus!"),
]


def make(kind=SelfOnlyTransformer, *args, **changes):
    torch.manual_seed(0)
    return randomise(kind(make_config(**changes), *args)).eval()


def make_gru(**changes):
    return make(GRUTranslator, 13, **changes)


def test_the_first_expectation_by_hand():
    """IBM Model 1 from uniform on {the house / das Haus, the book / das Buch, a book / ein Buch}."""
    sentences = Counter(
        {
            (("the", "house"), ("das", "Haus")): 1,
            (("the", "book"), ("das", "Buch")): 1,
            (("a", "book"), ("ein", "Buch")): 1,
        }
    )
    table = DictionaryBaseline._fit(sentences, 1)
    wanted = {
        ("the", "das"): 1 / 2,
        ("the", "Haus"): 1 / 4,
        ("the", "Buch"): 1 / 4,
        ("house", "das"): 1 / 2,
        ("house", "Haus"): 1 / 2,
        ("book", "das"): 1 / 4,
        ("book", "Buch"): 1 / 2,
        ("book", "ein"): 1 / 4,
        ("a", "ein"): 1 / 2,
        ("a", "Buch"): 1 / 2,
    }
    assert table == pytest.approx(wanted)
    table = DictionaryBaseline._fit(sentences, 2)
    # "Haus" came from "the" with weight 1/4 and from "house" with 1/2; "das" of that sentence half and half.
    assert table["house", "Haus"] == pytest.approx((2 / 3) / (2 / 3 + 1 / 2))
    assert DictionaryBaseline._fit(sentences, 30)["book", "Buch"] > 0.99


def test_repeated_sentences_count_as_often():
    once = Counter({(("a", "b"), ("x", "y")): 1, (("a", "c"), ("x", "z")): 2})
    table = DictionaryBaseline._fit(once, 1)
    assert table["a", "x"] == pytest.approx(1 / 2) and table["a", "y"] == pytest.approx(1 / 6)


def test_words_are_translated_one_by_one():
    baseline = DictionaryBaseline(HOUSES, iterations=10)
    assert baseline.translate(["A house.", "The book!"]) == ["Ein Haus.", "Das Buch!"]
    assert baseline.translate(["Book a the"]) == ["Buch ein das"]
    assert baseline.translate(["The zebra."]) == ["Das zebra."]
    assert baseline.translate([]) == []


def test_a_dictionary_cannot_tell_senses_apart():
    parts = [tl.Pair("A river", "Ein Fluss"), tl.Pair("A money", "Ein Geld")] * 5
    senses = [tl.Pair("A river bank", "Ein Fluss Ufer")] * 2 + [tl.Pair("A money bank", "Ein Geld Bank")] * 3
    found = DictionaryBaseline(parts + senses).translate(["A river bank", "A money bank"])
    assert found == ["Ein Fluss Bank", "Ein Geld Bank"]


def test_a_dictionary_needs_iterations():
    with pytest.raises(ValueError, match="iterations must be at least 1, got 0"):
        DictionaryBaseline(HOUSES, iterations=0)


@pytest.mark.parametrize("position", POSITIONS)
def test_cut_attention_reads_its_own_place_alone(position):
    model = make(position=position)
    src, tgt_in = sources(length=11, padded=False), targets()
    logits = model(src, tgt_in)
    for place in (0, 4, 10):
        other_src, other_tgt = src.clone(), tgt_in.clone()
        other_src[:, place], other_tgt[:, place] = 3 + (src[:, place] - 2) % 20, 3 + (tgt_in[:, place] - 2) % 20
        changed = (model(other_src, other_tgt) != logits).any(dim=-1)
        assert changed[:, place].all() and changed.sum() == BATCH
        assert (model(other_src, tgt_in) != logits).any(dim=-1).sum() == BATCH


def test_past_the_end_of_the_source_there_is_nothing_to_see():
    model = make()
    with tl.record_attention(model) as record:
        model(sources(padded=False), targets())
    cross = record["decoder.layers.0.cross_attention"]
    assert torch.equal(cross, torch.eye(11, 7).expand_as(cross))


def test_padding_does_not_change_cut_attention():
    model = make()
    src = sources(padded=True)
    alone = torch.cat([model(row[row != 0][None], targets()[i : i + 1]) for i, row in enumerate(src)])
    torch.testing.assert_close(model(src, targets()), alone, rtol=0, atol=1e-5)


def test_cut_attention_decodes_with_a_cache():
    model = make()
    wanted = greedy_by_forward(model, sources(), 19)
    for use_cache in (False, True):
        assert torch.equal(tl.greedy_decode(model, sources(), max_new_tokens=19, use_cache=use_cache), wanted)


def test_the_gru_passes_the_source_through_one_vector():
    model = make_gru()
    memory = model.encode(sources())
    assert memory.shape == (BATCH, 2, 13)
    logits = model(sources(), targets())
    assert logits.shape == (BATCH, 11, SIZES["tgt_vocab_size"])
    torch.testing.assert_close(model.decode(targets(), memory, sources()), logits)


def test_padding_does_not_change_the_gru():
    model = make_gru()
    alone = torch.cat([model(row[row != 0][None], targets()[i : i + 1]) for i, row in enumerate(sources())])
    torch.testing.assert_close(model(sources(), targets()), alone, rtol=0, atol=1e-5)


def test_the_gru_needs_a_token_in_every_row():
    src = torch.tensor([[5, 6, 0], [0, 0, 0], [7, 0, 0]])
    with pytest.raises(ValueError, match="src must have at least one token in every row, got only padding in row 1"):
        make_gru().encode(src)


def test_the_gru_reads_in_order_and_not_ahead():
    model = make_gru()
    src, tgt_in = sources(padded=False), targets()
    assert (model.encode(src.flip(1)) - model.encode(src)).abs().max() > 0.01
    changed = tgt_in.clone()
    changed[:, 6:] = 5
    assert torch.equal(model(src, changed)[:, :6], model(src, tgt_in)[:, :6])


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_gru_is_decoded_by_the_same_code(n_layers):
    model = make_gru(n_layers=n_layers, dropout=0.5)
    wanted = greedy_by_forward(model, sources(), 11)
    assert torch.equal(tl.greedy_decode(model, sources(), max_new_tokens=11), wanted)
    narrow = tl.beam_search(model, sources(), beam_size=1, max_new_tokens=11)
    assert torch.equal(narrow, wanted)


def test_bad_ids_and_sizes_are_refused():
    model = make_gru()
    with pytest.raises(ValueError, match=r"src must hold ids in \[0, 23\), got values from 23"):
        model(torch.full((2, 3), 23), targets(batch=2))
    with pytest.raises(ValueError, match="tgt_in must have 2 axes, got 1"):
        model(sources(), torch.tensor([1, 3]))
    with pytest.raises(ValueError, match="src has 38 tokens, more than max_len = 37"):
        model(torch.ones(5, 38, dtype=torch.long), targets())
    with pytest.raises(ValueError, match="hidden must be at least 1, got 0"):
        GRUTranslator(make_config(), 0)


def test_counting_parameters():
    assert count_parameters(torch.nn.Linear(3, 5)) == 20
    layer = torch.nn.Linear(3, 5)
    layer.bias.requires_grad_(False)
    assert count_parameters(layer) == 15


# PyTorch's own.


def as_ours(theirs):
    """Our model with the same weights, by `interop`."""
    ours = tl.Transformer(theirs.config).eval()
    converted = tl.interop.from_torch(theirs.transformer)
    ours.encoder, ours.decoder = converted.encoder, converted.decoder
    for name in ("src_embedding", "tgt_embedding", "output_head"):
        setattr(ours, name, getattr(theirs, name))
    return ours


def test_pytorchs_transformer_decodes_by_our_code():
    theirs = make(TorchTranslator)
    ours, src = as_ours(theirs), sources(padded=True)
    assert torch.equal(tl.greedy_decode(theirs, src, max_new_tokens=9), tl.greedy_decode(ours, src, max_new_tokens=9))
    beams = [tl.beam_search(model, src, beam_size=3, max_new_tokens=9) for model in (theirs, ours)]
    assert torch.equal(*beams)
