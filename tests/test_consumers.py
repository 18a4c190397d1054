"""Every consumer of a configuration, with each field off its default: the same numbers, or a refusal by name?

A field that one of them ignores makes a silent mistake: an export that is another model, a baseline of another size.

To add a field to `TransformerConfig` (or to `modern.Config`, or an option to `LanguageModel`'s layers):

1. give it a value off its default in VALUES (MODERN, OPTIONS);
2. run this file: a failing id such as `[activation-export]` names a field and a consumer that ignores it;
3. let that consumer use the field, or raise a ValueError with the field's name. A model of its own that the field does
   not concern, such as a GRU, names it in its class's `UNUSED`.

To add a consumer, write a function of a model that compares numbers, and name it in CONSUMERS; a class that is built
from a config goes into OWN.

What is set on a model's parts afterwards (`layer.feed_forward.activation = "gelu"`) is asked in the same way: a new
attribute of a layer needs a value in ATTRIBUTES.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import pkgutil
import re
import tempfile
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import studies
import transformer_lib as tl
from factories import POSITIONS, SIZES, default_dtype, greedy_by_forward, randomise
from studies.ladder_models import PARTS, Reader
from transformer_lib import by_hand, costs
from transformer_lib.baselines import GRUTranslator, SelfOnlyTransformer, TorchTranslator
from transformer_lib.course import mine
from transformer_lib.course.mine import AssembledTransformer, Parts
from transformer_lib.decoding import export, paged, serving, speculative
from transformer_lib.fast.eligibility import COMPUTING, plain_attributes, require_fast
from transformer_lib.fast.modern_stepper import ModernStepper
from transformer_lib.fast.stepper import FastStepper
from transformer_lib.model import blockwise, interop, modern
from transformer_lib.model.layers import ACTIVATIONS
from transformer_lib.model.positional import POSITIONS as POSITION_KINDS

pytestmark = pytest.mark.fast

SAME = {"rtol": 1e-9, "atol": 1e-9}  # all is computed in float64
WORDS = range(8, SIZES["src_vocab_size"])  # none of them a special token, whichever ids these have below


@pytest.fixture(autouse=True)
def _in_float64():
    """Everything is made in float64, also the tables of positions, which are no parameters."""
    with default_dtype(torch.float64):
        yield


# The fields of `TransformerConfig` -----------------------------------------------------------------------------------

BASE = tl.TransformerConfig(**{name: size for name, size in SIZES.items() if name != "dropout"} | {"n_layers": 1})
VALUES: dict[str, tuple[Any, ...]] = {  # off the default, or off BASE where it has none
    "src_vocab_size": (31,),
    "tgt_vocab_size": (37,),
    "d_model": (42,),
    "n_heads": (5,),
    "n_layers": (2,),
    "d_ff": (13,),
    "dropout": (0.4,),
    "max_len": (19,),
    "norm_first": (True,),
    "position": ("learned", "rotary", "relative", "none"),
    "tie_embeddings": (True,),
    "pad_id": (3,),
    "bos_id": (5,),
    "eos_id": (7,),
}
BESIDES = {"tie_embeddings": {"tgt_vocab_size": SIZES["src_vocab_size"]}}  # what a field needs of others
# What else a refusal may say of a field, an attribute or an option, where it tells of what that makes.
SAID = {
    "position": ("RelativeBias",),
    "dropout": ("drops",),
    "n_experts": ("feed_forward",),
    "experts_per_token": ("feed_forward",),
    "attention_bias": ("bias",),
}


def problem_of(values, defaults) -> str | None:
    """Return what a table of values lacks, so that it can be said what to do."""
    for name, default in defaults.items():
        if name not in values:
            return f"give {name} a value off its default in the table: then each consumer is asked whether it uses it"
        if default in values[name] or not values[name]:
            return f"the table's value of {name} must be off its default, {default!r}"
    unknown = values.keys() - defaults.keys()
    return f"take {min(unknown)} out of the table: there is no such field" if unknown else None


def defaults_of(config) -> dict[str, Any]:
    """Return each field's default, or its value in `config` where it has none."""
    return {one.name: getattr(config, one.name) if one.default is MISSING else one.default for one in fields(config)}


def test_each_field_has_a_value_off_its_default():
    defaults = defaults_of(BASE)
    assert problem_of(VALUES, defaults) is None, problem_of(VALUES, defaults)
    assert {name: getattr(BASE, name) for name in defaults} == defaults | {"n_layers": 1} | {
        name: SIZES[name] for name in ("d_model", "n_heads", "d_ff", "max_len")
    }


def test_a_table_that_lacks_a_field_or_a_value_says_what_to_do():
    defaults = {"d_ff": 17, "activation": "relu"}
    assert "give activation a value off its default" in problem_of({"d_ff": (13,)}, defaults)
    assert "must be off its default, 'relu'" in problem_of({"d_ff": (13,), "activation": ("gelu", "relu")}, defaults)
    assert "must be off its default" in problem_of({"d_ff": (13,), "activation": ()}, defaults)
    assert "take d_model out" in problem_of({"d_ff": (13,), "activation": ("gelu",), "d_model": (1,)}, defaults)
    assert problem_of({"d_ff": (13,), "activation": ("gelu",)}, defaults) is None


def changed(field: str, value: object) -> tl.TransformerConfig:
    return replace(BASE, **BESIDES.get(field, {}), **{field: value})


def label(field: str, value: object, values: tuple[object, ...]) -> str:
    return field if len(values) == 1 else f"{field}={value}"


CASES = [pytest.param(name, one, id=label(name, one, values)) for name, values in VALUES.items() for one in values]


