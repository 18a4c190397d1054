from __future__ import annotations

import math

import pytest
import torch

import transformer_lib as tl
from factories import BATCH, POSITIONS, greedy_by_forward, make_model, random_ids, sources, with_frequent_eos

pytestmark = pytest.mark.fast

STEPS = 19  # past 16, where the cache's buffers grow


@pytest.mark.parametrize("position", POSITIONS)
def test_greedy_equals_a_loop_over_the_whole_model(position):
    ends = set()
    for seed in range(2):
        model = make_model(seed, scale=2.0, position=position, norm_first=True)
        src = sources(seed=seed)
        model = with_frequent_eos(model, src, STEPS)
        wanted = greedy_by_forward(model, src, STEPS)
        for use_cache in (False, True):
            assert torch.equal(tl.greedy_decode(model, src, max_new_tokens=STEPS, use_cache=use_cache), wanted)
        ends |= {row.index(model.config.eos_id) if model.config.eos_id in row else STEPS for row in wanted.tolist()}
    assert len(ends) > 1  # the sentences did end at different times


def test_without_stopping_every_sentence_has_all_tokens():
    model, src = make_model(scale=2.0), sources(seed=1)
    model = with_frequent_eos(model, src, STEPS)
    free = tl.greedy_decode(model, src, max_new_tokens=STEPS, stop_at_eos=False)
    assert free.shape == (BATCH, 1 + STEPS)
    stopped = tl.greedy_decode(model, src, max_new_tokens=STEPS)
    for one, other in zip(free.tolist(), stopped.tolist(), strict=True):
        length = other.index(model.config.eos_id) + 1 if model.config.eos_id in other else len(other)
        assert one[:length] == other[:length]


def test_at_most_so_many_tokens():
    model = make_model()
    assert tl.greedy_decode(model, sources(), max_new_tokens=1).shape == (BATCH, 2)
    assert tl.greedy_decode(model, sources(), max_new_tokens=37, stop_at_eos=False).shape == (BATCH, 38)


@pytest.mark.parametrize("training", [False, True])
def test_the_model_decodes_in_evaluation_mode_and_returns_to_its_own(training):
    model = make_model(dropout=0.5)
    wanted = tl.greedy_decode(model, sources(), max_new_tokens=7)
    model.train(training)
    modes = []
    model.encoder.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    assert torch.equal(tl.greedy_decode(model, sources(), max_new_tokens=7), wanted)
    assert modes == [False] and model.training is training and model.decoder.training is training


def test_decoding_keeps_no_graph():
    model, grad_modes = make_model(), []
    model.encoder.register_forward_pre_hook(lambda *_: grad_modes.append(torch.is_grad_enabled()))
    tl.greedy_decode(model, sources(), max_new_tokens=2)
    tl.sample_decode(model, sources(), max_new_tokens=2)
    assert grad_modes == [False, False]


def test_temperature_divides_the_logits():
    logits = torch.tensor([[1.0, 2.0, 4.0]])
    torch.testing.assert_close(tl.filter_logits(logits, temperature=0.5), 2 * logits)
    assert torch.equal(tl.filter_logits(logits), logits)


TINY = (1e-5, 1e-8, 1e-40, 1e-300, 5e-324)
ROWS = [
    [1.0, 2.0, -3.0, 1.5],
    [-5.0, -math.inf, -7.0, -5.5],  # all quotients would be −∞
    [0.0, -math.inf, 0.0, -1.0],  # two share the first place
    [-6e4, -5e4, -math.inf, -6e4],  # near the end of float16
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", TINY)
def test_a_tiny_temperature_leaves_the_likeliest(dtype, temperature):
    logits = torch.tensor(ROWS, dtype=dtype)
    likeliest = (logits == logits.amax(dim=-1, keepdim=True)).double()
    for options in ({}, {"top_k": 2}, {"top_p": 0.9}, {"top_k": 3, "top_p": 0.3}):
        found = tl.filter_logits(logits, temperature=temperature, **options)
        assert found.dtype == dtype
        probabilities = found.double().softmax(dim=-1)
        if "top_p" in options:  # of two that share the first place, one may be enough
            assert (probabilities[likeliest == 0] < 1e-3).all()
            torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(4, dtype=torch.float64))
        else:
            shares = likeliest / likeliest.sum(dim=-1, keepdim=True)
            torch.testing.assert_close(probabilities, shares, rtol=0, atol=1e-3)


