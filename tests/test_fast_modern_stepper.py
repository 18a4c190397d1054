"""The fast steps of a model of today give the logits of its forward pass, or are refused with the reason."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import make_model
from transformer_lib.fast import products
from transformer_lib.fast.eligibility import obstacle, obstacle_today
from transformer_lib.fast.modern_stepper import ModernStepper
from transformer_lib.fast.modern_weights import ModernWeights
from transformer_lib.fast.products import Int8Product
from transformer_lib.model import modern

pytestmark = pytest.mark.fast

SIZES = {"vocab_size": 23, "d_model": 13, "n_heads": 6, "n_layers": 3, "d_ff": 17, "n_kv_heads": 2, "d_head": 10}
CHANGES = [
    {},
    {"norm": "layer"},
    {"eps": 0.3},
    {"feed_forward": "relu"},
    {"feed_forward": "gelu"},
    {"n_kv_heads": 1},
    {"n_kv_heads": None},
    {"pairs": "neighbours"},
    {"pairs": "neighbours", "qk_norm": True},
    {"rope_base": 100.0},
    {"qk_norm": True},
    {"window": 3},
    {"window": 1},
    {"tied": False},
    {"embedding_scale": 3.0},
]
BATCH, LENGTH = 5, 11
# Logits are of size 1; float32 rounds each of the sums of up to 60 products by 6e-8 of its size.
CLOSE = {torch.float64: {"rtol": 0, "atol": 1e-12}, torch.float32: {"rtol": 0, "atol": 2e-5}}
needs_int8 = pytest.mark.skipif(not products.has_int8(), reason="no products in eight bits here")


def new(dtype=torch.float64, **changes):
    torch.manual_seed(0)
    model = modern.LanguageModel(modern.Config(**SIZES | changes)).double().eval()
    for name, parameter in model.named_parameters():
        centre = float(parameter.dim() == 1 and name.endswith("weight"))
        parameter.data = centre + 0.4 * torch.randn(parameter.shape, dtype=torch.float64)
    return model.to(dtype)


def ids_of(batch=BATCH, length=LENGTH):
    return torch.randint(23, (batch, length), generator=torch.Generator().manual_seed(1))


def logits_of(stepper, ids, pieces):
    return torch.stack([stepper.next_logits(piece) for piece in ids.split(pieces, dim=1)], dim=1)


@torch.no_grad()
def greedy(model, ids, new_tokens):
    """Say the likeliest words, each time by reading all of the text again."""
    for _ in range(new_tokens):
        ids = torch.cat((ids, model(ids)[:, -1].argmax(-1, keepdim=True)), dim=1)
    return ids


def greedy_fast(weights, ids, new_tokens):
    stepper = ModernStepper(weights, len(ids), ids.shape[1] + new_tokens)
    words = ids
    for _ in range(new_tokens):
        words = stepper.next_logits(words).argmax(-1, keepdim=True)
        ids = torch.cat((ids, words), dim=1)
    return ids


@torch.no_grad()
@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("pieces", [[1] * LENGTH, [7, 1, 1, 2], [LENGTH]], ids=str)
def test_logits_are_those_of_the_forward_pass(change, dtype, pieces):
    model, ids = new(dtype, **change), ids_of()
    ends = torch.tensor(pieces).cumsum(0) - 1
    found = logits_of(ModernStepper(model, BATCH, LENGTH), ids, pieces)
    torch.testing.assert_close(found, model(ids)[:, ends], **CLOSE[dtype])


@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("dtype", CLOSE)
def test_greedy_words_are_the_same_on_both_paths(dtype, batch):
    model, ids = new(dtype), ids_of(batch, 7)
    words = greedy(model, ids, 29)
    assert len(set(words[0, 7:].tolist())) > 3  # not one word again and again
    assert torch.equal(greedy_fast(model, ids, 29), words)


@torch.no_grad()
@pytest.mark.parametrize("pieces", [[1] * LENGTH, [7, 1, 1, 2]], ids=str)
def test_bfloat16_is_as_near_to_the_exact_numbers_as_the_readable_path(pieces):
    model, ids = new(torch.bfloat16), ids_of(97)
    exact = new(torch.bfloat16).double()(ids)[:, torch.tensor(pieces).cumsum(0) - 1]
    cache = model.new_cache()
    readable = torch.stack([model(piece, cache)[:, -1] for piece in ids.split(pieces, dim=1)], dim=1)
    errors = [
        (found - exact).square().mean().sqrt() for found in (readable, logits_of(stepper_of(model, 97), ids, pieces))
    ]
    # Both round at the same places, to eight bits; over 97 texts the sizes of their errors differ by a few percent.
    assert 0 < errors[1] < 1.15 * errors[0], errors


def stepper_of(model, batch=BATCH):
    return ModernStepper(model, batch, LENGTH)


@torch.no_grad()
def test_a_cropped_text_goes_on_otherwise():
    model, ids = new(), ids_of()
    stepper = stepper_of(model)
    stepper.next_logits(ids.flip(1)[:, :5])
    stepper.crop(0)
    stepper.next_logits(ids[:, :7])
    stepper.next_logits(ids[:, :3])
    stepper.crop(7)
    torch.testing.assert_close(stepper.next_logits(ids[:, 7:]), model(ids)[:, -1], **CLOSE[torch.float64])
    with pytest.raises(ValueError, match="length must be at most the 11 tokens of the cache, got 12"):
        stepper.crop(12)


@torch.no_grad()
def test_weights_laid_out_once_serve_several_steppers():
    model, ids = new(), ids_of()
    weights = ModernWeights(model)
    for batch in (3, 1, BATCH):
        found = ModernStepper(weights, batch, LENGTH).next_logits(ids[:batch])
        torch.testing.assert_close(found, model(ids[:batch])[:, -1], **CLOSE[torch.float64])


def test_bytes_are_those_of_buffers_and_copies():
    model = new(torch.float32)
    stepper = ModernStepper(model, BATCH, LENGTH)
    assert stepper.bytes == BATCH * model.config.cache_bytes(LENGTH)
    joined = sum(
        w.nbytes for layer in model.layers for w in (*joined_of(layer.attention), *joined_of(layer.feed_forward))
    )
    everything = sum(part.weight.nbytes for part in model.modules() if isinstance(part, nn.Linear))
    is_laid_out = products.order(model.head.weight) == "onednn"
    assert stepper.weights.bytes == (everything if is_laid_out else joined)


def joined_of(part):
    names = ("w_q", "w_k", "w_v", "gate", "up")
    return [getattr(part, name).weight for name in names if hasattr(part, name)]


# Eight bits ----------------------------------------------------------------------------------------------------------


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@needs_int8
@pytest.mark.parametrize("bias", [None, torch.arange(53.0)])
def test_weights_in_eight_bits_are_those_of_rounded(bias):
    """A one and zeros are numbers of eight bits, so that nothing but the weights is rounded."""
    weight = numbers(53, 37)
    found = Int8Product(weight, bias)(torch.eye(37))
    wanted = tl.int8.rounded(linear(weight)).weight.detach().T + (0 if bias is None else bias)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)
    assert not torch.allclose(wanted, weight.T + (0 if bias is None else bias), rtol=1e-3)


@needs_int8
@pytest.mark.parametrize("rows", [1, 7])
def test_numbers_are_off_by_half_a_step_of_their_own_token(rows):
    weight, x = numbers(53, 37), numbers(rows, 37, seed=1) * 10.0 ** torch.arange(rows)[:, None]
    errors = Int8Product(weight)(x) - x @ tl.int8.rounded(linear(weight)).weight.detach().T
    half_step = x.abs().amax(1, keepdim=True) / 127.5 / 2
    assert (errors.abs() <= 1.001 * half_step * weight.abs().sum(1)).all() and (errors != 0).all()
    # Evenly distributed errors of up to half a step have this root mean square; the range of x may need half as much.
    expected = half_step / 3**0.5 * weight.square().sum(1).sqrt().mean()
    spread = errors.square().mean(1, keepdim=True).sqrt() / expected
    assert (spread > 0.3).all() and (spread < 1.5).all()


def linear(weight):
    layer = nn.Linear(*weight.shape[::-1], bias=False)
    layer.weight = nn.Parameter(weight.clone())
    return layer


@needs_int8
def test_a_token_of_huge_numbers_takes_nothing_from_the_others():
    weight, x = numbers(53, 37), numbers(7, 37, seed=1)
    x[1, 0], x[1, 1] = 9.0, -9.0  # the other rows need the same range without it
    alone = Int8Product(weight)(x[1:])
    x[0] *= 1e4
    assert torch.equal(Int8Product(weight)(x)[1:], alone)


@needs_int8
@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_in_eight_bits_are_near_and_a_quarter_of_the_size(dtype):
    model, ids = new(dtype, d_model=52, d_ff=68), ids_of(97)
    weights = ModernWeights(model, weights="int8")
    found, exact = ModernStepper(weights, 97, LENGTH).next_logits(ids).float(), model(ids)[:, -1].float()
    assert found.isfinite().all()
    correlation = torch.corrcoef(torch.stack((found.flatten(), exact.flatten())))[0, 1]
    assert 0.99 < correlation < 0.999999, correlation
    matrices = [part.weight for part in model.modules() if isinstance(part, nn.Linear)]
    assert weights.bytes == sum(w.numel() + 4 * len(w) for w in matrices)


@needs_int8
def test_what_is_no_number_stays_none_in_its_own_row():
    x = numbers(3, 37, seed=1)
    x[1, 5] = float("nan")
    found = Int8Product(numbers(53, 37))(x)
    assert found[1].isnan().all() and not found[[0, 2]].isnan().any()


@needs_int8
def test_a_row_of_zeros_stays_zero():
    assert torch.equal(Int8Product(numbers(53, 37))(torch.zeros(2, 37)), torch.zeros(2, 53))


def test_eight_bits_are_refused_where_there_is_no_such_product(monkeypatch):
    monkeypatch.setattr(products, "_VNNI", False)
    with pytest.raises(ValueError, match="weights must be 'own' here, as there are no products in eight bits on cpu"):
        ModernWeights(new(torch.float32), weights="int8")


# Refusals ------------------------------------------------------------------------------------------------------------


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Low(nn.Module):
    """A wrapper as of LoRA."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def put(path, make):
    owner, _, name = path.rpartition(".")
    return lambda model: setattr(model.get_submodule(owner), name, make(model))


