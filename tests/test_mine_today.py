"""A model of today's blocks made of a learner's parts computes what the library's does."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import transformer_lib as tl
from exercise_styles_20 import STYLES
from transformer_lib.course import exercises, mine
from transformer_lib.course.mine import parts, todays_block

pytestmark = pytest.mark.fast

CONFIG = tl.modern.Config(vocab_size=23, d_model=14, n_heads=6, n_kv_heads=2, d_head=4, n_layers=2, d_ff=11)
CONFIGS = [
    CONFIG,
    replace(CONFIG, window=3, n_kv_heads=1),
    replace(CONFIG, qk_norm=True, tied=False, rope_base=500.0, eps=0.1, embedding_scale=3.0),
]
OF_20 = {part.name for part in parts.PARTS if part.notebook == parts.TODAY}


def new_model(config):
    torch.manual_seed(0)
    model = tl.modern.LanguageModel(config)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)  # gains, too
    return model


def keep_all():
    for exercise in exercises.all_exercises():
        if exercise.part in OF_20:
            mine.keep(exercise.part, dict(STYLES)[exercise.id])


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("whose", ["theirs", "the library's"])
def test_logits_and_gradients_are_the_librarys(config, whose):
    if whose == "theirs":
        keep_all()
    model, ids = new_model(config), torch.randint(23, (3, 7), generator=torch.Generator().manual_seed(1))
    own = mine.today(model)
    assert len(own.parts.theirs) == (5 if whose == "theirs" else 0)
    found = []
    for function in (model, own):
        model.zero_grad()
        logits = function(ids)
        logits.square().mean().backward()
        found.append([logits.detach(), *(parameter.grad.clone() for parameter in model.parameters())])
    for expected, got in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_each_part_is_asked():
    own, called = mine.today(new_model(CONFIG)), set()
    for name in todays_block.NAMES:
        function = getattr(own.parts, name)
        setattr(own.parts, name, lambda *args, f=function, n=name: (called.add(n), f(*args))[1])
    own(torch.tensor([[5, 6, 7]]))
    assert called == set(todays_block.NAMES) == OF_20


def test_a_wrong_part_changes_the_logits():
    model, ids = new_model(CONFIGS[1]), torch.tensor([[5, 6, 7, 8, 9]])
    right = model(ids)
    for name in todays_block.NAMES:
        own = mine.today(model)
        original = getattr(own.parts, name)
        setattr(own.parts, name, lambda *args, f=original: _spoilt(f(*args)))
        assert (own(ids) - right).abs().max() > 1e-3, name


def _spoilt(result):
    return result.roll(1, dims=-1) if result.dtype == torch.bool else result * torch.linspace(1, 2, result.shape[-1])


def test_it_says_whose_the_functions_are():
    model = new_model(CONFIG)
    assert mine.today(model).whose == (
        "All 5 functions are the library's; each of yours takes its place once it is accepted."
    )
    mine.keep("rms_norm", dict(STYLES)["20.1"])
    assert mine.today(model).whose == "1 of 5 functions is yours: rms_norm."
    mine.keep("swiglu", dict(STYLES)["20.2"])
    assert mine.today(model).whose == "2 of 5 functions are yours: rms_norm, swiglu."


def test_it_learns():
    model = new_model(CONFIG)
    own, ids = mine.today(model), torch.arange(10).repeat(2, 1)
    adam, losses = torch.optim.Adam(own.parameters(), lr=0.01), []
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(own(ids[:, :-1]).mT, ids[:, 1:])
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_a_model_of_other_parts_is_refused():
    for change in (
        {"norm": "layer"},
        {"feed_forward": "relu"},
        {"rope_scaling": tl.RotaryScaling(factor=3.0)},
        {"pairs": "neighbours"},
    ):
        with pytest.raises(
            ValueError, match="must have norm='rms', feed_forward='swiglu', rope_scaling=None, pairs='halves', got"
        ):
            mine.today(tl.modern.LanguageModel(replace(CONFIG, **change)))
    with pytest.raises(ValueError, match="ids"):
        mine.today(new_model(CONFIG))(torch.tensor([[23]]))


def narrowed(model):
    model.layers[1].attention.window = 3


def turned_faster(model):
    model.layers[0].attention.position.base = 50.0


def biased(model):
    model.layers[0].attention.w_o = torch.nn.Linear(24, 14)


def another_norm(model):
    model.layers[1].feed_forward_norm = tl.LayerNorm(14)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (narrowed, "layers.1.attention.window is 3, where its config builds None"),
        (turned_faster, "layers.0.attention.position.base is 50.0, where its config builds 10000.0"),
        (biased, "layers.0.attention.w_o is a Linear .*bias"),
        (another_norm, "layers.1.feed_forward_norm is a LayerNorm .*, where its config builds a RMSNorm"),
    ],
)
def test_a_model_that_was_changed_is_refused(change, reason):
    model = new_model(CONFIG)
    change(model)
    with pytest.raises(ValueError, match=f"model must be as its config builds it, but {reason}"):
        mine.today(model)


def test_another_epsilon_is_the_model_s():
    model, ids = new_model(CONFIG), torch.tensor([[5, 6, 7]])
    model.layers[0].attention_norm.eps = 0.3
    torch.testing.assert_close(mine.today(model)(ids), model(ids), rtol=1e-4, atol=1e-5)
