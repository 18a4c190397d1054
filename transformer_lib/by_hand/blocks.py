"""The parts that own parameters: sub-layers and layers, which find their arrays in a dictionary by name.

A forward function reads `parameters`; its backward writes into `gradients` under the same names, which are those of
`tl.Transformer.state_dict()`, and returns the gradient of what went in.
"""

from __future__ import annotations

from .parts import (
    Array,
    Mask,
    Saved,
    attention,
    attention_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    relu,
    relu_backward,
)

Parameters = dict[str, Array]


def project(x: Array, parameters: Parameters, name: str) -> tuple[Array, Saved]:
    """Return the linear map `name` of x, with its bias if it has one."""
    return linear(x, parameters[f"{name}.weight"], parameters.get(f"{name}.bias"))


def project_backward(g_y: Array, saved: Saved, gradients: Parameters, name: str) -> Array:
    """Return g_x."""
    g_x, gradients[f"{name}.weight"], g_bias = linear_backward(g_y, saved)
    if g_bias is not None:
        gradients[f"{name}.bias"] = g_bias
    return g_x


def split_heads(x: Array, n_heads: int) -> Array:
    """[batch, seq_len, n_heads · d_k] -> [batch, n_heads, seq_len, d_k]."""
    batch, seq_len, width = x.shape
    return x.reshape(batch, seq_len, n_heads, width // n_heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """[batch, n_heads, seq_len, d_k] -> [batch, seq_len, n_heads · d_k]; undoes `split_heads`, and is its backward."""
    batch, n_heads, seq_len, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, seq_len, n_heads * width)


def multi_head(
    x: Array, memory: Array, parameters: Parameters, name: str, n_heads: int, mask: Mask | None
) -> tuple[Array, Saved]:
    """Return Concat(head_1 …) W_O (paper §3.2.2): queries from x, keys and values from memory.

    Args:
        x: [batch, q_len, d_model]. memory: [batch, k_len, d_model], x itself in self-attention.
        mask: broadcastable to [batch, n_heads, q_len, k_len]; True = may attend.
    """
    query, saved_q = project(x, parameters, f"{name}.w_q")
    key, saved_k = project(memory, parameters, f"{name}.w_k")
    value, saved_v = project(memory, parameters, f"{name}.w_v")
    query, key, value = (split_heads(part, n_heads) for part in (query, key, value))
    heads, saved_heads = attention(query, key, value, mask)  # [batch, n_heads, q_len, d_k]
    output, saved_o = project(merge_heads(heads), parameters, f"{name}.w_o")
    return output, (saved_q, saved_k, saved_v, saved_heads, saved_o)


def multi_head_backward(g_output: Array, saved: Saved, gradients: Parameters, name: str) -> tuple[Array, Array]:
    """Return g_x and g_memory; memory made keys and values, so it gets two gradients. In self-attention add both."""
    saved_q, saved_k, saved_v, saved_heads, saved_o = saved
    n_heads = saved_heads[0].shape[1]
    g_heads = split_heads(project_backward(g_output, saved_o, gradients, f"{name}.w_o"), n_heads)
    g_query, g_key, g_value = (merge_heads(g) for g in attention_backward(g_heads, saved_heads))
    g_x = project_backward(g_query, saved_q, gradients, f"{name}.w_q")
    g_memory = project_backward(g_key, saved_k, gradients, f"{name}.w_k")
    return g_x, g_memory + project_backward(g_value, saved_v, gradients, f"{name}.w_v")


def feed_forward(x: Array, parameters: Parameters, name: str) -> tuple[Array, Saved]:
    """Return max(0, x W_1 + b_1) W_2 + b_2 (paper §3.3); x is [batch, seq_len, d_model]."""
    wide, saved_expand = project(x, parameters, f"{name}.expand")  # [batch, seq_len, d_ff]
    hidden, saved_relu = relu(wide)
    output, saved_contract = project(hidden, parameters, f"{name}.contract")
    return output, (saved_expand, saved_relu, saved_contract)


def feed_forward_backward(g_output: Array, saved: Saved, gradients: Parameters, name: str) -> Array:
    """Return g_x."""
    saved_expand, saved_relu, saved_contract = saved
    g_hidden = project_backward(g_output, saved_contract, gradients, f"{name}.contract")
    return project_backward(relu_backward(g_hidden, saved_relu), saved_expand, gradients, f"{name}.expand")


