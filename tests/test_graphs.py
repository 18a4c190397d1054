"""The readable model under PyTorch's transforms: `torch.compile(fullgraph=True)`, `torch.export`, `torch.func`."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch
from torch.func import functional_call, grad, stack_module_state, vmap

import transformer_lib as tl
from factories import POSITIONS, make_config, make_model, randomise, sources, targets


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


def made(kind, *sizes, **options):
    torch.manual_seed(0)
    return randomise(kind(*sizes, **options)).eval()


MODERN = tl.modern.Config(
    vocab_size=29, d_model=24, n_heads=6, n_kv_heads=2, n_layers=1, d_ff=17, window=5, qk_norm=True
)
OTHER_CHOICES = replace(
    MODERN,
    n_layers=2,
    qkv_bias=True,
    rotary_layers=(True, False),
    rope_scaling=tl.RotaryScaling(factor=3.0, original_length=7),
)
MODELS = {
    **{kind: lambda kind=kind: (make_model(position=kind, n_layers=1), sources(), targets()) for kind in POSITIONS},
    "pre-norm": lambda: (make_model(norm_first=True, n_layers=1), sources(), targets()),
    "decoder only": lambda: (made(tl.DecoderOnlyTranslator, make_config(position="rotary")), sources(), targets()),
    "language model": lambda: (made(tl.LanguageModel, 29, 1, 30, 3, 17), targets()),
    "masked language model": lambda: (made(tl.MaskedLanguageModel, 29, 1, 30, 3, 17), targets()),
    "text encoder": lambda: (made(tl.TextEncoder, 29, 1, 30, 3, 17), targets()),
    "modern, other choices": lambda: (made(tl.modern.LanguageModel, OTHER_CHOICES), targets()),
    "modern": lambda: (made(tl.modern.LanguageModel, MODERN), targets()),
}


def loss_of(logits):
    return logits.log_softmax(dim=-1).square().mean()


@pytest.mark.parametrize("name", MODELS)
def test_gradients_per_sentence_are_those_of_a_loop(name):
    """`vmap(grad)` has no single sentence whose ids could be looked at."""
    model, *ids = MODELS[name]()
    parameters = {key: parameter.detach() for key, parameter in model.named_parameters()}

    def loss(parameters, *row):
        return loss_of(functional_call(model, parameters, tuple(x[None] for x in row)))

    found = vmap(grad(loss), in_dims=(None, *[0] * len(ids)))(parameters, *ids)
    for i in range(len(ids[0])):
        model.zero_grad()
        loss_of(model(*(x[i, None] for x in ids))).backward()
        for key, parameter in model.named_parameters():
            torch.testing.assert_close(found[key][i], parameter.grad, rtol=1e-4, atol=1e-6)


def test_an_ensemble_answers_as_its_models_do():
    models, src, tgt_in = [make_model(seed) for seed in range(3)], sources(), targets()
    state = stack_module_state(models)
    found = vmap(lambda *own: functional_call(models[0], own, (src, tgt_in)))(*state)
    for model, logits in zip(models, found, strict=True):
        torch.testing.assert_close(logits, model(src, tgt_in), rtol=0, atol=1e-5)


def test_ids_that_can_be_looked_at_still_are_within_a_gradient():
    model, ids = make_model(), torch.tensor([[0, 23]])
    parameters = dict(model.named_parameters())
    with pytest.raises(ValueError, match=r"src must hold ids in \[0, 23\), got values from 0 to 23"):
        grad(lambda own: loss_of(functional_call(model, own, (ids, targets(1)))))(parameters)
