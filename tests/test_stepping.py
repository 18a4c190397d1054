"""What every way of decoding asks first: that the weights are finite, whether or not a sentence needs them."""

from __future__ import annotations

import math

import pytest
import torch

import transformer_lib as tl
from factories import make_config, make_model, randomise, sources
from transformer_lib.baselines import GRUTranslator, TorchTranslator
from transformer_lib.decoding.stepping import check_weights

pytestmark = pytest.mark.fast

SRC = torch.tensor([[3, 5, 4], [7, 3, 0]])
LIMIT = 3


def translator(model):
    words = [tl.WordTokenizer([f"w{i}" for i in range(size - 4)]) for size in (23, 29)]
    return tl.Translator(model, *words)


def paged(model):
    with tl.paged.caching(model, tl.paged.Pages(11, 3)):
        return tl.greedy_decode(model, SRC, max_new_tokens=LIMIT)


WAYS = {
    "greedy": lambda model: tl.greedy_decode(model, SRC, max_new_tokens=LIMIT),
    "greedy, fast": lambda model: tl.greedy_decode(model, SRC, max_new_tokens=LIMIT, path="fast"),
    "sampling": lambda model: tl.sample_decode(model, SRC, max_new_tokens=LIMIT),
    "beam": lambda model: tl.beam_search(model, SRC, beam_size=2, max_new_tokens=LIMIT),
    "beam, fast": lambda model: tl.beam_search(model, SRC, beam_size=2, max_new_tokens=LIMIT, path="fast"),
    "speculative": lambda model: tl.speculative_decode(model, make_model(1), SRC, max_new_tokens=LIMIT),
    "speculative sampling": lambda model: tl.speculative_sample(model, make_model(1), SRC, max_new_tokens=LIMIT),
    "a draft": lambda model: tl.speculative_decode(make_model(1), model, SRC, max_new_tokens=LIMIT),
    "serving": lambda model: tl.serving.serve(model, [[3, 5, 4], [7, 3]], capacity=2, max_new_tokens=LIMIT),
    "pages": paged,
    "text": lambda model: translator(model).translate(["w1 w2"], max_new_tokens=LIMIT),
    "scores": lambda model: translator(model).log_probabilities(["w1 w2"], ["w3"]),
}
CALLED = {"speculative": "target", "speculative sampling": "target", "a draft": "draft"}
# Weights that no logit here depends on: a word that does not occur, a position that is not reached, a hidden unit that
# ReLU leaves at 0.
HIDDEN = {
    "src_embedding.weight": ((19, 7), math.nan),
    "position.table": ((31, 5), math.inf),
    "encoder.layers.1.feed_forward.expand.bias": ((11,), -math.inf),
}
USED = {"decoder.layers.0.cross_attention.w_v.weight": ((3, 5), math.nan), "output_head.weight": ((17, 2), math.inf)}


def spoilt(name, dtype=torch.float32):
    model = make_model(position="learned").to(dtype)
    place, value = (HIDDEN | USED)[name]
    with torch.no_grad():
        model.get_parameter(name)[place] = value
    return model


@pytest.mark.parametrize("name", HIDDEN | USED)
@pytest.mark.parametrize("way", WAYS)
def test_weights_that_are_not_finite_are_refused_by_name(way, name):
    wrong = rf"^{CALLED.get(way, 'model')} must have finite weights, got (nan|inf|-inf) in {name}$"
    with pytest.raises(ValueError, match=wrong):
        WAYS[way](spoilt(name))


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("serving", "pages", "text", "scores")])
def test_what_is_no_model_that_translates_is_refused(way):
    name = CALLED.get(way, "model")
    wanted = f"^{name} must be a module with a TransformerConfig as its config(, or a function of the ids so far)?, got"
    with pytest.raises(TypeError, match=f"{wanted} Translator; take its .model$"):
        WAYS[way](translator(make_model()))
    with pytest.raises(TypeError, match=f"{wanted} MaskedLanguageModel$"):
        WAYS[way](tl.MaskedLanguageModel(29, 1, 30, 3, 17))


