"""The fast training pass gives the numbers of the readable one."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import transformer_lib as tl
from factories import BATCH, POSITIONS, make_model, random_ids
from transformer_lib.fast import forward
from transformer_lib.fast.forward import decoder_states, drop
from transformer_lib.fast.head_loss import head_loss
from transformer_lib.fast.packing import ROWS
from transformer_lib.training.gradients import BatchGradient

pytestmark = pytest.mark.fast

EXACT = {"rtol": 0, "atol": 1e-11}


def batch(gaps=False):
    """Source and target ids with padding behind, and with `gaps` also inside; targets begin with bos."""
    src, tgt = random_ids(23, BATCH, 7, padded=True), random_ids(29, BATCH, 12, seed=1, padded=True)
    tgt[:, 0] = 1
    if gaps:
        src[0, 2] = tgt[0, 4] = tgt[2, 5] = 0
    return src, tgt


def both_ways(model, src, tgt, smoothing=0.1):
    """(loss, gradients) of the fast pass and of the readable one."""
    tgt_in, tgt_out = tl.shift_right(tgt)
    counted = tgt_out != 0
    states = decoder_states(model, src, tgt_in, counted)
    quick = head_loss(states, model.output_head.weight, tgt_out[counted], label_smoothing=smoothing) / counted.sum()
    plain = tl.translation_loss(model(src, tgt_in), tgt_out, pad_id=0, label_smoothing=smoothing)
    weights = list(model.parameters())
    return [(loss.detach(), torch.autograd.grad(loss, weights, allow_unused=True)) for loss in (quick, plain)]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_loss_and_gradients_equal_the_readable_ones(position, norm_first, gaps):
    model = make_model(position=position, norm_first=norm_first, dtype=torch.float64)
    quick, plain = both_ways(model, *batch(gaps))
    torch.testing.assert_close(quick, plain, **EXACT)
    assert all(gradient.abs().max() > 1e-6 for gradient in plain[1])


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_rows_of_padding_behind_the_real_ones_change_nothing(monkeypatch, position, gaps):
    monkeypatch.setattr(forward, "row_multiple", lambda device: 13)
    model = make_model(position=position, dtype=torch.float64)
    quick, plain = both_ways(model, *batch(gaps))
    torch.testing.assert_close(quick, plain, **EXACT)


@pytest.mark.parametrize("multiple", [1, 13, 97])
def test_nor_do_they_where_a_sentence_is_padding_alone(monkeypatch, multiple):
    """The whole batch has fewer than 97 tokens, so that all its padding is there."""
    monkeypatch.setattr(forward, "row_multiple", lambda device: multiple)
    model, (src, tgt) = make_model(dtype=torch.float64), batch()
    src[1] = tgt[2, 1:] = 0
    quick, plain = both_ways(model, src, tgt)
    torch.testing.assert_close(quick, plain, **EXACT)
    assert all(gradient.isfinite().all() for gradient in quick[1])


class _Products(TorchDispatchMode):
    """Notes the sizes of every product of matrices."""

    def __init__(self):
        super().__init__()
        self.sizes = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.sizes.update(size for matrix in args[-2:] for size in matrix.shape)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("precision, multiples", [("float32", False), ("bfloat16", True)])
def test_in_bfloat16_the_numbers_of_rows_recur(precision, multiples):
    """Each new one would cost more than its product."""
    model = make_model()
    config = model.config
    widths = {config.d_model, config.d_ff, config.tgt_vocab_size, *(k * config.d_model for k in (2, 3))}
    src, tgt = random_ids(23, 17, 7, padded=True), random_ids(29, 17, 12, seed=1, padded=True)
    gradient = BatchGradient(tl.TrainingLoss(model, path="fast"), pad_id=0, precision=precision)
    with _Products() as products:
        gradient.add(src, tgt)
    rows = products.sizes - widths
    assert rows and all(size % ROWS == 0 for size in rows) == multiples


def test_it_multiplies_less_where_there_is_padding():
    """The numbers of docs/speed.md."""
    torch.manual_seed(0)
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "dropout": 0.0}
    model = tl.Transformer(tl.TransformerConfig(src_vocab_size=997, tgt_vocab_size=997, **sizes)).double()
    src, tgt = torch.randint(3, 997, (2, 8, 24))
    tgt[:, 0] = 1
    for row in range(8):
        src[row, 24 - 2 * row :] = tgt[row, 24 - 2 * row :] = 0
    assert 0.7 < (src != 0).double().mean() < 0.72
    gradients, products = [], []
    for path in ("readable", "fast"):
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):  # its products can be counted
            loss = tl.TrainingLoss(model, path=path)(src, tgt)
            gradients.append(torch.autograd.grad(loss, list(model.parameters())))
        products.append(counter.get_total_flops())
    torch.testing.assert_close(gradients[1], gradients[0], rtol=0, atol=1e-9)
    assert round(products[1] / products[0], 2) == 0.72


def test_every_weight_gets_a_gradient_where_all_sources_are_empty():
    """In a group of processes the others wait for it."""
    model, (src, tgt) = make_model(), batch()
    tl.TrainingLoss(model, path="fast")(torch.zeros_like(src), tgt).backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize("multiple", [1, 13])
def test_only_the_counted_positions_come_back(monkeypatch, multiple):
    monkeypatch.setattr(forward, "row_multiple", lambda device: multiple)
    model, (src, tgt) = make_model(dtype=torch.float64), batch()
    tgt_in = tgt[:, :-1]
    counted = torch.zeros(tgt_in.shape, dtype=torch.bool)
    counted[1, 3] = counted[3, 0] = counted[3, 6] = True
    states = []
    hook = model.output_head.register_forward_pre_hook(lambda module, args: states.append(args[0]))
    model(src, tgt_in)
    hook.remove()
    torch.testing.assert_close(decoder_states(model, src, tgt_in, counted), states[0][counted], **EXACT)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_that_share_and_scales_the_rest(p):
    torch.manual_seed(0)
    x = torch.ones(211, 977, requires_grad=True)
    y = drop(nn.Dropout(p), x)
    assert (y == 0).double().mean().item() == pytest.approx(p, abs=0.005)
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / (1 - p)), rtol=1e-4, atol=0)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_nothing_or_everything_is_dropped(p):
    x = torch.ones(3, 5)
    assert torch.equal(drop(nn.Dropout(p), x), (1 - p) * x)


def test_bad_ids_are_named():
    model, (src, tgt) = make_model(), batch()
    counted = tgt != 0
    with pytest.raises(ValueError, match=r"src must hold ids in \[0, 23\)"):
        decoder_states(model, src + 23, tgt, counted)
    with pytest.raises(ValueError, match=r"tgt_in must hold ids in \[0, 29\)"):
        decoder_states(model, src, tgt + 29, counted)
