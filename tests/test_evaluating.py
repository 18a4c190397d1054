from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from factories import make_model

pytestmark = pytest.mark.fast


def modes(model):
    return [part.training for part in model.modules()]


def mixed(model):
    """Give the model's parts different modes, as when some of it is frozen."""
    model.train()
    model.encoder.eval()
    model.decoder.layers[1].train()
    return model


def test_every_part_gets_its_own_mode_back():
    model = mixed(make_model(dropout=0.3))
    before = modes(model)
    assert len(set(before)) == 2
    with tl.evaluating(model):
        assert not any(modes(model))
    assert modes(model) == before


def test_so_it_does_after_an_exception():
    model = mixed(make_model())
    before = modes(model)
    with pytest.raises(KeyError), tl.evaluating(model):
        raise KeyError
    assert modes(model) == before


def test_nested_it_gives_back_the_first_mode():
    model = mixed(make_model())
    before = modes(model)
    with tl.evaluating(model), tl.evaluating(model):
        pass
    assert modes(model) == before


def test_a_plain_module_will_do():
    layer = torch.nn.Dropout(0.5)
    with tl.evaluating(layer):
        assert torch.equal(layer(torch.ones(101)), torch.ones(101))
    assert layer.training
