"""The readable model can be captured as one graph: `torch.compile(fullgraph=True)` and `torch.export`."""

from __future__ import annotations

import shutil

import pytest
import torch

import transformer_lib as tl
from factories import POSITIONS, make_model, sources, targets


def gradients(model, src, tgt_in):
    model.zero_grad()
    model(src, tgt_in).square().mean().backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.fixture(autouse=True)
def fresh_graphs():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_one_graph_gives_the_same_logits_and_gradients(position, norm_first):
    model, src, tgt_in = make_model(position=position, norm_first=norm_first, n_layers=1), sources(), targets()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(src, tgt_in), model(src, tgt_in), rtol=0, atol=1e-5)
    wanted = gradients(model, src, tgt_in)
    model.zero_grad()
    compiled(src, tgt_in).square().mean().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name], rtol=1e-4, atol=1e-6)


def test_one_graph_serves_other_lengths():
    model = make_model(n_layers=1)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for length in (5, 7, 13):
        src, tgt_in = sources(length=length), targets(length=length + 2)
        torch.testing.assert_close(compiled(src, tgt_in), model(src, tgt_in), rtol=0, atol=1e-5)


def test_the_training_loss_is_one_graph_too():
    model, src, tgt = make_model(n_layers=1), sources(), targets(padded=True)
    loss = tl.TrainingLoss(model, 0.1)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(src, tgt), loss(src, tgt), rtol=1e-5, atol=0)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # within torch, when inductor is first loaded
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch's inductor needs g++")
def test_inductor_gives_the_same_logits():
    model, src, tgt_in = make_model(n_layers=1), sources(), targets()
    with torch.no_grad():
        torch.testing.assert_close(
            torch.compile(model, fullgraph=True)(src, tgt_in), model(src, tgt_in), rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("position", POSITIONS)
def test_an_exported_model_translates_batches_of_other_sizes(position, tmp_path):
    model = make_model(position=position, n_layers=1)
    batch, src_len, tgt_len = (torch.export.Dim(name, min=2, max=31) for name in ("batch", "src_len", "tgt_len"))
    program = torch.export.export(
        model,
        (sources(), targets()),
        dynamic_shapes={"src": {0: batch, 1: src_len}, "tgt_in": {0: batch, 1: tgt_len}},
    )
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for size, length in ((5, 7), (3, 11)):
        src, tgt_in = sources(size, length), targets(size, length + 2)
        torch.testing.assert_close(loaded(src, tgt_in), model(src, tgt_in), rtol=0, atol=1e-5)


def test_without_a_graph_ids_out_of_range_are_still_refused():
    with pytest.raises(ValueError, match=r"src must hold ids in \[0, 23\), got values from 0 to 23"):
        make_model()(torch.tensor([[0, 23]]), targets(1))
