"""What cannot take the fast path is refused with the reason, and what changes nothing changes nothing."""

from __future__ import annotations

import contextlib
import copy
from unittest.mock import patch

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

import transformer_lib as tl
from factories import BATCH, POSITIONS, make_model, random_ids, sources
from transformer_lib.baselines import GRUTranslator, SelfOnlyTransformer
from transformer_lib.fast.eligibility import fastest_path, obstacle, require_fast
from transformer_lib.model.cache import KeyValueCache
from transformer_lib.model.layers import Residual

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_nothing_is_in_the_way_of_a_plain_transformer(position, norm_first):
    model = make_model(position=position, norm_first=norm_first)
    assert obstacle(model) is None and obstacle(copy.deepcopy(model)) is None
    assert fastest_path(model) == "fast"


@pytest.mark.parametrize(
    "other", [SelfOnlyTransformer, lambda config: GRUTranslator(config, 8), lambda config: nn.Linear(3, 5)]
)
def test_another_model_is_refused(other):
    model = other(make_model().config)
    with pytest.raises(ValueError, match=f"the model is a {type(model).__name__}, not a Transformer: take path="):
        require_fast(model)
    assert fastest_path(model) == "readable"


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def put(path, value):
    """Return a change of a model: it gets this value there."""
    owner, _, name = path.rpartition(".")
    return lambda model: setattr(model.get_submodule(owner), name, value)


def watched(path, kind):
    return lambda model: getattr(model.get_submodule(path), f"register_{kind}_hook")(lambda *_: None)


HOOK, OTHER = "has a hook", "where its config builds"
OWN = "decoder.layers.0.self_attention"
CHANGES = [
    (
        put("decoder.layers.1.feed_forward.expand", Doubled(30, 17)),
        f"decoder.layers.1.feed_forward.expand is a Doubled .*, {OTHER} a Linear",
    ),
    (put(f"{OWN}.w_v.forward", abs), f"{OWN}.w_v has a forward of its own"),
    (put("tgt_mask", lambda *_: None), "the model has a tgt_mask of its own"),
    (watched(f"{OWN}.w_o", "forward"), f"{OWN}.w_o {HOOK}"),
    (watched("encoder", "forward_pre"), f"encoder {HOOK}"),
    (watched(OWN, "full_backward"), f"{OWN} {HOOK}"),
    (watched(OWN, "full_backward_pre"), f"{OWN} {HOOK}"),
    (
        put(OWN, tl.MultiHeadAttention(30, 3, bias=True)),
        rf"{OWN}.w_k is a Linear \(weight \(30, 30\), bias \(30,\)\), {OTHER} a Linear",
    ),
    (put("output_head", nn.Linear(30, 29)), f"output_head is a Linear .*bias .*, {OTHER}"),
    (put(f"{OWN}.w_v", nn.Linear(30, 30)), f"{OWN}.w_v is a Linear .*bias .*, {OTHER}"),
    (
        put("encoder.layers.0.feed_forward_residual.norm", nn.Identity()),
        f"encoder.layers.0.feed_forward_residual.norm is a Identity, {OTHER} a LayerNorm",
    ),
    (put("dropout", nn.Identity()), f"dropout is a Identity, {OTHER} a Dropout"),
    (put(OWN, tl.MultiHeadAttention(30, 5)), f"{OWN}.n_heads is 5, {OTHER} 3"),
    (put(f"{OWN}.d_k", 5), f"{OWN}.d_k is 5, {OTHER} 10"),
    (put("tgt_embedding.max_norm", 0.5), f"tgt_embedding.max_norm is 0.5, {OTHER} None"),
    (
        lambda model: model.encoder.layers.append(copy.deepcopy(model.encoder.layers[0])),
        f"encoder.layers.2 is a EncoderLayer, {OTHER} nothing",
    ),
    pytest.param(  # the warning is torch's own
        lambda model: model.compile(),
        "the model is compiled",
        marks=pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    ),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES)