def build(config: tl.TransformerConfig) -> tl.Transformer:
    """Return a model in evaluation mode with no parameter at a special value."""
    torch.manual_seed(0)
    return randomise(tl.Transformer(config), 2.0).eval()


def pair(config: tl.TransformerConfig, batch: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sources and targets, [batch, 7] and [batch, 11]: words from bos to eos, row i with i times padding."""
    generator = torch.Generator().manual_seed(1)
    src, tgt = (torch.randint(WORDS.start, WORDS.stop, (batch, length), generator=generator) for length in (7, 11))
    tgt[:, 0] = config.bos_id
    for row in range(batch):
        tgt[row, 10 - row] = config.eos_id
        src[row, 7 - row :], tgt[row, 11 - row :] = config.pad_id, config.pad_id
    return src, tgt


def logits_of(model: nn.Module) -> torch.Tensor:
    """Return what the readable path computes, of a copy where reading changes a table (with max_norm)."""
    shortens = any(getattr(part, "max_norm", None) is not None for part in model.modules())
    with torch.no_grad():
        return (copy.deepcopy(model) if shortens else model)(*pair(model.config))


# The consumers that must compute what the model computes -------------------------------------------------------------


def fast_loss(model):
    def loss_and_gradients(path):
        loss = tl.TrainingLoss(copied, 0.1, path=path)(*pair(model.config))
        return [loss.detach(), *torch.autograd.grad(loss, list(copied.parameters()))]

    copied = copy.deepcopy(model)
    torch.testing.assert_close(loss_and_gradients("fast"), loss_and_gradients("readable"), **SAME)
    still = loss_and_gradients("fast")[0]
    rates = [part.p for part in model.modules() if isinstance(part, nn.Dropout)]
    rates += [part.dropout for part in model.modules() if isinstance(part, tl.MultiHeadAttention)]
    copied.train()
    for path in ("readable", "fast"):
        assert torch.allclose(loss_and_gradients(path)[0], still, rtol=1e-9) == (not any(rates))
    with pytest.raises(ValueError, match="max_len"):
        too_long = torch.full((1, model.config.max_len + 1), WORDS[0])
        tl.TrainingLoss(copied, path="fast")(too_long, pair(model.config, 1)[1])


def fast_decoding(model):
    wanted, (src, tgt) = logits_of(model), pair(model.config)
    stepper = FastStepper(require_fast(model), src, tgt.shape[1])
    for length in range(1, tgt.shape[1] + 1):
        found = stepper.next_logits(tgt[:, :length])
        torch.testing.assert_close(found, wanted[:, length - 1], **SAME)


def cache(model):
    wanted, (src, tgt) = logits_of(model), pair(model.config)
    kept, memory = model.new_cache(), model.encode(src)
    pieces = [model.decode(piece, memory, src, cache=kept) for piece in tgt.split([3, 1, 7], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), wanted, **SAME)


def decoding(model):
    """Greedily with and without a cache, on both paths, as a beam of one, in pages, and drafted by itself."""
    src = pair(model.config)[0]
    wanted = greedy_by_forward(model, src, 7)
    for options in ({"use_cache": False}, {}, {"path": "fast"}):
        assert torch.equal(tl.greedy_decode(model, src, max_new_tokens=7, **options), wanted), options
    assert torch.equal(tl.beam_search(model, src, beam_size=1, max_new_tokens=7), wanted)
    with paged.caching(model, paged.Pages(40, 3)):
        assert torch.equal(tl.greedy_decode(model, src, max_new_tokens=7), wanted)
    assert torch.equal(speculative.speculative_decode(model, model, src, max_new_tokens=7, gamma=3).ids, wanted)
    with pytest.raises(ValueError, match="max_len"):
        tl.greedy_decode(model, src, max_new_tokens=model.config.max_len + 1)


def serving_in_turns(model):
    config, src = model.config, pair(model.config)[0]
    rows = [[word for word in row if word != config.pad_id] for row in src.tolist()]
    found, _ = serving.serve(model, rows, capacity=3, max_new_tokens=7)
    assert torch.equal(tl.pad_batch(found, config.pad_id), greedy_by_forward(model, src, 7))


def in_blocks(model):
    wanted, copied = logits_of(model), copy.deepcopy(model)
    with blockwise.blockwise_in(copied, block=3):
        torch.testing.assert_close(copied(*pair(model.config)), wanted, **SAME)


def exported(model):
    pytest.importorskip("ctranslate2", reason='needs pip install -e ".[deploy]"')
    config = model.config
    sizes = (config.src_vocab_size, config.tgt_vocab_size)
    words = [tl.WordTokenizer([f"w{number}" for number in range(4, size)]) for size in sizes]
    ours = tl.Translator(model.float(), *words)
    texts = [[" ".join(f"w{i}" for i in row if i in WORDS) for row in ids.tolist()] for ids in pair(config)]
    wanted = tl.Translator(copy.deepcopy(model), *words).log_probabilities(*texts)
    with tempfile.TemporaryDirectory() as folder:
        theirs = export.load_ctranslate2(export.to_ctranslate2(ours, Path(folder) / "model"))
        found = [torch.tensor(row, dtype=torch.float32) for row in theirs.log_probabilities(*texts)]
        torch.testing.assert_close(torch.nn.utils.rnn.pad_sequence(found, True), wanted, rtol=1e-4, atol=1e-4)
        too_long = " ".join(["w8"] * (config.max_len + 1))
        with pytest.raises(ValueError, match=f"more than max_len = {config.max_len}"):
            theirs.log_probabilities([too_long], ["w8"])


def eight_bits(model):
    stored, rounded = (change(model) for change in (tl.int8.quantized, tl.int8.rounded))
    torch.testing.assert_close(logits_of(stored), logits_of(rounded), **SAME)
    for name, part in model.named_modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            wanted = tl.int8.dequantize(*tl.int8.quantize(part.weight))
            assert torch.equal(stored.get_submodule(name).weight, wanted)


def checkpoint(model):
    wanted = logits_of(model)
    with tempfile.TemporaryDirectory() as folder:
        tl.save_checkpoint(Path(folder) / "file", model)
        read = tl.load_checkpoint(Path(folder) / "file").model
    assert read.config == model.config
    torch.testing.assert_close(logits_of(read), wanted, **SAME)


def recording(model):
    wanted, copied, config = logits_of(model), copy.deepcopy(model), model.config
    with tl.record_attention(copied) as record:
        torch.testing.assert_close(copied(*pair(config)), wanted, **SAME)
    assert len(record) == 3 * config.n_layers
    heads = [part.n_heads for part in model.modules() if isinstance(part, tl.MultiHeadAttention)]
    assert [weights.shape[1] for weights in record.values()] == heads
    assert not record["decoder.layers.0.cross_attention"][2, ..., 5:].any()  # padding


def interventions(model):
    """A key that is cut is one that the mask hides, and a patch by the same output changes nothing."""
    copied, (src, tgt) = copy.deepcopy(model), pair(model.config)
    with tl.patch(copied, "encoder", lambda memory: memory):
        torch.testing.assert_close(copied(src, tgt), logits_of(model), **SAME)
    hidden, copied = copy.deepcopy(model), copy.deepcopy(model)
    own = hidden.src_mask
    hidden.src_mask = lambda ids: own(ids) & (torch.arange(ids.shape[1]) != 1)
    with tl.cut(copied, key=1):
        torch.testing.assert_close(copied(src, tgt), hidden(src, tgt), **SAME)


def in_numpy(model):
    sizes = by_hand.Sizes.of(model.config.to_dict())
    arrays = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    src, tgt = (ids.numpy() for ids in pair(model.config))
    np.testing.assert_allclose(by_hand.forward(arrays, sizes, src, tgt)[0], logits_of(model), **SAME)
    said = greedy_by_forward(model, torch.tensor(src), 5)
    assert by_hand.greedy(arrays, sizes, src, 5).tolist() == said.tolist()


def learners_parts(model):
    own = AssembledTransformer(copy.deepcopy(model), Parts({}))
    torch.testing.assert_close(own(*pair(model.config)), logits_of(model), **SAME)
    src = pair(model.config)[0]
    assert torch.equal(tl.greedy_decode(own, src, max_new_tokens=5), greedy_by_forward(model, src, 5))


def cost(model):
    """PyTorch's counter sees the products of the readable path while attention is recorded: two operations each."""
    src, tgt = (ids[:1] for ids in pair(model.config))
    with tl.record_attention(model), FlopCounterMode(display=False) as counter, torch.no_grad():
        model(src, tgt)
    assert costs.transformer_cost(model.config, 7, 11).total == counter.get_total_flops() // 2


def from_torch(model):
    """PyTorch's translator is our model with the layers that `from_torch` makes of its own."""
    theirs = randomise(TorchTranslator(model.config), 2.0).eval()
    converted, ours = interop.from_torch(theirs.transformer), copy.deepcopy(model)
    ours.encoder, ours.decoder = converted.encoder, converted.decoder
    for name in ("src_embedding", "tgt_embedding", "output_head"):
        setattr(ours, name, getattr(theirs, name))
    real = pair(model.config)[1] != model.config.pad_id
    torch.testing.assert_close(logits_of(theirs)[real], logits_of(ours)[real], **SAME)


Consumer = Callable[[tl.Transformer], None]
OF_CONFIG: dict[str, Consumer] = {"by_hand": in_numpy, "costs": cost, "from_torch": from_torch}  # see no parts
OF_MODEL: dict[str, Consumer] = {
    "fast_loss": fast_loss,
    "fast_decoding": fast_decoding,
    "cache": cache,
    "decoding": decoding,
    "serving": serving_in_turns,
    "blockwise": in_blocks,
    "export": exported,
    "int8": eight_bits,
    "checkpoint": checkpoint,
    "record_attention": recording,
    "interventions": interventions,
    "mine": learners_parts,
}
CONSUMERS = OF_CONFIG | OF_MODEL


def ask(consumer: Consumer, model: nn.Module, name: str) -> None:
    """Fail unless the consumer computes what the model computes, or refuses it by the name of a field or attribute."""
    try:
        consumer(model)
    except (TypeError, ValueError) as refusal:
        if not any(word in str(refusal) for word in (name, *SAID.get(name, ()))):
            raise AssertionError(f"a refusal must name {name}, got: {refusal}") from refusal


@pytest.mark.parametrize("name", CONSUMERS)
def test_nothing_is_refused_by_default(name):
    CONSUMERS[name](build(BASE))


@pytest.mark.parametrize("name", CONSUMERS)
@pytest.mark.parametrize(("field", "value"), CASES)
def test_the_same_numbers_or_a_refusal(field, value, name):
    ask(CONSUMERS[name], build(changed(field, value)), field)


# The models that are built from a config and are something else ------------------------------------------------------

OWN: dict[str, Callable[[tl.TransformerConfig], nn.Module]] = {
    "Transformer": tl.Transformer,
    "SelfOnlyTransformer": SelfOnlyTransformer,
    "TorchTranslator": TorchTranslator,
    "GRUTranslator": lambda config: GRUTranslator(config, 13),
    "DecoderOnlyTranslator": tl.DecoderOnlyTranslator,
    "Reader": lambda config: Reader(config, PARTS),
}
NEEDS = {"DecoderOnlyTranslator": {"position": "rotary"}}  # it refuses BASE's


@torch.no_grad()
def look_at(model: nn.Module) -> dict[str, Any]:
    """Return what a field may change: shapes, numbers in evaluation and in training, what is said, what is too long."""
    generator = torch.Generator().manual_seed(2)
    src, tgt = (torch.randint(23, (5, length), generator=generator) for length in (7, 11))  # special ids among them
    torch.manual_seed(3)
    seen = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    seen |= {"logits": model.eval()(src, tgt), "training": model.train()(src, tgt)}
    draws = {"temperature": 1e3, "max_new_tokens": 17, "generator": torch.Generator().manual_seed(0)}
    seen["said"] = tl.sample_decode(model, src, **draws).tolist()
    seen["heads"] = {part.n_heads for part in model.modules() if isinstance(part, tl.MultiHeadAttention)}
    try:
        model(src.repeat(1, 4)[:, :23], tgt)
    except ValueError as refusal:
        seen["too long"] = str(refusal)
    return seen


def is_used(make: Callable[[tl.TransformerConfig], nn.Module], *configs: tl.TransformerConfig) -> bool:
    """Return whether two configs make different models, from the same random numbers."""
    seen = []
    for config in configs:
        torch.manual_seed(0)
        seen.append(look_at(make(config)))
    return seen[0].keys() != seen[1].keys() or any(not same(one, seen[1][name]) for name, one in seen[0].items())


def same(one: object, other: object) -> bool:
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def ask_own(make: Callable[[tl.TransformerConfig], nn.Module], base: tl.TransformerConfig, field: str, value) -> None:
    """Fail unless a model uses a field, refuses it by name, or says truly in UNUSED that it does not."""
    base = replace(base, **BESIDES.get(field, {}))
    unused = getattr(type(make(base)), "UNUSED", frozenset())
    try:
        used = is_used(make, base, replace(base, **{field: value}))
    except ValueError as refusal:
        assert field in str(refusal), f"a refusal must name {field}, got: {refusal}"
        return
    if used and field in unused:
        raise AssertionError(f"UNUSED must name what makes no difference, and {field} makes one")
    if not used and field not in unused:
        raise AssertionError(f"{field} makes no difference: it must be used, refused by name, or be named in UNUSED")


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(("field", "value"), CASES)
def test_a_model_of_its_own_uses_a_field_or_says_that_it_does_not(field, value, name):
    base = replace(BASE, **NEEDS.get(name, {}))
    if getattr(base, field) == value:
        base = replace(base, **{field: "none"})  # the base's own value is off the default here
    ask_own(OWN[name], base, field, value)


def test_every_choice_of_an_option_is_asked_for():
    """A new activation, or a new kind of position, that no table had would be computed with by nobody here."""
    assert {BASE.position, *VALUES["position"]} == set(POSITION_KINDS)
    assert {"relu", *ATTRIBUTES[tl.FeedForward, "activation"]} == {"relu", *OPTIONS["activation"]} == set(ACTIVATIONS)


def test_every_model_that_is_built_from_a_config_is_asked():
    """One that is not in OWN would ignore a new field, and nobody would hear of it."""
    own = [one for one in _subclasses(nn.Module) if one.__module__.startswith(("transformer_lib", "studies"))]
    found = {
        one for one in own if "TransformerConfig" in str(getattr(vars(one).get("__init__"), "__annotations__", {}))
    }
    made = {type(make(replace(BASE, **NEEDS.get(name, {})))) for name, make in OWN.items()}
    assert len(found) > 4 and sorted(one.__name__ for one in found - made) == []


def _subclasses(kind: type) -> set[type]:
    """Return all classes derived from one, of every module of the library, the course and the studies."""
    for package in (tl, studies):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found: set[type] = set()
    waiting = [kind]
    while waiting:
        new = set(waiting.pop().__subclasses__()) - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("name", OWN)
def test_what_is_unused_is_a_field(name):
    made = OWN[name](replace(BASE, **NEEDS.get(name, {})))
    assert getattr(type(made), "UNUSED", frozenset()) <= VALUES.keys()


# The question can be answered with no --------------------------------------------------------------------------------


def ignores_the_order_of_norms(model):
    other = tl.Transformer(replace(model.config, norm_first=False)).eval()
    other.load_state_dict(model.state_dict(), strict=False)
    torch.testing.assert_close(logits_of(other), logits_of(model), **SAME)


def refuses(message):
    def consumer(model):
        raise ValueError(message)

    return consumer


def test_a_consumer_that_ignores_a_field_is_caught():
    model = build(changed("norm_first", True))
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        ask(ignores_the_order_of_norms, model, "norm_first")
    with pytest.raises(AssertionError, match="a refusal must name norm_first, got: something is wrong"):
        ask(refuses("something is wrong"), model, "norm_first")
    ask(refuses("norm_first must be False, got True"), model, "norm_first")
    ask(ignores_the_order_of_norms, build(BASE), "norm_first")


class Deaf(tl.Transformer):
    """Ignores the hidden width, and says so of one field only."""

    UNUSED = frozenset({"dropout"})

    def __init__(self, config):
        super().__init__(replace(config, d_ff=5, d_model=30))
        self.config = config


def test_a_model_that_ignores_a_field_is_caught():
    with pytest.raises(AssertionError, match="d_ff makes no difference: it must be used, refused by name, or be named"):
        ask_own(Deaf, BASE, "d_ff", 13)
    with pytest.raises(AssertionError, match="UNUSED must name what makes no difference, and dropout makes one"):
        ask_own(Deaf, BASE, "dropout", 0.4)
    with pytest.raises(AssertionError, match="a refusal must name max_len, got: .*no positions"):
        ask_own(TooShort, BASE, "max_len", 19)
    ask_own(Deaf, BASE, "n_heads", 5)


class TooShort(tl.Transformer):
    def __init__(self, config):
        super().__init__(config)
        if config.max_len == 19:
            raise ValueError("there are no positions")


# What is set on a model's parts --------------------------------------------------------------------------------------

ATTRIBUTES: dict[tuple[type, str], tuple[Any, ...]] = {
    (nn.Embedding, "max_norm"): (2.0,),
    (nn.Embedding, "padding_idx"): (WORDS[0],),
    (nn.Embedding, "scale_grad_by_freq"): (True,),
    (nn.Embedding, "sparse"): (),  # which form gradients take
    (nn.Dropout, "p"): (0.4,),
    (nn.Dropout, "inplace"): (True,),
    (tl.MultiHeadAttention, "n_heads"): (5,),
    (tl.MultiHeadAttention, "d_k"): (),  # tells what w_q has
    (tl.MultiHeadAttention, "d_v"): (),
    (tl.MultiHeadAttention, "dropout"): (0.4,),
    (tl.MultiHeadAttention, "position"): (),  # None where there is no module
    (tl.FeedForward, "activation"): ("gelu", "gelu_tanh"),
    (tl.LayerNorm, "eps"): (0.3,),
    (tl.model.layers.Residual, "norm_first"): (True,),
    (tl.RotaryPosition, "base"): (37.0,),
    (tl.RotaryPosition, "pairs"): ("halves",),
    (tl.RotaryPosition, "scaling"): (tl.RotaryScaling(factor=3.0),),
    (tl.RelativeBias, "max_offset"): (3,),
}
FOR_TRAINING = {"p", "inplace", "dropout", "padding_idx", "scale_grad_by_freq"}
SETTINGS = [
    pytest.param(kind, name, value, every, id=f"{kind.__name__}.{name}={value}-{'all' if every else 'one'}")
    for (kind, name), values in ATTRIBUTES.items()
    for value in values
    for every in ((False, True) if name in COMPUTING else (False,))
]


def set_on(kind: type, name: str, value: object, every: bool) -> tl.Transformer:
    """Return a model without dropout in which the last part of this kind, or every one, has another attribute."""
    position = {tl.RotaryPosition: "rotary", tl.RelativeBias: "relative"}.get(kind, "sinusoidal")
    model = build(replace(BASE, dropout=0.0, position=position))
    parts = [part for part in model.modules() if isinstance(part, kind)]
    for part in parts if every else parts[-1:]:
        setattr(part, name, value)
    return model


def test_each_attribute_of_a_part_has_a_value():
    configs = [replace(BASE, position=kind, norm_first=first) for kind in POSITIONS for first in (False, True)]
    parts = [part for config in configs for part in tl.Transformer(config).modules()]
    found = {(type(part), name) for part in parts for name in plain_attributes(part)}
    assert found == ATTRIBUTES.keys(), "give a new attribute of a layer a value off its default in ATTRIBUTES"


@pytest.mark.parametrize(("kind", "name", "value", "every"), SETTINGS)
def test_an_attribute_makes_a_difference(kind, name, value, every):
    wanted, found = logits_of(set_on(kind, name, value, every)), logits_of(set_on(kind, "nothing", value, every))
    assert torch.equal(wanted, found) == (name in FOR_TRAINING)


@pytest.mark.parametrize("consumer", OF_MODEL)
@pytest.mark.parametrize(("kind", "name", "value", "every"), SETTINGS)
def test_a_changed_part_is_used_or_refused(kind, name, value, every, consumer):
    at_scores = kind in (tl.RotaryPosition, tl.RelativeBias)  # some take no model with such a position
    ask(OF_MODEL[consumer], set_on(kind, name, value, every), "position" if at_scores else name)


def untied(model):
    model.output_head.weight = nn.Parameter(2 * model.output_head.weight.detach())
    return model


def tied(model):
    model.output_head.weight = model.tgt_embedding.weight
    return model


@pytest.mark.parametrize("consumer", OF_MODEL)
@pytest.mark.parametrize("change", [untied, tied])
def test_tables_that_are_shared_otherwise_are_used_or_refused(change, consumer):
    ask(OF_MODEL[consumer], change(build(changed("tie_embeddings", change is untied))), "tie_embeddings")


# The fields of `modern.Config` ---------------------------------------------------------------------------------------

SMALL = {"vocab_size": 23, "d_model": 13, "n_heads": 6, "n_layers": 2, "d_ff": 17, "d_head": 10}
MODERN: dict[str, tuple[Any, ...]] = {
    "vocab_size": (29,),
    "d_model": (11,),
    "n_heads": (4,),
    "n_layers": (3,),
    "d_ff": (19,),
    "n_kv_heads": (3,),
    "d_head": (8,),
    "norm": ("layer",),
    "eps": (0.3,),
    "feed_forward": ("relu", "gelu", "experts"),
    "rope_base": (50.0,),
    "rope_scaling": (tl.RotaryScaling(factor=3.0), tl.RotaryScaling(factor=3.0, original_length=7, low=0.5, high=2.0)),
    "rotary_layers": ((True, False), (False, False)),
    "pairs": ("neighbours",),
    "qkv_bias": (True,),
    "qk_norm": (True,),
    "window": (3,),
    "n_experts": (5,),
    "experts_per_token": (3,),
    "tied": (False,),
    "embedding_scale": (3.0,),
}
MODERN_BESIDES = {name: {"feed_forward": "experts"} for name in ("n_experts", "experts_per_token")}
MODERN_CASES = [
    pytest.param(name, value, id=label(name, value, values)) for name, values in MODERN.items() for value in values
]


def modern_config(**changes) -> modern.Config:
    return modern.Config(**SMALL | changes)


def build_modern(config: modern.Config) -> modern.LanguageModel:
    torch.manual_seed(0)
    return randomise(modern.LanguageModel(config), 2.0).eval()


def ids_of(batch: int = 3, length: int = 11) -> torch.Tensor:
    return torch.randint(23, (batch, length), generator=torch.Generator().manual_seed(1))


def modern_cache(model):
    kept = model.new_cache()
    pieces = [model(piece, kept) for piece in ids_of().split([2, 5, 1, 3], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(ids_of()), **SAME)
    assert kept.bytes == 3 * model.config.cache_bytes(11, bytes_each=8)


def modern_int8(model):
    stored, rounded = (change(model) for change in (tl.int8.quantized, tl.int8.rounded))
    torch.testing.assert_close(stored(ids_of()), rounded(ids_of()), **SAME)


def modern_patch(model):
    with tl.patch(model, "layers.0", lambda x: x):
        patched = model(ids_of())
    torch.testing.assert_close(patched, model(ids_of()), **SAME)


def modern_generate(model):
    steps = [list(tl.generate(model, ids_of(), max_new_tokens=7, use_cache=use)) for use in (True, False)]
    said, again = (torch.stack(tokens, dim=1) for tokens in steps)
    logits = model(torch.cat((ids_of(), said), dim=1))
    assert torch.equal(said, again) and torch.equal(logits[:, 10:-1].argmax(dim=-1), said)


def modern_cut(model):
    """A key that nobody reads may be anything."""
    with tl.cut(model, key=4, query=range(5, 11)):
        wanted, ids = model(ids_of()), ids_of()
        ids[:, 4] = (ids[:, 4] + 1) % 23
        torch.testing.assert_close(model(ids)[:, 5:], wanted[:, 5:], **SAME)


def modern_record(model):
    with tl.record_attention(model) as record:
        model(ids_of())
    visible = modern.window_mask(11, window=model.config.window)
    for weights in record.values():
        assert weights.shape[1] == model.config.n_heads and torch.equal(weights > 0, visible.expand_as(weights))
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3], dtype=weights.dtype))