def add_and_norm(x: Array, update: Array, parameters: Parameters, name: str) -> tuple[Array, Saved]:
    """Return LayerNorm(x + update), the residual connection and post-norm around a sub-layer (paper §3.1)."""
    return layer_norm(x + update, parameters[f"{name}.weight"], parameters[f"{name}.bias"])


def add_and_norm_backward(g_y: Array, saved: Saved, gradients: Parameters, name: str) -> Array:
    """Return the gradient of the sum, which is g_x along the residual path and g_update alike."""
    g_sum, gradients[f"{name}.weight"], gradients[f"{name}.bias"] = layer_norm_backward(g_y, saved)
    return g_sum


def encoder_layer(x: Array, parameters: Parameters, name: str, n_heads: int, mask: Mask | None) -> tuple[Array, Saved]:
    """Return x [batch, src_len, d_model] after self-attention and feed-forward (paper §3.1)."""
    attended, saved_attention = multi_head(x, x, parameters, f"{name}.self_attention", n_heads, mask)
    x, saved_norm_1 = add_and_norm(x, attended, parameters, f"{name}.self_attention_residual.norm")
    fed, saved_fed = feed_forward(x, parameters, f"{name}.feed_forward")
    x, saved_norm_2 = add_and_norm(x, fed, parameters, f"{name}.feed_forward_residual.norm")
    return x, (saved_attention, saved_norm_1, saved_fed, saved_norm_2)


def encoder_layer_backward(g: Array, saved: Saved, gradients: Parameters, name: str) -> Array:
    """Return g_x: at each residual connection the path through the sub-layer is added to the path around it."""
    saved_attention, saved_norm_1, saved_fed, saved_norm_2 = saved
    g = add_and_norm_backward(g, saved_norm_2, gradients, f"{name}.feed_forward_residual.norm")
    g = g + feed_forward_backward(g, saved_fed, gradients, f"{name}.feed_forward")
    g = add_and_norm_backward(g, saved_norm_1, gradients, f"{name}.self_attention_residual.norm")
    g_x, g_memory = multi_head_backward(g, saved_attention, gradients, f"{name}.self_attention")
    return g + g_x + g_memory


def decoder_layer(
    x: Array,
    memory: Array,
    parameters: Parameters,
    name: str,
    n_heads: int,
    tgt_mask: Mask | None,
    memory_mask: Mask | None,
) -> tuple[Array, Saved]:
    """Return x [batch, tgt_len, d_model] after self-attention, cross-attention to memory, and feed-forward (§3.1)."""
    attended, saved_self = multi_head(x, x, parameters, f"{name}.self_attention", n_heads, tgt_mask)
    x, saved_norm_1 = add_and_norm(x, attended, parameters, f"{name}.self_attention_residual.norm")
    fetched, saved_cross = multi_head(x, memory, parameters, f"{name}.cross_attention", n_heads, memory_mask)
    x, saved_norm_2 = add_and_norm(x, fetched, parameters, f"{name}.cross_attention_residual.norm")
    fed, saved_fed = feed_forward(x, parameters, f"{name}.feed_forward")
    x, saved_norm_3 = add_and_norm(x, fed, parameters, f"{name}.feed_forward_residual.norm")
    return x, (saved_self, saved_norm_1, saved_cross, saved_norm_2, saved_fed, saved_norm_3)


def decoder_layer_backward(g: Array, saved: Saved, gradients: Parameters, name: str) -> tuple[Array, Array]:
    """Return g_x and g_memory, this layer's share of what the encoder will get."""
    saved_self, saved_norm_1, saved_cross, saved_norm_2, saved_fed, saved_norm_3 = saved
    g = add_and_norm_backward(g, saved_norm_3, gradients, f"{name}.feed_forward_residual.norm")
    g = g + feed_forward_backward(g, saved_fed, gradients, f"{name}.feed_forward")
    g = add_and_norm_backward(g, saved_norm_2, gradients, f"{name}.cross_attention_residual.norm")
    g_x, g_memory = multi_head_backward(g, saved_cross, gradients, f"{name}.cross_attention")
    g = add_and_norm_backward(g + g_x, saved_norm_1, gradients, f"{name}.self_attention_residual.norm")
    g_query, g_own = multi_head_backward(g, saved_self, gradients, f"{name}.self_attention")
    return g + g_query + g_own, g_memory