OWN, OTHER = "layers.1.attention", "where its config builds"
OBSTACLES = [
    (put(f"{OWN}.w_q", lambda model: Doubled(13, 60, bias=False)), f"{OWN}.w_q is a Doubled .*, {OTHER} a Linear"),
    (put(f"{OWN}.w_q", lambda model: Low(model.layers[1].attention.w_q)), f"{OWN}.w_q is a Low, {OTHER} a Linear"),
    (put(f"{OWN}.w_v.forward", lambda model: abs), f"{OWN}.w_v has a forward of its own"),
    (put(f"{OWN}.window", lambda model: 4), f"{OWN}.window is 4, {OTHER} None"),
    (put(f"{OWN}.position.base", lambda model: 7.0), f"{OWN}.position.base is 7.0, {OTHER} 10000.0"),
    (put("norm.eps", lambda model: 0.5), f"norm.eps is 0.5, {OTHER} 1e-06"),
    (
        put("layers.0.feed_forward", lambda model: nn.Identity()),
        f"layers.0.feed_forward is a Identity, {OTHER} a SwiGLU",
    ),
    (put("head", lambda model: nn.Linear(13, 23)), f"head is a Linear .*bias .*, {OTHER}"),
    (lambda model: model.layers.pop(2), f"layers.2 is nothing, {OTHER} a Block"),
    (lambda model: model.layers[2].register_forward_hook(lambda *_: None), "layers.2 has a hook"),
    (
        lambda model: model.layers[0].attention.register_forward_pre_hook(lambda *_: None),
        "layers.0.attention has a hook",
    ),
    (lambda model: model.layers[0].double(), "its weights are of several dtypes, torch.float32, torch.float64"),
]