@pytest.mark.parametrize("way", WAYS)
def test_finite_weights_are_decoded(way):
    assert WAYS[way](make_model(position="learned")) is not None


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_in_every_type_of_floats(dtype):
    for name in HIDDEN:
        with pytest.raises(ValueError, match=f"in {name}$"):
            check_weights("model", spoilt(name, dtype))


def test_a_buffer_may_hide_with_minus_infinity_and_hold_no_other_such_number():
    layer = torch.nn.Linear(7, 11)
    layer.register_buffer("mask", torch.full((3, 5), -math.inf))
    check_weights("model", layer)
    layer.mask[1, 2] = math.inf
    with pytest.raises(ValueError, match="^model must have finite weights, got inf in mask$"):
        check_weights("model", layer)


def test_large_weights_whose_sum_overflows_are_finite_all_the_same():
    layer = torch.nn.Linear(7, 11, bias=False).half()
    layer.weight.data.fill_(6e4)
    assert layer.weight.sum().isinf()
    check_weights("model", layer)


def test_the_first_of_several_is_named():
    model = spoilt("output_head.weight")
    model.decoder.layers[1].self_attention.w_q.weight.data[2, 3] = math.nan
    with pytest.raises(ValueError, match=r"got nan in decoder\.layers\.1\.self_attention\.w_q\.weight"):
        check_weights("model", model)


def test_models_other_than_a_transformer():
    torch.manual_seed(0)
    models = {
        "encoder.weight_hh_l1": GRUTranslator(make_config(), 13),
        "transformer.decoder.layers.0.linear2.bias": TorchTranslator(make_config()),
        "stack.layers.1.feed_forward.contract.weight": tl.DecoderOnlyTranslator(make_config(position="rotary")),
    }
    for name, model in models.items():
        tl.greedy_decode(model, SRC, max_new_tokens=LIMIT)
        model.get_parameter(name).data.view(-1)[1] = math.nan
        with pytest.raises(ValueError, match=f"got nan in {name}"):
            tl.greedy_decode(model, SRC, max_new_tokens=LIMIT)


def test_language_models_that_speculate():
    text, spoilt_text = (randomise(tl.LanguageModel(29, 1, 30, 3, 17)) for _ in range(2))
    assert len(tl.speculative_decode(make_model(), text, SRC, max_new_tokens=LIMIT).ids) == 2
    spoilt_text.stack.layers[0].feed_forward.expand.bias.data[3] = -math.inf
    for pair, called in (((spoilt_text, text), "target"), ((make_model(), spoilt_text), "draft")):
        with pytest.raises(ValueError, match=rf"^{called} must have finite weights, got -inf in stack\.layers\.0\."):
            tl.speculative_decode(*pair, SRC, max_new_tokens=LIMIT)


def test_scales_of_int8_weights_are_looked_at():
    model = tl.int8.quantized(make_model())
    assert len(tl.greedy_decode(model, SRC, max_new_tokens=LIMIT)) == 2
    model.encoder.layers[0].feed_forward.expand.stored.scales[5] = math.nan
    with pytest.raises(ValueError, match=r"got nan in encoder\.layers\.0\.feed_forward\.expand\.stored\.scales"):
        tl.greedy_decode(model, SRC, max_new_tokens=LIMIT)


def test_a_mask_in_a_buffer_may_be_infinite():
    model = make_model()
    model.register_buffer("hidden", torch.full((3, 3), -math.inf).triu(1))
    assert torch.equal(
        tl.greedy_decode(model, sources(), max_new_tokens=LIMIT),
        tl.greedy_decode(make_model(), sources(), max_new_tokens=LIMIT),
    )
    model.hidden[0, 1] = math.nan
    with pytest.raises(ValueError, match="got nan in hidden"):
        tl.greedy_decode(model, SRC, max_new_tokens=LIMIT)