def modern_steps(model):
    stepper = ModernStepper(model, 3, 11)
    found = [stepper.next_logits(piece) for piece in ids_of().split([2, 5, 1, 3], dim=1)]
    torch.testing.assert_close(torch.stack(found, dim=1), model(ids_of())[:, [1, 6, 7, 10]], **SAME)


def todays_parts(model):
    torch.testing.assert_close(mine.today(model)(ids_of()), model(ids_of()), **SAME)


MODERN_CONSUMERS: dict[str, Callable[[modern.LanguageModel], None]] = {
    "cache": modern_cache,
    "generate": modern_generate,
    "int8": modern_int8,
    "patch": modern_patch,
    "cut": modern_cut,
    "record": modern_record,
    "circuits": lambda model: traced(model),
    "steps": modern_steps,
    "mine": todays_parts,
}


def test_each_field_of_today_has_a_value_off_its_default():
    assert problem_of(MODERN, defaults_of(modern_config())) is None, problem_of(MODERN, defaults_of(modern_config()))


@pytest.mark.parametrize(("field", "value"), MODERN_CASES)
def test_todays_model_uses_each_field(field, value):
    models = [build_modern(modern_config(**MODERN_BESIDES.get(field, {}) | change)) for change in ({}, {field: value})]
    shapes = [{name: tensor.shape for name, tensor in model.state_dict().items()} for model in models]
    assert shapes[0] != shapes[1] or not torch.equal(*(model(ids_of()) for model in models))


