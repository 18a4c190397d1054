"""Llama, Qwen3, Mistral and Mixtral of transformers: the same logits, from memory and from files, or a clear error."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from studies import ports_today as study
from transformer_lib.course.lab import ports
from transformer_lib.course.lab import ports_today as study_lab
from transformer_lib.model import interop

pytestmark = pytest.mark.fast
numbers = pytest.mark.parametrize("number", range(3))
kinds = pytest.mark.parametrize("kind", study.KINDS)
# A config.json as it was before transformers 5, and one of today.
OLD = {
    "model_type": "llama",
    "vocab_size": 29,
    "hidden_size": 21,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 11,
    "rms_norm_eps": 1e-5,
    "head_dim": 6,
}
NEW = OLD | {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}


@pytest.fixture(autouse=True)
def _peers(request):
    if "theirs" in request.node.name:
        pytest.importorskip("transformers")


@kinds
@numbers
@torch.no_grad()
def test_theirs_gives_the_same_logits(kind, number):
    theirs, ids = study_lab.new_theirs(kind, number), study_lab.new_ids(number)
    ours = interop.load_hf(theirs.state_dict(), theirs.config)
    wanted = theirs(ids).logits
    assert wanted.std() > 0.5 and ours(ids).dtype == torch.float32
    torch.testing.assert_close(ours(ids), wanted, rtol=0, atol=1e-5)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    assert study.in_float64(kind, number) < 1e-12


@kinds
@torch.no_grad()
def test_theirs_from_a_folder_as_transformers_saves_it(kind, tmp_path):
    theirs, ids = study_lab.new_theirs(kind, 2), study_lab.new_ids(2)
    theirs.save_pretrained(tmp_path)
    ours = interop.load_hf(tmp_path)
    torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=0, atol=1e-5)
    (file,) = tmp_path.glob("*.safetensors")
    assert torch.equal(interop.load_hf(file, theirs.config.to_dict())(ids), ours(ids))
    assert torch.equal(interop.load_hf(str(file))(ids), ours(ids))  # config.json stands beside it


@torch.no_grad()
def test_theirs_of_qwen3_with_a_window_in_all_layers():
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 29, "hidden_size": 21, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 14}
    more = {"num_hidden_layers": 2, "intermediate_size": 11, "use_sliding_window": True, "sliding_window": 3}
    config = transformers.Qwen3Config(max_window_layers=0, **sizes, **more)
    torch.manual_seed(0)
    theirs = ports.draw_anew(transformers.Qwen3ForCausalLM(config).eval(), 0, 0.2)
    ours, ids = interop.load_hf(theirs.state_dict(), config), torch.randint(29, (3, 11))
    assert ours.config.window == 3
    torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=0, atol=1e-5)
    mixed = config.to_dict() | {"layer_types": ["full_attention", "sliding_attention"]}
    with pytest.raises(
        ValueError, match="config must have one kind of attention in all layers, got full_attention, sl"
    ):
        interop.hf_config(mixed)


@torch.no_grad()
def test_theirs_in_chunks_with_a_window():
    theirs, ids = study_lab.new_theirs("Mistral", 1), study_lab.new_ids(1)
    ours = interop.load_hf(theirs.state_dict(), theirs.config)
    cache = ours.new_cache()
    parts = [ours(chunk, cache) for chunk in ids.split([2, 9, 1, 11], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), theirs(ids).logits, rtol=0, atol=1e-5)
    assert cache.bytes == len(ids) * ours.config.cache_bytes(23) == len(ids) * ours.config.cache_bytes(7)


@torch.no_grad()
def test_theirs_in_bfloat16_stays_so():
    theirs = study_lab.new_theirs("Llama", 2).bfloat16()
    ours = interop.load_hf(theirs.state_dict(), theirs.config)
    ids = study_lab.new_ids(2)
    assert ours(ids).dtype == torch.bfloat16
    assert (ours(ids) - theirs(ids).logits).abs().max() < 0.2


def state_of(config, seed=0):
    """A state dict as the files of Llama have it, without transformers."""
    ours = interop.hf_config(config)
    torch.manual_seed(seed)
    width, q, kv = ours.d_model, ours.n_heads * ours.head_width, ours.kv_heads * ours.head_width
    shapes = {"self_attn.q_proj": (q, width), "self_attn.k_proj": (kv, width), "self_attn.v_proj": (kv, width)}
    shapes |= {"self_attn.o_proj": (width, q), "mlp.gate_proj": (ours.d_ff, width), "mlp.up_proj": (ours.d_ff, width)}
    shapes |= {"mlp.down_proj": (width, ours.d_ff), "input_layernorm": (width,), "post_attention_layernorm": (width,)}
    state = {
        f"model.layers.{layer}.{name}.weight": torch.randn(shape)
        for layer in range(ours.n_layers)
        for name, shape in shapes.items()
    }
    state |= {"model.embed_tokens.weight": torch.randn(29, width), "model.norm.weight": torch.randn(width)}
    return state | {"lm_head.weight": torch.randn(29, width)}


def test_each_weight_goes_where_it_belongs():
    state = state_of(NEW)
    ours = interop.load_hf(state, NEW)
    found = dict(ours.named_parameters())
    assert len(found) == len(state)
    pairs = {"self_attn.q_proj": "attention.w_q", "self_attn.k_proj": "attention.w_k", "mlp.up_proj": "feed_forward.up"}
    pairs |= {"self_attn.v_proj": "attention.w_v", "self_attn.o_proj": "attention.w_o"}
    pairs |= {"mlp.gate_proj": "feed_forward.gate", "mlp.down_proj": "feed_forward.down"}
    pairs |= {"input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm"}
    for layer in range(2):
        for theirs, mine in pairs.items():
            weight = found[f"layers.{layer}.{mine}.weight"]
            assert torch.equal(weight, state[f"model.layers.{layer}.{theirs}.weight"])
            assert weight.data_ptr() != state[f"model.layers.{layer}.{theirs}.weight"].data_ptr()
    assert torch.equal(found["head.weight"], state["lm_head.weight"])


@torch.no_grad()
def test_a_tied_head_may_be_in_the_file_or_not():
    tied, state = NEW | {"tie_word_embeddings": True}, state_of(NEW)
    without = {name: weight for name, weight in state.items() if name != "lm_head.weight"}
    ours = interop.load_hf(without, tied)
    assert ours.head.weight is ours.embedding.weight
    same = interop.load_hf(without | {"lm_head.weight": state["model.embed_tokens.weight"]}, tied)
    ids = torch.arange(7)[None]
    assert torch.equal(same(ids), ours(ids))
    with pytest.raises(ValueError, match=r"state_dict\['lm_head.weight'\] must be the same as what it is tied to"):
        interop.load_hf(state, tied)
    with pytest.raises(ValueError, match="state_dict must have 'lm_head.weight'"):
        interop.load_hf(without, NEW)


def test_the_rotary_base_is_found_in_each_of_its_places():
    assert interop.hf_config(NEW).rope_base == 500
    assert interop.hf_config(OLD).rope_base == 10000
    assert interop.hf_config(OLD | {"rope_theta": 7.0, "rope_scaling": None}).rope_base == 7
    assert interop.hf_config(OLD | {"rope_theta": 7.0, "rope_scaling": {"rope_type": "default"}}).rope_base == 7
    # an entry of today counts more than one of before
    assert interop.hf_config(NEW | {"rope_theta": 7.0}).rope_base == 500


def test_what_a_config_leaves_out_means_what_it_means_to_transformers():
    bare = {name: value for name, value in OLD.items() if name not in ("head_dim", "rms_norm_eps")}
    llama = interop.hf_config(bare | {"hidden_size": 18})
    assert (llama.head_width, llama.kv_heads, llama.eps, llama.window) == (6, 3, 1e-6, None)


@pytest.mark.parametrize("kind", ["mistral", "qwen3", "mixtral"])
def test_theirs_by_default_are_ours(kind):
    transformers = pytest.importorskip("transformers")
    names = {"mistral": "MistralConfig", "qwen3": "Qwen3Config", "mixtral": "MixtralConfig"}
    full = interop.hf_config(getattr(transformers, names[kind])())
    given = getattr(transformers, names[kind])().to_dict()
    needed = ("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")
    bare = interop.hf_config({"model_type": kind} | {name: given[name] for name in needed})
    assert replace(bare, d_head=bare.head_width) == replace(full, d_head=full.head_width)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"model_type": "gptj"}, "config must have a model_type of 'llama', 'qwen2', .*'mixtral', got 'gptj'"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 5.0}}, "'linear', 'llama3', got 'yarn'"),
        ({"rope_parameters": None, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'llama3', got 'dynamic'"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor = 1, got 0.5"),
        (
            {"rope_parameters": None, "rope_scaling": {"factor": 4.0}},
            "rotary positions of one kind, 'default', got 'factor'",
        ),
        (
            {"rope_parameters": {"full_attention": {"rope_theta": 5.0}}},
            "rotary positions of one kind, 'default', got 'full_attention'",
        ),
        ({"quantization_config": {"bits": 4}}, "weights in floats, quantization_config = None, got one"),
        ({"attention_bias": True}, "config must have attention_bias = False, got True"),
        ({"mlp_bias": True}, "config must have mlp_bias = False, got True"),
        ({"hidden_act": "gelu"}, "config must have hidden_act = 'silu', got 'gelu'"),
        ({"num_key_value_heads": 2}, "n_heads must be divisible by n_kv_heads, got n_heads=3, n_kv_heads=2"),
    ],
)
def test_what_ours_lacks_is_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        interop.hf_config(NEW | changes)


# Every field of transformers' configurations: what comes of one off its default, which may be a refusal by name.

FIELDS = {
    "vocab_size": 31,
    "hidden_size": 24,
    "intermediate_size": 13,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "hidden_act": "gelu",
    "max_position_embeddings": 41,
    "initializer_range": 0.5,
    "rms_norm_eps": 0.3,
    "use_cache": False,
    "pad_token_id": 3,
    "bos_token_id": 5,
    "eos_token_id": 7,
    "pretraining_tp": 2,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 50.0},
    "attention_bias": True,
    "attention_dropout": 0.3,
    "mlp_bias": True,
    "sliding_window": 3,
    "use_sliding_window": True,
    "max_window_layers": 1,
    "layer_types": ["sliding_attention", "full_attention"],
    "num_experts_per_tok": 1,
    "num_local_experts": 5,
    "output_router_logits": True,
    "router_aux_loss_coef": 0.5,
    "router_jitter_noise": 0.5,
    "no_rope_layers": [1, 0],
    "no_rope_layer_interval": 2,
}
WITH = {  # what a field needs besides to mean something
    "num_attention_heads": {"hidden_size": 16},
    "sliding_window": {"use_sliding_window": True, "max_window_layers": 0},
    "use_sliding_window": {"sliding_window": 3, "max_window_layers": 0},
    "max_window_layers": {"sliding_window": 3, "use_sliding_window": True},
    "layer_types": {"sliding_window": 3, "use_sliding_window": True},
}
SAID = {"max_window_layers": "one kind of attention", "layer_types": "one kind of attention"}


def fields_of(transformers, kind):
    """The names of what a configuration of this kind has besides that of any model."""
    every = transformers.PretrainedConfig().to_dict().keys()
    return getattr(transformers, f"{kind}Config")().to_dict().keys() - every


def theirs_with(transformers, kind, field):
    """Return a model of transformers with one field off its default, all parameters drawn anew."""
    options = {"vocab_size": 29, "hidden_size": 20, "intermediate_size": 11, "num_hidden_layers": 2, "head_dim": 6}
    options |= {"num_attention_heads": 2, "num_key_value_heads": 2, "pad_token_id": None}  # SmolLM3's is beyond 29
    options |= WITH.get(field, {}) | {field: FIELDS[field]}
    known = fields_of(transformers, kind)
    described = getattr(transformers, f"{kind}Config")(**{name: options[name] for name in options.keys() & known})
    described._experts_implementation = "eager"
    return ports.draw_anew(getattr(transformers, f"{kind}ForCausalLM")(described).eval(), 0, 0.2)


@torch.no_grad()
@pytest.mark.parametrize("kind", [*study.KINDS, "Qwen2", "SmolLM3"])
def test_every_field_of_theirs_is_used_or_refused(kind):
    transformers, used = pytest.importorskip("transformers"), set()
    fields = fields_of(transformers, kind)
    assert fields <= FIELDS.keys(), "give a new field of transformers a value off its default in FIELDS"
    ids = torch.randint(29, (3, 11), generator=torch.Generator().manual_seed(0))
    for field in fields:
        theirs = theirs_with(transformers, kind, field)
        try:
            ours = interop.load_hf(theirs.state_dict(), theirs.config)
        except ValueError as refusal:
            assert SAID.get(field, field) in str(refusal), field
            continue
        assert (ours(ids) - theirs(ids).logits).abs().max() < 1e-5, field
        used.add(field)
    wanted = {"rms_norm_eps", "rope_parameters", "num_key_value_heads", "tie_word_embeddings", "head_dim"}
    assert (wanted | {"no_rope_layers", "no_rope_layer_interval"}) & fields <= used
    assert used.isdisjoint({"hidden_act", "attention_bias", "mlp_bias"})


def test_a_config_without_its_sizes_is_refused():
    lacking = {name: value for name, value in NEW.items() if name != "hidden_size"}
    with pytest.raises(ValueError, match="config must have 'hidden_size', got without it"):
        interop.hf_config(lacking)


def test_states_that_do_not_fit():
    state = state_of(NEW)
    name = "model.layers.1.mlp.up_proj.weight"
    lacking = {key: weight for key, weight in state.items() if key != name}
    for wrong, message in (
        ({}, "state_dict must have 'embed_tokens.weight', got without it nothing"),
        (lacking, "state_dict must have 'layers.1.mlp.up_proj.weight'"),
        (state | {name: state[name].T}, r"up_proj.weight'\] must give a weight of shape \(11, 21\), got \(21, 11\)"),
        (
            state | {"model.layers.0.self_attn.q_proj.bias": torch.zeros(18)},
            "got besides layers.0.self_attn.q_proj.bias",
        ),
        (state | {"model.layers.2.x": torch.zeros(1)}, "got besides layers.2.x"),
    ):
        with pytest.raises(ValueError, match=message):
            interop.load_hf(wrong, NEW)
    with pytest.raises(ValueError, match="state_dict must have 'layers.2"):
        interop.load_hf(state, NEW | {"num_hidden_layers": 3})
    with pytest.raises(ValueError, match="config must be given with a state dict"):
        interop.load_hf(state)
    constants = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(3)}
    assert interop.load_hf(state | constants, NEW).config.rope_base == 500


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"weights must be a state dict, a .safetensors file or a folder with one"):
        interop.load_hf(tmp_path)
    with pytest.raises(ValueError, match=r"weights must be a state dict, a .safetensors file or a folder with one"):
        interop.load_hf(tmp_path / "none.safetensors")
    save_file(state_of(NEW), tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"config must be given, or be in config.json beside the weights"):
        interop.load_hf(tmp_path)
    assert interop.load_hf(tmp_path, NEW).config.n_layers == 2
