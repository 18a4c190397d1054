"""Llama 3.1, Qwen2 and SmolLM3 of transformers: the same logits and gradients; of other kinds, what ours lack."""

from __future__ import annotations

import copy
import math
from types import MethodType

import pytest
import torch
from torch import nn

import transformer_lib as tl
from studies.ports_today import _exact_norm
from transformer_lib.course.lab import ports
from transformer_lib.course.lab.ports_today import LLAMA_31
from transformer_lib.model import interop

pytestmark = pytest.mark.fast
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SCALED = LLAMA3 | {"rope_theta": 5000.0, "original_max_position_embeddings": 7}
SIZES = {"vocab_size": 53, "hidden_size": 66, "intermediate_size": 71, "num_hidden_layers": 3, "head_dim": 14}
HEADS = {"num_attention_heads": 6, "num_key_value_heads": 3}  # d_model is not heads × d_head
NO_TOKENS = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
PLACES = 29  # beyond the 7 of the first training
FEWER = {"hidden_size": 35, "num_attention_heads": 5, "num_key_value_heads": 1}
CASES = {
    "Llama 3.1": ("Llama", {"rope_parameters": SCALED}),
    "Llama 3.2": ("Llama", {"rope_parameters": SCALED | {"factor": 32.0}, "tie_word_embeddings": True}),
    "Llama, linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 3.0}}),
    "Qwen2": ("Qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "Qwen2.5, tied": ("Qwen2", FEWER | {"tie_word_embeddings": True}),
    "Qwen2, a window": ("Qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}),
    "SmolLM3": ("SmolLM3", {"no_rope_layers": [1, 0, 1]}),
    "SmolLM3, scaled": ("SmolLM3", {"no_rope_layer_interval": 2, "rope_parameters": SCALED}),
}
cases = pytest.mark.parametrize("case", CASES)
ATOL = {torch.float32: 1e-5, torch.float64: 1e-12}  # relative to the largest number
dtypes = pytest.mark.parametrize("dtype", ATOL, ids=str)


def theirs_of(case, dtype=torch.float32):
    """Return a model of transformers with all parameters drawn anew, of spread .3."""
    transformers = pytest.importorskip("transformers")
    kind, options = CASES[case]
    options = {"max_position_embeddings": 31, **SIZES, **HEADS, **NO_TOKENS, **options}
    config = getattr(transformers, f"{kind}Config")(**options)
    torch.manual_seed(0)
    theirs = ports.draw_anew(getattr(transformers, f"{kind}ForCausalLM")(config).eval(), 0, 0.3).to(dtype)
    return exact(theirs) if dtype is torch.float64 else theirs


def exact(theirs):
    """Norms and angles in float64, which transformers has in float32 whatever the model is in."""
    for module in theirs.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = MethodType(_exact_norm, module)
        elif type(module).__name__.endswith("RotaryEmbedding"):
            rates = torch.tensor(rates_of(theirs.config.rope_parameters, 14), dtype=torch.float64)
            module.forward = MethodType(angles_by(rates), module)
    return theirs


def rates_of(rope, width):
    """The frequencies one by one, as Llama 3.1's published code has them, with its wavelengths."""
    rates = [rope["rope_theta"] ** (-2 * j / width) for j in range(width // 2)]
    if rope["rope_type"] == "default":
        return rates
    if rope["rope_type"] == "linear":
        return [rate / rope["factor"] for rate in rates]
    found, length = [], rope["original_max_position_embeddings"]
    for rate in rates:
        wavelength = 2 * math.pi / rate
        if wavelength < length / rope["high_freq_factor"]:
            found.append(rate)
        elif wavelength > length / rope["low_freq_factor"]:
            found.append(rate / rope["factor"])
        else:
            span = rope["high_freq_factor"] - rope["low_freq_factor"]
            smooth = (length / wavelength - rope["low_freq_factor"]) / span
            found.append((1 - smooth) * rate / rope["factor"] + smooth * rate)
    return found


def angles_by(rates):
    def forward(_self, _x, position_ids):
        angles = (position_ids[..., None].double() * rates).repeat(1, 1, 2)
        return angles.cos(), angles.sin()

    return forward


def ids_of(batch=3, length=PLACES):
    return torch.randint(53, (batch, length), generator=torch.Generator().manual_seed(1))


def close(found, wanted, atol):
    assert (found - wanted).abs().max() <= atol * wanted.abs().max()


def loss_of(logits, ids):
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


@cases
@dtypes
def test_theirs_gives_the_same_logits_and_gradients(case, dtype):
    theirs, ids = theirs_of(case, dtype), ids_of()
    ours = interop.load_hf(theirs.state_dict(), theirs.config)
    logits, wanted = ours(ids), theirs(ids).logits
    assert wanted.std() > 0.5 and logits.dtype == dtype
    close(logits, wanted, ATOL[dtype])
    loss_of(logits, ids).backward()
    loss_of(wanted, ids).backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    of_theirs = dict(interop.load_hf(gradients, theirs.config).named_parameters())
    for name, parameter in ours.named_parameters():
        close(parameter.grad, of_theirs[name], 10 * ATOL[dtype])  # sums over all places


@cases
@torch.no_grad()
def test_theirs_with_a_cache(case):
    theirs, ids = theirs_of(case, torch.float64), ids_of()
    ours = interop.load_hf(theirs.state_dict(), theirs.config)
    cache = ours.new_cache()
    parts = [ours(chunk, cache) for chunk in ids.split([2, 11, 1, 15], dim=1)]
    close(torch.cat(parts, dim=1), theirs(ids).logits, ATOL[torch.float64])


@torch.no_grad()
@pytest.mark.parametrize("case", ["Llama 3.1", "Qwen2", "SmolLM3"])
def test_what_is_new_makes_a_difference(case):
    theirs, ids = theirs_of(case), ids_of()
    ours = interop.load_hf(theirs.state_dict(), theirs.config)
    plain = copy.deepcopy(ours)
    for layer in plain.layers:
        layer.attention.position = tl.RotaryPosition(ours.config.rope_base, "halves")
        for linear in (layer.attention.w_q, layer.attention.w_k, layer.attention.w_v):
            linear.bias = None
    assert (plain(ids) - ours(ids)).abs().max() > 0.1 * ours(ids).abs().max()


@torch.no_grad()
@cases
def test_theirs_from_a_folder_as_transformers_saves_it(case, tmp_path):
    theirs, ids = theirs_of(case), ids_of()
    theirs.save_pretrained(tmp_path)
    close(interop.load_hf(tmp_path)(ids), theirs(ids).logits, 1e-5)


def test_both_spellings_of_the_rotary_parameters_are_read():
    bare = {name: value for name, value in LLAMA_31.items() if name != "rope_parameters"}
    rope = LLAMA_31["rope_parameters"]
    scaling = {name: value for name, value in rope.items() if name != "rope_theta"}
    today = interop.hf_config(LLAMA_31)
    assert today.rope_base == 500_000
    assert today.rope_scaling == tl.RotaryScaling(factor=8.0, original_length=8192, low=1.0, high=4.0)
    before = bare | {"rope_theta": 500_000.0, "rope_scaling": scaling}  # as Llama 3.1 8B's config.json is published
    oldest = bare | {"rope_theta": 500_000.0, "rope_scaling": scaling | {"type": "llama3"}}
    both = before | {"rope_parameters": scaling}
    assert interop.hf_config(before) == interop.hf_config(oldest) == interop.hf_config(both) == today
    linear = {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": None}
    assert interop.hf_config(bare | linear).rope_scaling == tl.RotaryScaling(factor=4.0)
    with pytest.raises(ValueError, match="config must have rope_parameters or rope_scaling, got both: {'rope_type': "):
        interop.hf_config(LLAMA_31 | {"rope_scaling": {"type": "linear", "factor": 4.0}})


def test_the_length_of_the_first_training_has_three_places():
    transformers = pytest.importorskip("transformers")
    sizes = SIZES | HEADS | {"max_position_embeddings": 31, "model_type": "llama"}
    for more, length in (
        ({"rope_parameters": SCALED}, 7),
        ({"rope_parameters": SCALED, "original_max_position_embeddings": 7}, 7),
        ({"rope_parameters": LLAMA3 | {"rope_theta": 5000.0}}, 31),
    ):
        assert interop.hf_config(sizes | more).rope_scaling.original_length == length
        theirs = transformers.LlamaConfig(**copy.deepcopy(sizes | more)).rope_parameters
        assert theirs["original_max_position_embeddings"] == length
    beside = {"rope_parameters": LLAMA3 | {"rope_theta": 5000.0}, "original_max_position_embeddings": 11}
    assert interop.hf_config(sizes | beside).rope_scaling.original_length == 11
    with pytest.raises(ValueError, match="must have one original_max_position_embeddings, got 11 and, .* 7"):
        interop.hf_config(sizes | beside | {"rope_parameters": SCALED})


@pytest.mark.parametrize("name", ["factor", "low_freq_factor", "high_freq_factor"])
def test_a_scaling_without_a_number_is_refused(name):
    rope = {key: value for key, value in LLAMA_31["rope_parameters"].items() if key != name}
    with pytest.raises(ValueError, match=f"config must have '{name}', got without it"):
        interop.hf_config(LLAMA_31 | {"rope_parameters": rope})


def test_layers_without_positions_are_every_fourth_by_default():
    smollm3 = {"model_type": "smollm3", "num_hidden_layers": 9, **HEADS}
    smollm3 |= {name: SIZES[name] for name in ("vocab_size", "hidden_size", "intermediate_size", "head_dim")}
    plain, third = interop.hf_config(smollm3), interop.hf_config(smollm3 | {"no_rope_layer_interval": 3})
    assert plain.rotary_layers == (True, True, True, False, True, True, True, False, True)
    assert third.rotary_layers == (True, True, False) * 3
    assert plain.tied and plain.rope_base == 2_000_000
    assert interop.hf_config(smollm3 | {"no_rope_layers": [1] * 9}).rotary_layers is None
    with pytest.raises(ValueError, match="rotary_layers must say it of n_layers = 9 layers, got 2"):
        interop.hf_config(smollm3 | {"no_rope_layers": [1, 0]})
    windows = {"use_sliding_window": True, "sliding_window": 3}
    with pytest.raises(ValueError, match="one kind of attention in all layers, got full_attention, .*sliding_att"):
        interop.hf_config(smollm3 | windows)


@pytest.mark.parametrize("kind", ["Qwen2", "SmolLM3"])
def test_theirs_by_default_are_ours(kind):
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{kind}Config")()
    needed = ("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")
    bare = {"model_type": config.model_type} | {name: getattr(config, name) for name in needed}
    assert interop.hf_config(bare) == interop.hf_config(config)


# What ours lack for other kinds, and what of transformers' own model of that kind shows it ---------------------------

TINY = {"vocab_size": 29, "hidden_size": 16, "intermediate_size": 11, "num_hidden_layers": 2, **NO_TOKENS}
TINY |= {"num_attention_heads": 2, "num_key_value_heads": 2}
MLA = {"q_lora_rank": 4, "kv_lora_rank": 4, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 4}
MLA |= {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 5}
MLA |= {"first_k_dense_replace": 1}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 5}
FEW = {"num_local_experts": 4, "num_experts_per_tok": 2}
# model_type: class, options, and parts of names of its parameters or entries of its configuration
SHOWN = {
    "cohere": ("CohereForCausalLM", {}, ("logit_scale",)),
    "deepseek_v2": ("DeepseekV2ForCausalLM", MLA, ("kv_a_proj_with_mqa", "shared_experts")),
    "deepseek_v3": ("DeepseekV3ForCausalLM", MLA, ("kv_a_proj_with_mqa", "shared_experts")),
    "falcon": ("FalconForCausalLM", {}, ("query_key_value", "parallel_attn")),
    "gemma": ("GemmaForCausalLM", {"head_dim": 8}, ()),
    "gemma2": ("Gemma2ForCausalLM", {"head_dim": 8}, ("post_feedforward_layernorm", "attn_logit_softcapping")),
    "gemma3_text": ("Gemma3ForCausalLM", {"head_dim": 8}, ("post_feedforward_layernorm", "sliding_window")),
    "gpt_neox": ("GPTNeoXForCausalLM", {}, ("query_key_value", "use_parallel_residual")),
    "gpt_oss": ("GptOssForCausalLM", FEW | {"head_dim": 8}, ("sinks", "o_proj.bias", "sliding_window")),
    "granite": (
        "GraniteForCausalLM",
        {},
        ("embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"),
    ),
    "mamba": ("MambaForCausalLM", {}, ("A_log",)),
    "olmo2": ("Olmo2ForCausalLM", {}, ("post_feedforward_layernorm", "q_norm")),
    "olmo3": ("Olmo3ForCausalLM", {}, ("post_feedforward_layernorm", "q_norm")),
    "phi3": ("Phi3ForCausalLM", {}, ("qkv_proj", "gate_up_proj")),
    "qwen2_moe": ("Qwen2MoeForCausalLM", EXPERTS | {"shared_expert_intermediate_size": 5}, ("shared_expert_gate",)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", EXPERTS | {"head_dim": 8}, ("norm_topk_prob", "mlp_only_layers")),
    "roberta": ("RobertaForMaskedLM", {}, ("lm_head.layer_norm",)),
    "t5": (
        "T5ForConditionalGeneration",
        {"d_model": 16, "d_ff": 11, "num_layers": 1, "num_heads": 2, "d_kv": 8},
        ("relative_attention_bias",),
    ),
}


def test_each_kind_that_is_refused_is_looked_at():
    assert SHOWN.keys() == interop.LACKING.keys() - {"gemma3"}
    assert interop.LACKING.keys().isdisjoint(interop.HF_DEFAULTS)


@pytest.mark.parametrize("kind", SHOWN)
def test_another_kind_is_refused_with_what_ours_lack(kind):
    transformers = pytest.importorskip("transformers")
    name, options, shown = SHOWN[kind]
    made = getattr(transformers, name)
    config = made.config_class(**TINY | options)
    state = made(config).state_dict()
    for part in shown:
        assert any(part in entry for entry in (*state, *config.to_dict())), part
    if "gain of 1 + w" in interop.LACKING[kind]:
        assert not state["model.norm.weight"].any()  # begins as a gain of 1
    with pytest.raises(ValueError, match="config must have a model_type of 'llama', 'qwen2', .* got ") as refusal:
        interop.load_hf(state, config)
    assert str(refusal.value).endswith(f"got {kind!r}, which has {interop.LACKING[kind]}")


def test_what_has_a_reader_of_its_own_is_told_which():
    transformers = pytest.importorskip("transformers")
    for kind, config in (("gpt2", transformers.GPT2Config()), ("bert", transformers.BertConfig())):
        with pytest.raises(ValueError, match=f"got '{kind}': tl.interop.load_{kind} reads it"):
            interop.hf_config(config)
    with pytest.raises(ValueError, match="got 'gemma3', which has images"):
        interop.hf_config({"model_type": "gemma3"})
    with pytest.raises(ValueError, match="'mixtral', got 'nobody'$"):
        interop.hf_config({"model_type": "nobody"})
    with pytest.raises(TypeError, match="config must be a configuration of transformers or the dictionary .* got 3"):
        interop.hf_config(3)