def test_a_changed_model_is_refused_with_the_reason(change, reason):
    model, (src, tgt) = make_model(), pair()
    loss = tl.TrainingLoss(model, path="fast")
    change(model)
    with pytest.raises(ValueError, match=f'path="fast" must not change what is computed, but {reason}.*"readable"'):
        loss(src, tgt)
    with pytest.raises(ValueError, match=reason):
        tl.greedy_decode(model, src, max_new_tokens=3, path="fast")


def pair():
    src, tgt = random_ids(23, BATCH, 7, padded=True), random_ids(29, BATCH, 12, seed=1, padded=True)
    tgt[:, 0] = 1
    return src, tgt


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tl.Transformer, "forward"),
        (tl.Transformer, "src_mask"),
        (tl.MultiHeadAttention, "forward"),
        (tl.MultiHeadAttention, "split_heads"),
        (tl.EncoderLayer, "forward"),
        (Residual, "forward"),
        (nn.Linear, "forward"),
        (nn.Dropout, "forward"),
        (nn.Module, "__call__"),
    ],
)
def test_a_patched_class_is_refused(kind, name):
    model = make_model()
    own = getattr(kind, name)
    with patch.object(kind, name, lambda *args, **options: own(*args, **options)):
        assert obstacle(model) == f"{kind.__name__}.{name} has been replaced"
    assert obstacle(model) is None


def test_a_method_added_to_a_class_is_refused():
    """A `__call__` of its own would come before that of nn.Module."""
    with patch.object(tl.LayerNorm, "__call__", lambda self, x: x, create=True):
        assert obstacle(make_model()) == "LayerNorm.__call__ has been added"
    assert obstacle(make_model()) is None


def test_a_method_that_hides_none_may_be_added():
    """Other libraries give nn.Module methods of their own."""
    with patch.object(nn.Module, "smart_apply", lambda self: self, create=True):
        assert obstacle(make_model()) is None


def test_a_recorded_model_is_refused():
    model = make_model()
    with tl.record_attention(model):
        assert obstacle(model) == "the attention of decoder.layers.1.cross_attention is being recorded"
        with pytest.raises(ValueError, match="is being recorded: take path="):
            tl.beam_search(model, sources(), beam_size=2, max_new_tokens=3, path="fast")
    assert obstacle(model) is None


def test_a_hook_on_all_modules_is_refused():
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert obstacle(make_model()) == "a hook watches all modules"
    finally:
        handle.remove()


def test_the_counter_of_operations_may_watch():
    model, (src, tgt) = make_model(), pair()
    with FlopCounterMode(display=False) as counter:
        tl.TrainingLoss(model, path="fast")(src, tgt)
    assert counter.get_total_flops() > 0


def test_an_unknown_path_is_refused():
    message = "path must be one of 'readable', 'fast', got 'quick'"
    with pytest.raises(ValueError, match=message):
        tl.TrainingLoss(make_model(), path="quick")
    with pytest.raises(ValueError, match=message):
        tl.TrainingOptions(path="quick")
    with pytest.raises(ValueError, match=message):
        tl.greedy_decode(make_model(), sources(), max_new_tokens=3, path="quick")


def padding_alone(src):
    src[1] = 0
    return {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [(lambda src: {"use_cache": False}, "use_cache=False"), (padding_alone, "a row of src is only padding")],
)
def test_a_request_that_the_fast_decoder_does_not_serve_is_refused(change, reason):
    src = sources()
    options = change(src)
    with pytest.raises(ValueError, match=f'path="fast" decodes with a cache and without autocast, but {reason}'):
        tl.greedy_decode(make_model(), src, max_new_tokens=3, path="fast", **options)
    assert tl.greedy_decode(make_model(), src, max_new_tokens=3, **options).shape[0] == BATCH


def test_autocast_is_refused_in_fast_decoding():
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(ValueError, match="autocast would round"):
        tl.greedy_decode(make_model(), sources(), max_new_tokens=3, path="fast")


# Whether or not somebody looks.


def learn(watch, **options):
    """Train with dropout while `watch(model)` is watching, and return the losses and the weights."""
    torch.manual_seed(5)
    model = make_model(dropout=0.3)
    src = random_ids(23, 12, 7, seed=2).tolist()
    batches = tl.Batches(src, [[1, *row, 2] for row in src], 3)
    watch(model)
    history = tl.train(model, batches, epochs=2, warmup_steps=3, progress=False, **options)
    return history.loss, [weight.detach() for weight in model.parameters()]