def test_a_draw_at_a_tiny_temperature_is_greedy_in_16_bits_too():
    for dtype in (torch.float16, torch.float32):
        model = make_model(scale=2.0).to(dtype)
        greedy = tl.greedy_decode(model, sources(), max_new_tokens=STEPS)
        assert torch.equal(tl.sample_decode(model, sources(), max_new_tokens=STEPS, temperature=1e-40), greedy)


@pytest.mark.parametrize("temperature", [1e300, math.inf])
def test_a_huge_temperature_makes_all_that_is_possible_alike(temperature):
    found = tl.filter_logits(torch.tensor([3.0, -5.0, -math.inf, 0.5]), temperature=temperature).softmax(dim=-1)
    torch.testing.assert_close(found, torch.tensor([1 / 3, 1 / 3, 0.0, 1 / 3]))


def test_logits_that_are_none_are_refused():
    with pytest.raises(TypeError, match="logits must be a torch.Tensor, got list"):
        tl.filter_logits([1.0, 2.0])
    with pytest.raises(ValueError, match=r"logits must have at least one word, got shape \(3, 0\)"):
        tl.filter_logits(torch.zeros(3, 0), temperature=0.5)


def test_usual_temperatures_divide_to_the_bit():
    logits = torch.randn(5, 29, generator=torch.Generator().manual_seed(0))
    for temperature in (0.01, 0.3, 1.0, 1.7):
        assert torch.equal(tl.filter_logits(logits, temperature=temperature), logits / temperature)


def test_the_gradient_is_that_of_the_quotient():
    for temperature in (1.7, 0.3, 1e-37):  # the last one shifts the row
        logits = torch.tensor([50.0, 49.0, 48.0], requires_grad=True)
        (found,) = torch.autograd.grad(tl.filter_logits(logits, temperature=temperature)[0], logits)
        torch.testing.assert_close(found, torch.tensor([1 / temperature, 0.0, 0.0]))


