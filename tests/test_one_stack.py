"""Models of one stack: what their masks let them see, their parameters, and what they refuse."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from factories import POSITIONS, randomise

pytestmark = pytest.mark.fast
SIZES = (2, 30, 3, 17)  # layers, d_model, heads, d_ff


def make(seed=0, **options):
    torch.manual_seed(seed)
    return randomise(tl.LanguageModel(23, *SIZES, **options), 2.0).double().eval()


IDS = torch.tensor([[5, 7, 3, 9, 11, 4], [1, 8, 8, 2, 6, 10]])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm_first", [True, False])
def test_the_mask_is_causal_unless_another_is_given(position, norm_first):
    model, other = make(position=position, norm_first=norm_first, max_len=7), IDS.clone()
    other[:, 3] = 12
    moved = ((model(IDS) - model(other)).abs().amax(dim=(0, 2)) > 1e-6).tolist()
    assert model(IDS).shape == (2, 6, 23) and moved == [False] * 3 + [True] * 3
    full = tl.padding_mask(IDS, 0)
    assert ((model(IDS, full) - model(other, full)).abs().amax(dim=(0, 2)) > 1e-6).all()
    prefix = tl.prefix_mask(torch.tensor([4, 0]), 6)
    first, second = (model(IDS, prefix) - model(other, prefix)).abs().amax(dim=2) > 1e-6
    assert first.all() and second.tolist() == moved


@pytest.mark.parametrize("position", POSITIONS)
def test_only_positions_tell_the_order_of_words_under_a_full_mask(position):
    model, order = make(position=position, max_len=7), torch.tensor([2, 0, 1, 5, 4, 3])
    full = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    same = torch.allclose(model(IDS[:, order], full), model(IDS, full)[:, order], atol=1e-9)
    assert same == (position == "none")


def test_one_table_looks_words_up_and_scores_them():
    model = make(position="none", norm_first=True)
    stack = sum(p.numel() for p in model.stack.parameters())
    assert sum(p.numel() for p in model.parameters()) == stack + 23 * 30
    x = model.stack(model.embedding(IDS) * 30**0.5, tl.causal_mask(6))
    torch.testing.assert_close(model(IDS), x @ model.embedding.weight.T)
    assert make(scale=1.0).scale == 1.0


def test_what_a_language_model_refuses():
    model = make(max_len=5)
    for ids, message in ((IDS, "ids "), (torch.tensor([[23]]), "ids "), (IDS[0], "ids ")):
        with pytest.raises(ValueError, match=message):
            model(ids)
    with pytest.raises(ValueError, match="vocab_size must be at least 1, got 0"):
        tl.LanguageModel(0, *SIZES)
    with pytest.raises(ValueError, match="position must be one of"):
        make(position="odd")


def test_a_masked_language_model_reads_words_places_and_segments():
    torch.manual_seed(0)
    model = randomise(tl.MaskedLanguageModel(23, *SIZES, max_len=7, n_segments=3), 2.0).double().eval()
    logits = model(IDS)
    assert logits.shape == (2, 6, 23)
    torch.testing.assert_close(model(IDS, segments=torch.zeros_like(IDS)), logits)
    assert (model(IDS, segments=torch.ones_like(IDS)) - logits).abs().max() > 1e-3
    assert {norm.eps for norm in model.modules() if isinstance(norm, tl.LayerNorm)} == {1e-12}
    with pytest.raises(ValueError, match="segments must"):
        model(IDS, segments=torch.full_like(IDS, 3))
    with pytest.raises(ValueError, match=r"segments must have the shape of ids \(2, 6\), got \(1, 6\)"):
        model(IDS, segments=torch.zeros_like(IDS[:1]))
    with pytest.raises(ValueError, match="ids "):
        model(torch.cat([IDS, IDS], dim=1))


def test_a_masked_language_model_is_a_text_encoder_with_a_head():
    torch.manual_seed(0)
    model = randomise(tl.MaskedLanguageModel(23, *SIZES, max_len=7, n_segments=3, eps=0.1), 2.0).double().eval()
    encoder = tl.TextEncoder(23, *SIZES, max_len=7, n_segments=3, eps=0.1).double().eval()
    left = encoder.load_state_dict(model.state_dict(), strict=False)
    assert not left.missing_keys and {name.split(".")[0] for name in left.unexpected_keys} == {
        *("transform", "head_norm", "bias")
    }
    assert {norm.eps for norm in model.modules() if isinstance(norm, tl.LayerNorm)} == {0.1}
    hidden = encoder(IDS)
    x = torch.nn.functional.gelu(model.transform(hidden))
    torch.testing.assert_close(model(IDS), model.head_norm(x) @ model.embedding.weight.T + model.bias)


def test_the_mean_over_real_tokens():
    hidden = torch.randn(3, 7, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    real = torch.arange(7) < torch.tensor([7, 2, 0])[:, None]
    found = tl.mean_pool(hidden, real)
    wanted = torch.stack([hidden[0].mean(dim=0), hidden[1, :2].mean(dim=0), torch.zeros(5)])
    torch.testing.assert_close(found, wanted)
    (gradient,) = torch.autograd.grad(found.sum(), hidden)
    torch.testing.assert_close(gradient[:, :, 0], real * torch.tensor([1 / 7, 1 / 2, 0])[:, None])
    padded = hidden.detach().masked_fill(~real[..., None], float("nan"))  # what stands at padding is not looked at
    torch.testing.assert_close(tl.mean_pool(padded, real), found.detach())


def test_what_a_mean_refuses():
    hidden, real = torch.randn(3, 7, 5), torch.ones(3, 7, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"real must have the shape \(3, 7\) of hidden, got \(3, 1, 1, 7\)"):
        tl.mean_pool(hidden, real[:, None, None])
    with pytest.raises(TypeError, match="real must be boolean, True = may attend, got dtype torch.int64"):
        tl.mean_pool(hidden, real.long())
    with pytest.raises(ValueError, match="hidden must have 3 axes, got 2"):
        tl.mean_pool(hidden[0], real)