@pytest.mark.parametrize(("change", "reason"), OBSTACLES)
def test_a_changed_model_is_refused_with_the_reason(change, reason):
    model = new(torch.float32)
    kept = ModernWeights(model)
    stepper = ModernStepper(kept, BATCH, LENGTH)
    change(model)
    for ask in (lambda: ModernWeights(model), lambda: ModernStepper(kept, 1, 3), lambda: stepper.next_logits(ids_of())):
        with pytest.raises(ValueError, match=f'path="fast" must not change what is computed, but {reason}'):
            ask()


def test_a_patched_layer_is_refused_inside_the_block_alone():
    model, ids = new(), ids_of()
    stepper = stepper_of(model)
    with tl.patch(model, "layers.1", lambda x: 0 * x), pytest.raises(ValueError, match="layers.* has a hook"):
        stepper.next_logits(ids)
    assert stepper.length == 0
    stepper.next_logits(ids)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (modern.RMSNorm, "forward"),
        (modern.Block, "forward"),
        (modern.GroupedQueryAttention, "forward"),
        (modern.LanguageModel, "forward"),
        (modern.LayerCache, "append"),
        (nn.Linear, "forward"),
    ],
)
def test_a_patched_class_is_refused(kind, name):
    model, own = new(), getattr(kind, name)
    with patch.object(kind, name, lambda *args, **options: own(*args, **options)):
        assert obstacle_today(model) == f"{kind.__name__}.{name} has been replaced"
    assert obstacle_today(model) is None

    model, translator = new(), make_model()
    with patch.object(modern, "window_mask", modern.causal_mask):
        assert obstacle_today(model) == "transformer_lib.model.modern.window_mask has been replaced"
        assert obstacle(translator) is None


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: new(feed_forward="experts"), "feed_forward='experts', so that each token"),
        (lambda: nn.Linear(3, 5), "the model is a Linear, not a modern.LanguageModel"),
        (lambda: tl.LanguageModel(23, 2, 12, 3, 17), "the model is a LanguageModel, not a modern.LanguageModel"),
        (lambda: tl.int8.quantized(new(torch.float32)), "embedding is a Int8Embedding, where its config builds"),
        (lambda: type("Mine", (modern.LanguageModel,), {})(new().config), "the model is a Mine, not"),
    ],
)
def test_another_model_is_refused(make, reason):
    with pytest.raises(ValueError, match=f'{reason}.*take path="readable"'):
        ModernStepper(make(), 1, 3)


