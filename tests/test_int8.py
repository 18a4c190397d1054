"""Weights in eight bits are at most half a step off, and a model with them is a model."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import make_model, sources, targets
from transformer_lib.baselines import TorchTranslator

pytestmark = pytest.mark.fast


def draw(rows=11, columns=7, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    sizes = 10.0 ** torch.arange(rows, dtype=dtype).sub(rows // 2)[:, None]  # rows of quite different sizes
    return torch.randn(rows, columns, generator=generator, dtype=dtype) * sizes


@pytest.mark.parametrize("bits", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_weight_is_at_most_half_a_step_off(dtype, bits):
    weight, steps = draw(dtype=dtype), 2 ** (bits - 1) - 1
    values, scales = tl.int8.quantize(weight, bits=bits)
    assert values.dtype == torch.int8 and scales.dtype == dtype and scales.shape == (11,)
    assert values.abs().amax(dim=1).tolist() == [steps] * 11  # each row uses its whole range
    off = (tl.int8.dequantize(values, scales) - weight).abs()
    assert (off <= scales[:, None] / 2 * (1 + 1e-5)).all() and (off > scales[:, None] / 8).any()


def test_the_values_by_loops():
    weight = draw(3, 5)
    values, scales = tl.int8.quantize(weight)
    for row, found, scale in zip(weight.tolist(), values.tolist(), scales.tolist(), strict=True):
        largest = max(abs(w) for w in row)
        assert scale == pytest.approx(largest / 127)
        assert found == [round(w / (largest / 127)) for w in row]


def test_one_scale_for_all_loses_the_small_rows():
    weight = draw()
    values, scales = tl.int8.quantize(weight, per="tensor")
    assert scales.shape == (1,) and scales.item() == pytest.approx(weight.abs().max().item() / 127)
    assert not values[:5].any() and values[-1].any()
    off = (tl.int8.dequantize(values, scales) - weight).abs()
    assert (off <= scales / 2 * (1 + 1e-5)).all()


def test_zeros_stay_zeros_and_signs_stay():
    weight = torch.tensor([[0.0, 0.0], [-3.0, 3.0]])
    values, scales = tl.int8.quantize(weight)
    assert values.tolist() == [[0, 0], [-127, 127]] and scales[0] == 1
    assert torch.equal(tl.int8.dequantize(values, scales)[0], weight[0])
    assert tl.int8.quantize(torch.zeros(2, 3), per="tensor")[1].tolist() == [1]


@pytest.mark.parametrize("per", ["row", "tensor"])
@pytest.mark.parametrize("tie", [False, True])
def test_a_model_in_eight_bits_computes_what_the_rounded_one_does(per, tie):
    model = make_model(tgt_vocab_size=23, tie_embeddings=tie)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stored, rounded = tl.int8.quantized(model, per=per), tl.int8.rounded(model, per=per)
    src, tgt = sources(), targets() % 23
    torch.testing.assert_close(stored(src, tgt), rounded(src, tgt), rtol=0, atol=1e-5)
    assert 1e-4 < (stored(src, tgt) - model(src, tgt)).abs().max() < 0.5
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())  # it is a copy
    matrices = [layer for layer in model.modules() if isinstance(layer, (nn.Linear, nn.Embedding))]
    for old, new in zip(matrices, [m for m in rounded.modules() if type(m) in (nn.Linear, nn.Embedding)], strict=True):
        wanted = tl.int8.dequantize(*tl.int8.quantize(old.weight, per=per))
        assert torch.equal(new.weight, wanted)
    assert torch.equal(
        tl.greedy_decode(stored, src, max_new_tokens=7), tl.greedy_decode(rounded, src, max_new_tokens=7)
    )


@pytest.mark.parametrize("tie", [False, True])
def test_bytes_are_counted(tie):
    model = make_model(tgt_vocab_size=23, tie_embeddings=tie)
    assert tl.int8.stored_bytes(model) == 4 * sum(p.numel() for p in model.parameters())
    weights = {id(m.weight): m.weight for m in model.modules() if isinstance(m, (nn.Linear, nn.Embedding))}
    entries, rows = sum(w.numel() for w in weights.values()), sum(len(w) for w in weights.values())
    rest = sum(p.numel() for p in model.parameters()) - entries
    assert tl.int8.stored_bytes(tl.int8.quantized(model)) == entries + 4 * rows + 4 * rest
    one_scale = entries + 4 * len(weights) + 4 * rest
    assert tl.int8.stored_bytes(tl.int8.quantized(model, per="tensor")) == one_scale


def test_no_matrix_is_left_in_floats_and_none_learns():
    stored = tl.int8.quantized(make_model())
    kinds = {value.dtype for value in stored.state_dict().values() if value.dim() == 2}
    assert kinds == {torch.int8} and not any(p.requires_grad for p in stored.parameters())
    assert not any(type(module) in (nn.Linear, nn.Embedding) for module in stored.modules())


def test_the_trained_translator_says_the_same_on_held_out_sentences():
    translator = tl.load_trained()
    texts = [pair.src for pair in tl.load_corpus("context")["heldout"][:211]]
    stored = tl.Translator(tl.int8.quantized(translator.model), translator.src_tokenizer, translator.tgt_tokenizer)
    assert stored.translate(texts) == translator.translate(texts)
    with pytest.raises(ValueError, match="fast"):
        stored.translate(texts, path="fast")
    coarse = tl.Translator(
        tl.int8.rounded(translator.model, bits=3), translator.src_tokenizer, translator.tgt_tokenizer
    )
    assert coarse.translate(texts, path="fast") != translator.translate(texts, path="fast")


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Named(nn.Linear):
    """Another class that computes what nn.Linear does."""


def normed(model):
    nn.utils.parametrizations.weight_norm(model.decoder.layers[1].feed_forward.expand)


def normed_by_a_hook(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch deprecates it
        nn.utils.weight_norm(model.decoder.layers[1].feed_forward.expand)


def pruned(model):
    nn.utils.prune.l1_unstructured(model.decoder.layers[1].feed_forward.expand, "weight", 0.5)


@pytest.mark.parametrize("change", [normed, normed_by_a_hook, pruned])
@pytest.mark.parametrize("convert", [tl.int8.quantized, tl.int8.rounded])
def test_a_weight_that_is_computed_from_others_is_refused(convert, change):
    """It would be computed again: rounding it in place would change nothing."""
    model = make_model()
    change(model)
    message = (
        "model must have weights that are parameters, but decoder.layers.1.feed_forward.expand computes its weight"
    )
    with pytest.raises(ValueError, match=message):
        convert(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part, _: setattr(part, "expand", Doubled(30, 17)), "expand, a Doubled, has a forward of its own"),
        (lambda part, _: setattr(part.expand, "forward", abs), "expand, a Linear, has a forward of its own"),
        (lambda part, _: part.expand.register_forward_hook(print), "layers without hooks, but .*expand has one"),
        (lambda _, words: setattr(words, "max_norm", 0.5), "do not change, but src_embedding has max_norm 0.5"),
    ],
)
def test_a_layer_that_does_more_than_multiply_is_refused(change, message):
    model = make_model()
    change(model.decoder.layers[0].feed_forward, model.src_embedding)
    with pytest.raises((TypeError, ValueError), match=message):
        tl.int8.quantized(model)


def test_a_single_layer_is_stored_too():
    for layer, x in ((nn.Linear(7, 11), draw(3, 7)), (nn.Embedding(11, 7), torch.tensor([[3, 5]]))):
        stored = tl.int8.quantized(layer)
        assert type(stored).__name__ == f"Int8{type(layer).__name__}"
        torch.testing.assert_close(stored(x), tl.int8.rounded(layer)(x))


def test_each_place_of_a_layer_is_found():
    layer = Named(7, 7)
    model = nn.Sequential(layer, layer, nn.Sequential(layer))
    stored = tl.int8.quantized(model)
    assert not any(isinstance(part, nn.Linear) for part in stored.modules())
    assert tl.int8.stored_bytes(stored) == 7 * 7 + 4 * 7 + 3 * 4 * 7  # one matrix, its scales, three copies of the bias
    torch.testing.assert_close(stored(draw(3, 7)), tl.int8.rounded(model)(draw(3, 7)))


def test_pytorchs_own_translator_in_eight_bits():
    torch.manual_seed(0)
    theirs = TorchTranslator(make_model().config).eval()
    src, tgt = sources(), targets()
    torch.testing.assert_close(
        tl.int8.quantized(theirs)(src, tgt), tl.int8.rounded(theirs)(src, tgt), rtol=0, atol=1e-5
    )


def test_what_does_not_fit_is_refused():
    weight = draw()
    values, scales = tl.int8.quantize(weight)
    with pytest.raises(TypeError, match=r"weight must hold floats, got dtype torch.int64"):
        tl.int8.quantize(weight.long())
    with pytest.raises(ValueError, match=r"weight must have 2 axes, got 1: shape \(7,\)"):
        tl.int8.quantize(weight[0])
    for wrong in (weight / 0, weight[:0]):
        with pytest.raises(ValueError, match="weight must not be empty and hold finite numbers"):
            tl.int8.quantize(wrong)
    with pytest.raises(ValueError, match="per must be one of 'row', 'tensor', got 'column'"):
        tl.int8.quantize(weight, per="column")
    with pytest.raises(ValueError, match="per must be one of 'row', 'tensor', got 'column'"):
        tl.int8.quantized(make_model(), per="column")
    with pytest.raises(ValueError, match="bits must be from 2 to 8, got 9"):
        tl.int8.quantize(weight, bits=9)
    with pytest.raises(ValueError, match="bits must be at least 2, got 1"):
        tl.int8.rounded(make_model(), bits=1)
    with pytest.raises(TypeError, match="values must have dtype torch.int8, got torch.int32"):
        tl.int8.dequantize(values.int(), scales)
    with pytest.raises(ValueError, match=r"scales must have shape \(11,\) or \(1,\), got \(7,\)"):
        tl.int8.dequantize(values, scales[:7])
