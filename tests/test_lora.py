"""LoRA: nothing changes before it learns, the base never does, and what was learned can be kept, merged and removed."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import transformer_lib as tl
from factories import default_dtype, make_model, random_ids, randomise, sources, targets

pytestmark = pytest.mark.fast

CONFIG = tl.modern.Config(vocab_size=23, d_model=20, n_heads=5, n_layers=3, d_ff=17, n_kv_heads=1)


def writer(config=CONFIG, seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    with default_dtype(dtype):
        return randomise(tl.modern.LanguageModel(config)).eval()


def say(model):
    if isinstance(model, tl.modern.LanguageModel):
        return model(random_ids(23, 5, 7))
    return model(sources(), targets())


def learned(model):
    """Give A and B numbers, as training would."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in tl.lora.parameters(model).values():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
    return model


@pytest.mark.parametrize("make", [writer, make_model])
def test_nothing_changes_before_it_is_trained(make):
    model = make()
    before = say(model)
    named = tl.lora.add(model, rank=3)
    assert len(named) == {writer: 6, make_model: 12}[make] and all(name.endswith(("w_q", "w_v")) for name in named)
    assert torch.equal(say(model), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_adds_the_product_of_two_small_matrices(dtype):
    torch.manual_seed(0)
    base = nn.Linear(7, 11, dtype=dtype)
    layer = tl.lora.LoRALinear(base, 3, 5.0)
    assert layer.a.shape == (3, 7) and layer.b.shape == (11, 3) and not layer.b.any()
    assert layer.a.dtype == layer.b.dtype == dtype and (layer.in_features, layer.out_features) == (7, 11)
    learned(nn.Sequential(layer))
    x = torch.randn(2, 5, 7, dtype=dtype)
    for batch in range(2):
        for token in range(5):
            small = [sum(layer.a[r, i] * x[batch, token, i] for i in range(7)) for r in range(3)]
            wanted = [
                base(x[batch, token])[o] + 5 / 3 * sum(layer.b[o, r] * small[r] for r in range(3)) for o in range(11)
            ]
            torch.testing.assert_close(layer(x)[batch, token], torch.stack(wanted))
    torch.testing.assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_a_is_drawn_so_that_it_keeps_the_size_of_what_it_reads():
    torch.manual_seed(0)
    layer = tl.lora.LoRALinear(nn.Linear(199, 5), 101, 1.0)
    assert layer.a.var().item() == pytest.approx(1 / 199, rel=0.05) and layer.a.mean().abs() < 0.01


@pytest.mark.parametrize("make", [writer, make_model])
def test_gradients_are_those_of_the_whole_matrix(make):
    """∂/∂B = s · (∂/∂W) Aᵀ and ∂/∂A = s · Bᵀ (∂/∂W), where W is that of a model with the product inside."""
    model = make(dtype=torch.float64)
    tl.lora.add(model, rank=3, alpha=5.0)
    learned(model)
    merged = copy.deepcopy(model)
    tl.lora.merge(merged)
    for each in (model, merged):
        (say(each) ** 2).mean().backward()
    for name, layer in tl.lora.adapters(model).items():
        whole = merged.get_submodule(name).weight.grad
        torch.testing.assert_close(layer.b.grad, 5 / 3 * whole @ layer.a.T)
        torch.testing.assert_close(layer.a.grad, 5 / 3 * layer.b.T @ whole)
        assert layer.base.weight.grad is None


def test_only_a_and_b_learn():
    model = writer()
    tl.lora.add(model, rank=3)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == set(tl.lora.parameters(model)) and len(trained) == 12
    assert tl.lora.count(model) == 3 * 3 * ((20 + 20) + (20 + 4))  # layers · rank · (in + out)


@pytest.mark.parametrize("make", [writer, make_model])
def test_removed_it_leaves_the_base_as_it_was(make):
    model = make()
    frozen = next(iter(dict(model.named_parameters())))
    model.get_parameter(frozen).requires_grad_(False)
    before = {name: (weight, weight.clone(), weight.requires_grad) for name, weight in model.named_parameters()}
    kinds = [type(part) for part in model.modules()]
    tl.lora.add(model)
    learned(model)
    tl.lora.remove(model)
    after = dict(model.named_parameters())
    assert list(after) == list(before) and [type(part) for part in model.modules()] == kinds
    for name, (weight, number, trained) in before.items():
        assert after[name] is weight and torch.equal(weight, number) and weight.requires_grad == trained
    assert tl.lora.add(model)  # as if it had never had one


@pytest.mark.parametrize("make", [writer, make_model])
def test_merged_it_computes_the_same_with_plain_layers(make):
    model = make(dtype=torch.float64)
    names = [name for name, _ in model.named_parameters()]
    tl.lora.add(model, rank=3)
    learned(model)
    before = say(model)
    tl.lora.merge(model)
    torch.testing.assert_close(say(model), before, rtol=0, atol=1e-11)
    assert [name for name, _ in model.named_parameters()] == names and not tl.lora.adapters(model)
    assert all(weight.requires_grad for weight in model.parameters())


@pytest.mark.parametrize("make", [writer, make_model])
def test_a_file_gives_it_back_to_another_copy_of_the_base(make, tmp_path):
    model, other = make(), make()
    tl.lora.add(model, rank=3, alpha=5.0, targets=["w_q", "w_o"])
    learned(model)
    tl.lora.save(model, tmp_path / "adapter")
    assert tl.lora.load(other, tmp_path / "adapter") == list(tl.lora.adapters(model))
    assert torch.equal(say(other), say(model))
    with safe_open(tmp_path / "adapter", framework="pt") as file:
        assert set(file.keys()) == set(tl.lora.parameters(model))  # and nothing of the base


@pytest.mark.parametrize("other", [lambda: writer(replace(CONFIG, n_layers=2)), make_model])
def test_a_file_of_another_base_is_refused(other, tmp_path):
    model, other = writer(), other()
    tl.lora.add(model)
    tl.lora.save(model, tmp_path / "adapter")
    message = "model must be the one that adapter .* was made for, a LanguageModel of 6,540 parameters, got a "
    with pytest.raises(ValueError, match=f"{message}{type(other).__name__} of "):
        tl.lora.load(other, tmp_path / "adapter")
    assert not tl.lora.adapters(other) and all(weight.requires_grad for weight in other.parameters())


def test_a_base_with_as_many_parameters_of_other_shapes_is_refused(tmp_path):
    model = nn.Sequential(nn.Linear(7, 11, bias=False))
    tl.lora.add(model, targets=["0"])
    tl.lora.save(model, tmp_path / "adapter")
    with pytest.raises(ValueError, match="got a Sequential of 77 parameters with other names or shapes"):
        tl.lora.load(nn.Sequential(nn.Linear(11, 7, bias=False)), tmp_path / "adapter")


def test_a_file_that_is_no_adapter_is_refused(tmp_path):
    path = tmp_path / "adapter"
    with pytest.raises(FileNotFoundError, match="adapter .* does not exist"):
        tl.lora.load(writer(), path)
    tl.save_checkpoint(path, make_model())
    with pytest.raises(ValueError, match=r"adapter .* must be one that tl\.lora\.save wrote, got a Transformer"):
        tl.lora.load(writer(), path)
    model = writer()
    tl.lora.add(model)
    tl.lora.save(model, path)
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    changed = load_file(path)
    next(iter(changed.values()))[0, 0] += 1
    save_file(changed, path, header)
    with pytest.raises(ValueError, match="adapter .* must be an intact one"):
        tl.lora.load(writer(), path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="adapter .* must be a complete safetensors file"):
        tl.lora.load(writer(), path)


@pytest.mark.parametrize(
    ("target", "count"),
    [
        ("w_q", 3),
        ("attention.w_?", 12),
        ("layers.1.*", 7),
        ("layers.[02].feed_forward.up", 2),
        ("layers.0.attention.w_o", 1),
    ],
)
def test_targets_are_names_ends_of_names_or_patterns(target, count):
    assert len(tl.lora.add(writer(), targets=[target])) == count


def test_a_layer_that_two_targets_name_is_wrapped_once():
    model = writer()
    assert len(tl.lora.add(model, targets=("w_q", "attention.w_q"))) == 3
    assert type(model.layers[0].attention.w_q.base) is nn.Linear


def other_forward():
    model = writer()
    model.layers[1].attention.w_q.forward = lambda x: x
    return model


def computed_weight():
    model = writer()
    nn.utils.parametrizations.weight_norm(model.layers[1].attention.w_q)
    return model


REFUSED = {
    "no match": (writer, {"targets": ["w_z"]}, ValueError, "has down, gate, head, up, w_k, w_o, w_q, w_v; got 'w_z'"),
    "part of a name": (writer, {"targets": ["q"]}, ValueError, "got 'q'"),
    "one of two": (writer, {"targets": ["w_q", "w_z"]}, ValueError, "got 'w_z'"),
    "none": (writer, {"targets": []}, ValueError, "targets must name a layer"),
    "a text": (writer, {"targets": "w_q"}, TypeError, "targets must be a list of strings"),
    "int8": (lambda: tl.int8.quantized(writer()), {}, TypeError, "layers.0.attention.w_q is in eight bits"),
    "tied": (writer, {"targets": ["head"]}, ValueError, "head shares it with another part"),
    "other forward": (other_forward, {}, TypeError, "layers.1.attention.w_q, a Linear, has its own forward"),
    "computed": (computed_weight, {}, ValueError, "layers.1.attention.w_q computes it from others"),
    "rank": (writer, {"rank": 0}, ValueError, "rank must be at least 1, got 0"),
    "alpha": (writer, {"alpha": 0.0}, ValueError, "alpha must be positive, got 0.0"),
    "no model": (lambda: 3, {}, TypeError, "model must be a torch.nn.Module, got int"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_wrap_it_refuses_and_leaves_alone(case):
    make, options, kind, message = REFUSED[case]
    model = make()
    with pytest.raises(kind, match=message.replace(".", r"\.")):
        tl.lora.add(model, **options)
    if isinstance(model, nn.Module):
        assert not tl.lora.adapters(model)


def test_a_wrapped_model_is_not_wrapped_again_and_a_bare_one_not_unwrapped(tmp_path):
    model = writer()
    for change in (tl.lora.remove, tl.lora.merge, lambda model: tl.lora.save(model, tmp_path / "adapter")):
        with pytest.raises(ValueError, match="model must be one that has an adapter, got one without"):
            change(model)
    tl.lora.add(model)
    with pytest.raises(ValueError, match="model must have no adapter yet"):
        tl.lora.add(model, targets=["w_o"])
    with pytest.raises(ValueError, match="got one of which only a part has"):
        tl.lora.remove(nn.ModuleList([model]))


def test_a_base_in_eight_bits_keeps_its_adapter_and_is_not_merged():
    model = writer()
    tl.lora.add(model)
    learned(model)
    small = tl.int8.quantized(model)
    torch.testing.assert_close(say(small), say(tl.int8.rounded(model)), rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match="layers.0.attention.w_q is in eight bits: merge before that"):
        tl.lora.merge(small)
    assert len(tl.lora.adapters(small)) == 6


def test_an_untied_head_can_be_wrapped():
    model = writer(replace(CONFIG, tied=False))
    before = say(model)
    assert tl.lora.add(model, targets=["head"]) == ["head"]
    assert torch.equal(say(model), before)


def test_with_a_cache_it_says_the_same():
    model = writer()
    tl.lora.add(model)
    learned(model)
    ids, cache = random_ids(23, 5, 7), model.new_cache()
    step_by_step = torch.cat([model(ids[:, i : i + 1], cache) for i in range(7)], dim=1)
    torch.testing.assert_close(step_by_step, model(ids), rtol=0, atol=1e-4)


def test_the_fast_path_and_checkpoints_refuse_a_wrapped_translator(tmp_path):
    model = make_model()
    tl.lora.add(model)
    with pytest.raises(ValueError, match="is a LoRALinear"):
        tl.greedy_decode(model, sources(), max_new_tokens=3, path="fast")
    with pytest.raises(ValueError, match="is a LoRALinear"):
        tl.save_checkpoint(tmp_path / "model", model)


def test_a_translator_learns_in_its_adapter():
    model = make_model()
    base = {name: weight.clone() for name, weight in model.named_parameters()}
    tl.lora.add(model, rank=3)
    src = [[3 + i % 7, 4 + i % 5] for i in range(13)]
    history = tl.train(
        model, tl.Batches(src, [[1, *ids, 2] for ids in src], 13), epochs=20, warmup_steps=3, learning_rate=0.05,
        progress=False,
    )  # fmt: skip
    assert history.loss[-1] < history.loss[0] - 0.3
    tl.lora.remove(model)
    assert all(torch.equal(weight, base[name]) for name, weight in model.named_parameters())