def test_the_nucleus_is_counted_in_32_bits():
    """Of 1,024 equal tokens 512 make a half; a running sum in bfloat16 would be rounded to 8 binary digits."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        assert tl.filter_logits(torch.zeros(1024, dtype=dtype), top_p=0.5).isfinite().sum() == 512
        assert tl.filter_logits(torch.zeros(1024, dtype=dtype), top_p=0.75 + 2**-11).isfinite().sum() == 769


def test_top_k_keeps_the_largest():
    logits = torch.tensor([[0.1, 3.0, 2.0, -1.0], [5.0, 1.0, 4.0, 2.0]])
    wanted = torch.tensor([[-math.inf, 3.0, 2.0, -math.inf], [5.0, -math.inf, 4.0, -math.inf]])
    assert torch.equal(tl.filter_logits(logits, top_k=2), wanted)
    assert torch.equal(tl.filter_logits(logits, top_k=99), logits)
    assert torch.equal(tl.filter_logits(logits, top_p=1.0), logits)
    far_apart = torch.tensor([10.0, 0.0, -50.0, -100.0])
    assert torch.equal(tl.filter_logits(far_apart, top_p=1.0), far_apart)


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.05, [3]), (0.39, [3]), (0.41, [3, 1]), (0.69, [3, 1]), (0.71, [3, 1, 0]), (0.99, [3, 1, 0, 2])],
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p, kept):
    logits = torch.tensor([[0.2, 0.3, 0.1, 0.4]]).log()
    filtered = tl.filter_logits(logits, top_p=top_p)
    assert filtered.isfinite()[0].nonzero()[:, 0].tolist() == sorted(kept)
    assert torch.equal(filtered[0, kept], logits[0, kept])


def test_temperature_comes_before_the_nucleus():
    logits = torch.tensor([0.2, 0.3, 0.5]).log()
    # Squared and renormalised: .04, .09, .25 of .38, so that the largest alone has .66.
    assert tl.filter_logits(logits, temperature=0.5, top_p=0.6).isfinite().tolist() == [False, False, True]
    assert tl.filter_logits(logits, top_p=0.6).isfinite().tolist() == [False, True, True]


def test_top_k_and_top_p_together():
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    # The nucleus is taken among the two that are left: .3 and .4 of .7.
    assert tl.filter_logits(logits, top_k=2, top_p=0.5).isfinite().tolist() == [False, False, False, True]
    assert tl.filter_logits(logits, top_k=2, top_p=0.6).isfinite().tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"temperature": 0}, ValueError, "temperature must be positive, got 0"),
        ({"temperature": -1.0}, ValueError, "temperature must be positive, got -1.0"),
        ({"temperature": float("nan")}, ValueError, "temperature must be positive, got nan"),
        ({"top_k": 0}, ValueError, "top_k must be at least 1, got 0"),
        ({"top_k": 2.0}, TypeError, "top_k must be an int, got 2.0"),
        ({"top_p": 0.0}, ValueError, r"top_p must lie in \(0, 1\], got 0.0"),
        ({"top_p": 1.5}, ValueError, r"top_p must lie in \(0, 1\], got 1.5"),
    ],
)
def test_bad_filters_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        tl.filter_logits(torch.zeros(1, 5), **options)
    with pytest.raises(error, match=message):
        tl.sample_decode(make_model(), sources(), max_new_tokens=3, **options)


def test_sampled_tokens_follow_the_models_probabilities():
    model, count = make_model(scale=2.0), 4000
    src = random_ids(23, 1, 7).expand(count, 7)
    generator = torch.Generator().manual_seed(0)
    tokens = tl.sample_decode(model, src, max_new_tokens=1, temperature=1.5, generator=generator)[:, 1]
    with torch.no_grad():
        wanted = (model(src[:1], torch.tensor([[1]]))[0, 0] / 1.5).softmax(dim=-1)
    found = tokens.bincount(minlength=29) / count
    assert ((found - wanted).abs() < 5 * (wanted * (1 - wanted) / count).sqrt() + 1e-9).all()
    assert (found > 0).sum() > 5


def test_a_generator_makes_a_draw_repeatable():
    def draw(seed, use_cache=True):
        generator = torch.Generator().manual_seed(seed)
        options = {"temperature": 2.0, "generator": generator, "use_cache": use_cache}
        return tl.sample_decode(make_model(), sources(), max_new_tokens=STEPS, **options)

    assert torch.equal(draw(3), draw(3)) and torch.equal(draw(3), draw(3, use_cache=False))
    assert not torch.equal(draw(3), draw(4))


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}])
def test_a_narrow_draw_is_greedy(options):
    model = with_frequent_eos(make_model(scale=2.0), sources(), STEPS)
    greedy = tl.greedy_decode(model, sources(), max_new_tokens=STEPS)
    assert torch.equal(tl.sample_decode(model, sources(), max_new_tokens=STEPS, **options), greedy)


@pytest.mark.parametrize("decode", [tl.greedy_decode, tl.sample_decode, tl.beam_search])
@pytest.mark.parametrize(
    ("src", "max_new_tokens", "error", "message"),
    [
        (None, 0, ValueError, "max_new_tokens must be at least 1, got 0"),
        (None, 5.0, TypeError, "max_new_tokens must be an int, got 5.0"),
        (None, 38, ValueError, "max_new_tokens must not exceed the model's max_len = 37, got 38"),
        (torch.tensor([3, 5]), 3, ValueError, "src must have 2 axes, got 1"),
        (torch.tensor([[3, 23]]), 3, ValueError, r"src must hold ids in \[0, 23\), got values from 3 to 23"),
        (torch.ones(2, 38, dtype=torch.long), 3, ValueError, "src has 38 tokens, more than max_len = 37"),
        (torch.ones(0, 3, dtype=torch.long), 3, ValueError, r"src must not be empty, got shape \(0, 3\)"),
        (["a sentence"], 3, TypeError, "src must be a torch.Tensor, got list"),
    ],
)
def test_bad_requests_are_refused(decode, src, max_new_tokens, error, message):
    options = {"beam_size": 2} if decode is tl.beam_search else {}
    with pytest.raises(error, match=message):
        decode(make_model(), sources() if src is None else src, max_new_tokens=max_new_tokens, **options)