def test_a_hook_that_does_nothing_changes_nothing():
    looked = []
    alone = learn(lambda model: None)
    watched = learn(lambda model: model.encoder.register_forward_hook(lambda *_: looked.append(1)))
    assert alone[0] == watched[0] and all(map(torch.equal, alone[1], watched[1]))
    assert len(looked) == 8  # once a step


def test_what_is_patched_is_called_in_training():
    """The model that is read is the model that trains."""
    with patch.object(tl.MultiHeadAttention, "forward", side_effect=Stopped), pytest.raises(Stopped):
        learn(lambda model: None)


class Stopped(Exception):
    pass


def test_a_hook_set_while_training_stops_the_fast_path():
    model = make_model()
    src = random_ids(23, 12, 7, seed=2).tolist()
    batches = tl.Batches(src, [[1, *row, 2] for row in src], 3)

    def look(step, _loss):
        if step == 2:
            model.encoder.register_forward_hook(lambda *_: None)

    with pytest.raises(ValueError, match="encoder has a hook"):
        tl.train(model, batches, on_step=look, path="fast", progress=False)


# What would be silently wrong.


def test_something_compiled_elsewhere_is_not_in_the_way():
    """torch.compile leaves its mark on nn.Module.__init__."""
    torch.compile(nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
    try:
        assert obstacle(make_model()) is None
    finally:
        torch._dynamo.reset()


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("multihead", "fused_attention"),
        ("multihead", "scaled_dot_product_attention"),
        ("attention", "masked_softmax"),
        ("transformer", "causal_mask"),
        ("transformer", "padding_mask"),
    ],
)
def test_a_replaced_function_of_the_model_is_refused(where, name):
    path = f"transformer_lib.model.{where}"
    with patch(f"{path}.{name}"):
        assert obstacle(make_model()) == f"{path}.{name} has been replaced"


@pytest.mark.parametrize("name", ["append", "read", "select"])
def test_a_cache_of_another_kind_is_refused(name):
    with patch.object(KeyValueCache, name):
        assert obstacle(make_model()) == f"KeyValueCache.{name} has been replaced"


def test_a_property_that_hides_a_weight_is_refused():
    with patch.object(nn.Linear, "forward", property(lambda self: lambda x: x)):
        assert obstacle(make_model()) == "Linear.forward has been replaced"


def test_a_function_mode_is_refused_but_not_a_default_device():
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), options=None):
            return function(*args, **(options or {}))

    model = make_model()
    with Mode():
        assert obstacle(model) == "a TorchFunctionMode is active"
    with torch.device("cpu"):
        assert obstacle(model) is None


@pytest.mark.parametrize("path", ["readable", "fast"])
def test_batches_that_do_not_fit_are_refused(path):
    (src, tgt), loss = pair(), tl.TrainingLoss(make_model(), path=path)
    with pytest.raises(ValueError, match="src must have tgt's batch size 5, got 1"):
        loss(src[:1], tgt)
    tgt[0, -1] = 29  # only a label
    with pytest.raises(ValueError, match=r"tgt must hold ids in \[0, 29\), got values from 0 to 29"):
        loss(src, tgt)


def test_a_second_derivative_is_refused():
    (src, tgt), model = pair(), make_model(dtype=torch.float64)
    loss = tl.TrainingLoss(model, path="fast")(src, tgt)
    with pytest.raises(RuntimeError, match='path="fast" has no second derivative'):
        torch.autograd.grad(loss, list(model.parameters()), create_graph=True)


@pytest.mark.parametrize("saved", [contextlib.nullcontext, torch.autograd.graph.save_on_cpu])
def test_a_second_backward_pass_is_refused_however_tensors_are_saved(saved):
    (src, tgt), model = pair(), make_model()
    with saved():
        loss = tl.TrainingLoss(model, path="fast")(src, tgt)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match='path="fast" has one backward pass for each loss'):
        loss.backward()