def test_a_model_of_today_has_no_translators_path():
    assert obstacle(new()) == "the model is a LanguageModel, not a Transformer"


def written(model):
    with torch.no_grad():
        model.layers[1].attention.w_k.weight.mul_(2)


def replaced(model):
    model.layers[1].attention.w_k.weight.data = model.layers[1].attention.w_k.weight.data * 2


def test_another_configuration_is_noticed_where_no_part_shows_it():
    model = new()
    stepper = stepper_of(model)
    model.config = replace(model.config, embedding_scale=3.0)
    with pytest.raises(ValueError, match="but config has changed since"):
        stepper.next_logits(ids_of())


@pytest.mark.parametrize("change", [written, replaced])
def test_weights_that_have_changed_since_are_not_used(change):
    model, ids = new(), ids_of()
    weights = ModernWeights(model)
    stepper = ModernStepper(weights, BATCH, LENGTH)
    change(model)
    for ask in (lambda: ModernStepper(weights, BATCH, LENGTH), lambda: stepper.next_logits(ids)):
        with pytest.raises(ValueError, match="but layers.1.attention.w_k.weight has changed since"):
            ask()
    torch.testing.assert_close(stepper_of(model).next_logits(ids), model(ids)[:, -1].detach(), **CLOSE[torch.float64])


def test_autocast_is_refused():
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match="must run without autocast"):
        stepper_of(new(torch.float32))


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.zeros(3, 2, dtype=torch.int64), ValueError, "ids must have the stepper's batch of 5, got 3"),
        (torch.full((5, 2), 23), ValueError, "ids must"),
        (torch.zeros(5, 2), TypeError, "ids must"),
        (torch.zeros(5, 5, dtype=torch.int64), ValueError, "ids must end within max_len = 11, got 5 after 7 tokens"),
    ],
)
def test_ids_that_cannot_follow_are_refused(ids, error, message):
    stepper = stepper_of(new())
    stepper.next_logits(ids_of()[:, :7])
    with pytest.raises(error, match=message):
        stepper.next_logits(ids)
    assert stepper.length == 7


@pytest.mark.parametrize(("batch", "max_len", "name"), [(0, 3, "batch"), (1, 0, "max_len")])
def test_sizes_are_positive(batch, max_len, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        ModernStepper(new(), batch, max_len)


def test_weights_are_own_or_int8():
    with pytest.raises(ValueError, match="weights must be one of 'own', 'int8', got 'int4'"):
        ModernWeights(new(), weights="int4")