@torch.no_grad()
@pytest.mark.parametrize("name", MODERN_CONSUMERS)
@pytest.mark.parametrize(("field", "value"), [pytest.param("d_ff", 17, id="default"), *MODERN_CASES])
def test_the_same_numbers_or_a_refusal_today(field, value, name):
    model = build_modern(modern_config(**MODERN_BESIDES.get(field, {}), **{field: value}))
    ask(MODERN_CONSUMERS[name], model, field)


def test_attention_in_blocks_refuses_a_model_of_today():
    model = build_modern(modern_config())
    with pytest.raises(ValueError, match="model must contain a MultiHeadAttention"), blockwise.blockwise_in(model):
        pass


# What configurations of transformers say of each field; None where they say nothing, as all their models are alike.
IN_HF: dict[str, dict[str, Any] | None] = {
    "vocab_size": {"vocab_size": 29},
    "d_model": {"hidden_size": 11},
    "n_heads": {"num_attention_heads": 4, "num_key_value_heads": 4},
    "n_layers": {"num_hidden_layers": 3},
    "d_ff": {"intermediate_size": 19},
    "n_kv_heads": {"num_key_value_heads": 3},
    "d_head": {"head_dim": 8},
    "norm": None,
    "eps": {"rms_norm_eps": 0.3},
    "feed_forward": {"model_type": "mixtral"},
    "rope_base": {"rope_theta": 50.0},
    "rope_scaling": {"rope_scaling": {"rope_type": "linear", "factor": 3.0}},
    "rotary_layers": {"model_type": "smollm3", "no_rope_layers": [1, 0]},
    "pairs": None,
    "qkv_bias": {"model_type": "qwen2"},
    "qk_norm": {"model_type": "qwen3"},
    "window": {"model_type": "mistral", "sliding_window": 3},
    "n_experts": {"model_type": "mixtral", "num_local_experts": 5},
    "experts_per_token": {"model_type": "mixtral", "num_experts_per_tok": 3},
    "tied": {"tie_word_embeddings": False},
    "embedding_scale": None,
}
LLAMA = {
    "model_type": "llama",
    "vocab_size": 23,
    "hidden_size": 13,
    "num_attention_heads": 6,
    "num_hidden_layers": 2,
    "intermediate_size": 17,
    "head_dim": 10,
    "num_key_value_heads": 6,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


def test_each_field_of_today_is_read_from_a_config_of_transformers_or_none_says_it():
    assert IN_HF.keys() == MODERN.keys(), "say in IN_HF what a configuration of transformers says of a new field"
    plain = interop.hf_config(LLAMA)
    assert replace(plain, n_kv_heads=None) == modern_config()
    for field, said in IN_HF.items():
        read = getattr(interop.hf_config(LLAMA | (said or {})), field)
        assert (read == getattr(plain, field)) == (said is None), field
        assert said is None or read in MODERN[field], field


# The options of `LanguageModel` and its layers -----------------------------------------------------------------------

OPTIONS: dict[str, tuple[Any, ...]] = {
    "position": ("sinusoidal", "learned", "relative", "none"),
    "max_len": (19,),
    "scale": (3.0,),
    "dropout": (0.4,),
    "norm_first": (True,),
    "attention_bias": (True,),
    "bias": (False,),
    "activation": ("gelu", "gelu_tanh"),
    "final_norm": (True,),
}
OPTION_CASES = [
    pytest.param(name, one, id=label(name, one, values)) for name, values in OPTIONS.items() for one in values
]


def build_stack(**options) -> tl.LanguageModel:
    torch.manual_seed(0)
    return randomise(tl.LanguageModel(23, 2, 30, 3, 17, **options), 2.0).eval()


def options_of(*classes: type) -> dict[str, Any]:
    """Return the keywords with defaults of these constructors."""
    kinds = [inspect.signature(kind).parameters.values() for kind in classes]
    return {one.name: one.default for each in kinds for one in each if one.default is not one.empty}


def traced(model):
    """The pieces add up to the streams, the contributions to the logits, and a head put in its own place is nothing."""
    ids, wanted, circuits = ids_of(), model(ids_of()), tl.circuits
    run = circuits.trace(model, ids)
    torch.testing.assert_close(run.logits, wanted, **SAME)
    torch.testing.assert_close(sum(circuits.contributions(model, ids).values()), wanted, **SAME)
    torch.testing.assert_close(circuits.logit_lens(model, ids)[-1], wanted, **SAME)
    with circuits.replace_head(model, 1, 2, run.heads[1][:, 2]):
        torch.testing.assert_close(model(ids), wanted, **SAME)
    path = {"sender": "0.1", "layer": 1, "head": 2, "into": "keys"}
    torch.testing.assert_close(circuits.patch_path(model, ids, ids, **path), wanted, **SAME)


def stack_of_parts(model):
    own = mine.assembled_stack(model.embedding, model.stack, parts=())
    ids = ids_of() % 22 + 1  # no padding, which the learner's mask hides
    torch.testing.assert_close(own(ids), tl.LanguageModel.forward(with_position(model), ids), **SAME)


def with_position(model):
    """Return the model with the positions and the scale that `assembled_stack` says it has."""
    other = copy.deepcopy(model)
    other.position, other.scale = tl.SinusoidalPosition(512, 30), 30**0.5
    return other


def stack_int8(model):
    stored, rounded = (change(model) for change in (tl.int8.quantized, tl.int8.rounded))
    torch.testing.assert_close(stored(ids_of()), rounded(ids_of()), **SAME)


def stack_in_blocks(model):
    wanted = model(ids_of())
    with blockwise.blockwise_in(model, block=3):
        torch.testing.assert_close(model(ids_of()), wanted, **SAME)


STACK_CONSUMERS = {"circuits": traced, "mine": stack_of_parts, "int8": stack_int8, "blockwise": stack_in_blocks}


def test_each_option_of_a_stack_has_a_value_off_its_default():
    defaults = options_of(tl.LanguageModel, tl.Encoder, tl.EncoderLayer) | options_of(tl.LanguageModel)
    assert problem_of(OPTIONS, defaults) is None, problem_of(OPTIONS, defaults)


@pytest.mark.parametrize(("option", "value"), OPTION_CASES)
def test_a_stack_uses_each_option(option, value):
    seen = []
    for model in (build_stack(), build_stack(**{option: value})):
        torch.manual_seed(0)
        too_long = "accepted"
        try:
            model(ids_of(length=23))
        except ValueError as refusal:
            too_long = str(refusal)
        shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
        seen.append((shapes, too_long, model(ids_of()).tolist(), model.train()(ids_of()).tolist()))
    assert seen[0] != seen[1]


@torch.no_grad()
@pytest.mark.parametrize("name", STACK_CONSUMERS)
@pytest.mark.parametrize(("option", "value"), [pytest.param("dropout", 0.0, id="default"), *OPTION_CASES])
def test_the_same_numbers_or_a_refusal_of_a_stack(option, value, name):
    model = build_stack(**{"norm_first": name == "circuits", "position": "none", option: value})
    ask(STACK_CONSUMERS[name], model, option)


# Functions in place of those of `by_hand` -----------------------------------------------------------------------------

OWN_FUNCTIONS = sorted(
    name
    for module in (by_hand.parts, by_hand.blocks, by_hand.model, by_hand.training)
    for name, value in vars(module).items()
    if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
)


class Called(Exception):
    pass


@pytest.mark.parametrize("name", OWN_FUNCTIONS)
def test_what_takes_the_place_of_a_function_is_called_or_refused(name):
    sizes = by_hand.Sizes(src_vocab_size=11, tgt_vocab_size=13, d_model=6, n_heads=3, n_layers=1, d_ff=7)
    batch = np.array([[5, 4, 3]]), np.array([[1, 3, 4, 5, 2]])

    def replacement(*arguments, **options):
        raise Called

    def use():
        with by_hand.replaced(**{name: replacement}):
            by_hand.train(by_hand.new_parameters(sizes), sizes, [batch], rate=lambda step: 0.01)

    with pytest.raises((Called, ValueError), match=f"^$|none of them calls '{name}'"):
        use()


# Compiled models, and weights that are computed from others ----------------------------------------------------------

DEEP = replace(BASE, n_layers=2)


def compiled_from(model):
    return torch.compile(model, backend="eager")


def compiled_in_place(model):
    model.compile(backend="eager")
    return model


def compiled_stack(model):
    parts = {tl.Transformer: "encoder", modern.LanguageModel: "layers.1"}
    model.get_submodule(parts.get(type(model), "stack")).compile(backend="eager")
    return model


@pytest.fixture
def _forget_graphs():
    yield
    torch._dynamo.reset()


COMPILED = [
    pytest.param(way, called, id=f"{way.__name__}-{'called before' if called else 'not called'}")
    for way, called in (
        (compiled_from, False),
        (compiled_in_place, False),
        (compiled_in_place, True),
        (compiled_stack, True),
    )
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("_forget_graphs")
@torch.no_grad()
@pytest.mark.parametrize(("way", "called"), COMPILED)
def test_looking_into_a_compiled_model_of_today_is_refused(way, called):
    model = way(build_modern(modern_config()))
    if called:
        model(ids_of())
    for look in (lambda: tl.record_attention(model), lambda: tl.cut(model, key=0)):
        with pytest.raises(ValueError, match="model must not be compiled, but (it|layers.1) is: take"), look():
            pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when it compiles in place
@pytest.mark.usefixtures("_forget_graphs")
@torch.no_grad()
@pytest.mark.parametrize(("way", "called"), COMPILED)
def test_hooks_on_parts_of_a_compiled_model_are_refused(way, called):
    """Its graph would pass by them, and the model would say what it says without."""
    model = way(build(DEEP))
    if called:
        model(*pair(DEEP))
    for change in (
        lambda: tl.cut(model, key=0),
        lambda: tl.cut(model, key=0, layer=1),
        lambda: tl.patch(model, "encoder.layers.0.feed_forward", lambda x: 0 * x),
    ):
        with pytest.raises(ValueError, match="model must not be compiled, but (it|encoder) is: take"), change():
            pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("_forget_graphs")
@torch.no_grad()
@pytest.mark.parametrize(
    "built", [lambda: build_stack(norm_first=True), lambda: build_modern(modern_config())], ids=["stack", "today"]
)
@pytest.mark.parametrize(("way", "called"), COMPILED)
def test_a_circuit_of_a_compiled_model_is_refused(way, called, built):
    model, ids, circuits = way(built()), ids_of(), tl.circuits
    if called:
        model(ids)
    path = {"sender": "0.1", "layer": 1, "head": 2, "into": "keys"}
    for use in (
        lambda: circuits.trace(model, ids),
        lambda: circuits.ablate_head(model, 1, 2).__enter__(),
        lambda: circuits.replace_head(model, 1, 2, torch.zeros(())).__enter__(),
        lambda: circuits.patch_path(model, ids, ids, **path),
        lambda: circuits.patch_heads(model, ids, torch.zeros(()), lambda logits: logits[..., 0]),
    ):
        with pytest.raises((TypeError, ValueError), match="must not be compiled|got OptimizedModule"):
            use()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("_forget_graphs")
@torch.no_grad()
def test_what_is_compiled_itself_takes_a_hook():
    model, changed = build(DEEP), build(DEEP)
    for part in (changed.encoder.layers[0].self_attention, changed.encoder.layers[0].feed_forward):
        part.compile(backend="eager")
    changed(*pair(DEEP))
    for change in (
        lambda model: tl.cut(model, key=0, layer=0),
        lambda model: tl.patch(model, "encoder.layers.0.feed_forward", lambda x: 0 * x),
        lambda model: tl.patch(model, "decoder.layers.1", lambda x: x.flip(0)),
    ):
        with change(model), change(changed):
            torch.testing.assert_close(changed(*pair(DEEP)), model(*pair(DEEP)), **SAME)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("_forget_graphs")
@torch.no_grad()
@pytest.mark.parametrize("way", [compiled_from, compiled_in_place])
def test_a_compiled_model_is_read_recorded_copied_and_rounded(way):
    wanted, model = logits_of(build(DEEP)), way(build(DEEP))
    torch.testing.assert_close(model(*pair(DEEP)), wanted, **SAME)
    with tl.record_attention(model) as record:
        torch.testing.assert_close(model(*pair(DEEP)), wanted, **SAME)
    names = [name.removeprefix("_orig_mod.") for name in record]
    assert names[0] == "encoder.layers.0.self_attention" and len(names) == 6
    torch.testing.assert_close(logits_of(copy.deepcopy(model)), wanted, **SAME)
    for convert in (tl.int8.quantized, tl.int8.rounded):
        torch.testing.assert_close(logits_of(convert(model)), logits_of(convert(build(DEEP))), **SAME)
    with pytest.raises(ValueError, match="the model is compiled"):
        require_fast(model)
    assert "the model is compiled" in export.unsupported(model)


def normed(model):
    for part in list(model.modules()):
        if type(part) is nn.Linear:
            nn.utils.parametrizations.weight_norm(part)
    return model


@torch.no_grad()
@pytest.mark.parametrize("name", OF_MODEL)
def test_a_model_with_normed_weights_is_read_or_refused(name):
    """What needs the weights themselves says which layer has none."""
    try:
        with torch.enable_grad():
            OF_MODEL[name](normed(build(BASE)))
    except ValueError as refusal:
        assert re.search("ParametrizedLinear|computes its weights? from others", str(refusal))
