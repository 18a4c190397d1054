"""Going on with a text: the tokens of a loop over the whole model and of transformers, and a conversation in turns."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch

import transformer_lib as tl
from factories import randomise
from transformer_lib.course.lab import ports_today
from transformer_lib.fast.modern_stepper import ModernStepper
from transformer_lib.model import modern

pytestmark = pytest.mark.fast

SIZES = {"vocab_size": 53, "d_model": 30, "n_heads": 3, "n_layers": 2, "d_ff": 17}
STEPS = 19


def make_model(seed: int = 0, **changes) -> modern.LanguageModel:
    torch.manual_seed(seed)
    return randomise(modern.LanguageModel(modern.Config(**SIZES | changes)), 1.5).eval()


def prompts(batch: int = 5, length: int = 7, seed: int = 0) -> torch.Tensor:
    return torch.randint(53, (batch, length), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def greedy_by_forward(model, ids: torch.Tensor, steps: int = STEPS) -> torch.Tensor:
    """The likeliest next tokens [batch, steps], all of the text read anew for each."""
    for _ in range(steps):
        ids = torch.cat((ids, model(ids)[:, -1:].argmax(dim=-1)), dim=1)
    return ids[:, -steps:]


def all_of(model, ids, **options) -> torch.Tensor:
    return torch.stack(list(tl.generate(model, ids, **{"max_new_tokens": STEPS} | options)), dim=1)


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("window", [None, 3])
def test_greedy_equals_a_loop_over_the_whole_model(window, use_cache):
    model, ids = make_model(window=window, n_kv_heads=1), prompts()
    wanted = greedy_by_forward(model, ids)
    assert torch.equal(all_of(model, ids, use_cache=use_cache), wanted)
    assert len(wanted.unique()) > 5  # it says different things
    for row, one in zip(ids.tolist(), wanted.tolist(), strict=True):
        assert list(tl.generate(model, row, max_new_tokens=STEPS, use_cache=use_cache)) == one


@pytest.mark.parametrize("window", [None, 3])
def test_the_fast_path_says_the_same(window):
    model, ids = make_model(window=window, n_kv_heads=1), prompts()
    wanted = greedy_by_forward(model, ids)
    assert torch.equal(all_of(model, ids, path="fast"), wanted)
    stepper = ModernStepper(model, 5, 7 + 2 * STEPS)
    first = all_of(model, ids, path="fast", cache=stepper)
    longer = torch.cat((ids, first), dim=1)
    assert torch.equal(all_of(model, longer, path="fast", cache=stepper), greedy_by_forward(model, longer))
    options = {"temperature": 1.1, "top_k": 11}
    drawn = [
        all_of(model, ids, path=path, generator=torch.Generator().manual_seed(3), **options)
        for path in ("readable", "fast")
    ]
    assert torch.equal(*drawn)


@pytest.mark.parametrize("kind", ["Llama", "Qwen3", "Mistral"])
def test_greedy_equals_transformers(kind):
    pytest.importorskip("transformers")
    theirs, ids = ports_today.new_theirs(kind, 1), ports_today.new_ids(1)[:, :7]
    ours = tl.interop.load_hf(theirs.state_dict(), theirs.config)
    options = {"do_sample": False, "max_new_tokens": 13, "min_new_tokens": 13, "pad_token_id": 0}
    wanted = theirs.generate(ids, attention_mask=torch.ones_like(ids), **options)[:, 7:]
    assert torch.equal(all_of(ours, ids, max_new_tokens=13), wanted)


def test_draws_follow_the_models_distribution():
    model, ids = make_model(vocab_size=7), prompts(1, 5) % 7
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        logits = model(ids)[0, -1]
    for options in ({"temperature": 2.0}, {"temperature": 0.7, "top_k": 3}, {"temperature": 1.0, "top_p": 0.8}):
        wanted = tl.filter_logits(logits, **options).softmax(dim=-1)
        drawn = next(tl.generate(model, ids.repeat(20_000, 1), max_new_tokens=1, generator=generator, **options))
        shares = torch.bincount(drawn, minlength=7) / 20_000
        assert (shares[wanted == 0] == 0).all()
        assert ((shares - wanted).abs() < 5 * (wanted * (1 - wanted) / 20_000).sqrt() + 1e-9).all()


def test_a_generator_repeats_the_draws():
    def said(seed):
        generator = torch.Generator().manual_seed(seed)
        return all_of(make_model(), prompts(), temperature=1.0, generator=generator).tolist()

    assert said(1) == said(1) != said(2)


def test_a_text_ends_with_a_stop_token_and_others_go_on():
    model, ids = make_model(), prompts()
    free = greedy_by_forward(model, ids)
    stop = {int(free[0, 3]), int(free[1, 5])}
    stopped = all_of(model, ids, stop=stop)
    ends = set()
    for one, row in zip(free.tolist(), stopped.tolist(), strict=True):
        end = next((i for i, token in enumerate(one) if token in stop), STEPS)
        ends.add(end)
        assert row[: end + 1] == one[: len(row)][: end + 1]
        assert row[end + 1 :] == [row[-1]] * (len(row) - end - 1)
    assert len(ends) > 1
    last = int(free[0, 3])
    alone = list(tl.generate(model, ids[0].tolist(), max_new_tokens=STEPS, stop=last))
    assert alone == free[0, : free[0].tolist().index(last) + 1].tolist()


def test_tokens_are_computed_when_they_are_asked_for_in_evaluation_and_without_gradients():
    model, calls = make_model().train(), []
    model.register_forward_pre_hook(
        lambda module, inputs: calls.append((inputs[0].shape[1], module.training, torch.is_grad_enabled()))
    )
    said = tl.generate(model, [3, 5, 7, 11], max_new_tokens=3)
    assert calls == []
    next(said)
    assert calls == [(4, False, False)] and model.training and torch.is_grad_enabled()
    assert len(list(said)) == 2
    assert calls[1:] == [(1, False, False)] * 2


def test_a_cache_goes_on_where_it_was():
    model, ids = make_model(), prompts(3, 11)
    cache = model.new_cache()
    first = all_of(model, ids[:, :5], max_new_tokens=2, cache=cache)
    assert cache.length == 6  # what was said last is not read yet
    cache.crop(5)
    again = all_of(model, ids[:, :5], max_new_tokens=2, cache=model.new_cache())
    assert torch.equal(first, again)
    assert torch.equal(all_of(model, ids, cache=cache), greedy_by_forward(model, ids))


@torch.no_grad()
def test_a_cropped_cache_gives_the_same_logits_and_a_window_says_when_it_cannot():
    model, ids = make_model(n_kv_heads=3), prompts(3, 11)
    cache = model.new_cache()
    model(ids, cache)
    cache.crop(4)
    other = prompts(3, 6, seed=1)
    torch.testing.assert_close(model(other, cache), model(torch.cat((ids[:, :4], other), dim=1))[:, 4:])
    assert cache.length == 10
    with pytest.raises(ValueError, match="length must be at most the 10 tokens of the cache, got 11"):
        cache.crop(11)
    cache.crop(0)
    torch.testing.assert_close(model(ids, cache), model(ids))
    narrow = make_model(window=5)
    cache = narrow.new_cache()
    narrow(ids[:, :4], cache)
    cache.crop(3)  # nothing has gone yet
    torch.testing.assert_close(narrow(ids[:, 3:], cache), narrow(ids)[:, 3:])
    cache.crop(11)
    with pytest.raises(ValueError, match="length must be 11, all tokens seen, where a window has let some of them go"):
        cache.crop(10)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": torch.nn.Linear(2, 3)}, TypeError, "model must be a modern.LanguageModel, got Linear"),
        ({"ids": []}, ValueError, r"ids must have an id in every sentence, got \[\]"),
        ({"ids": [53]}, ValueError, r"ids must hold ids in \[0, 53\), got values from 53 to 53"),
        ({"ids": [0.5]}, TypeError, r"ids\[0\] must hold integer ids, got \[0.5\]"),
        ({"ids": "Hi"}, TypeError, r"ids\[0\] must be a list of ids, got 'Hi'"),
        ({"ids": torch.tensor([1])}, ValueError, "ids must have 2 axes"),
        ({"max_new_tokens": 0}, ValueError, "max_new_tokens must be at least 1, got 0"),
        ({"temperature": -1.0}, ValueError, "temperature must be at least 0, got -1.0"),
        ({"temperature": math.nan}, ValueError, "temperature must be at least 0, got nan"),
        ({"temperature": 1.0, "top_p": 0.0}, ValueError, r"top_p must lie in \(0, 1\], got 0.0"),
        ({"top_k": 3}, ValueError, "top_k must be None at temperature 0, where nothing is drawn, got 3"),
        ({"stop": "a"}, TypeError, "stop must be a list of ids, got 'a'"),
        ({"stop": [-1]}, ValueError, "stop must be at least 0, got -1"),
        ({"use_cache": 1}, TypeError, "use_cache must be True or False, got 1"),
        (
            {"use_cache": False, "cache": make_model().new_cache()},
            ValueError,
            "cache must be None with use_cache=False",
        ),
        ({"path": "fast", "use_cache": False}, ValueError, 'path="fast" must have use_cache=True'),
        ({"path": "fast", "cache": make_model().new_cache()}, TypeError, "cache must be a ModernStepper with path"),
        ({"cache": ModernStepper(make_model(), 1, 5)}, TypeError, 'cache must be a Cache with path="readable"'),
        ({"path": "fast", "cache": ModernStepper(make_model(), 1, 5)}, ValueError, "cache must be a ModernStepper of"),
        ({"path": "slow"}, ValueError, "path must be one of 'readable', 'fast', got 'slow'"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(options, error, message):
    arguments = {"model": make_model(), "ids": [3, 5], "max_new_tokens": 3} | options
    with pytest.raises(error, match=message):
        tl.generate(arguments.pop("model"), arguments.pop("ids"), **arguments)


def test_a_cache_that_has_read_all_and_weights_that_are_no_numbers_are_refused():
    model, ids = make_model(), prompts(1, 5)
    cache = model.new_cache()
    with torch.no_grad():
        model(ids, cache)
    with pytest.raises(ValueError, match="ids must go on after the 5 tokens of the cache, got 5 with those"):
        tl.generate(model, ids, max_new_tokens=1, cache=cache)
    with torch.no_grad():
        model.layers[1].attention.w_q.weight[2, 3] = math.nan
    with pytest.raises(ValueError, match="model must have finite weights, got nan in layers.1.attention.w_q.weight"):
        tl.generate(model, ids, max_new_tokens=1)


def test_nothing_is_kept_of_a_text_that_nobody_goes_on_with():
    model = make_model()
    cache = model.new_cache()
    kept = weakref.ref(cache)
    said = tl.generate(model, [3, 5], max_new_tokens=7, cache=cache)
    next(said)
    del said, cache
    gc.collect()
    assert kept() is None
