"""Right answers to the exercises of notebook 11 in another style: library calls, loops, autograd."""

from __future__ import annotations

import torch


def cross_attention(x, memory, W_Q, W_K, W_V, memory_mask):
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(x @ W_Q, memory @ W_K, memory @ W_V, memory_mask)


def cross_attention_sentence_by_sentence(x, memory, W_Q, W_K, W_V, mask):
    outputs = []
    for b in range(len(x)):
        rows = memory[b][mask[b, 0]]  # what may not be read is not there
        scores = x[b] @ W_Q @ W_K.T @ rows.T / W_K.shape[1] ** 0.5
        outputs.append(scores.softmax(-1) @ rows @ W_V)
    return torch.stack(outputs)


def decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    sublayers = (self_attention, lambda y: cross_attention(query=y, key=memory, value=memory), feed_forward)
    for sublayer, norm in zip(sublayers, (norm_1, norm_2, norm_3), strict=True):
        x = norm(x + sublayer(x))
    return x


def alignment_in_lists(weights, src_tokens, tgt_tokens):
    chosen = weights.mean((0, 1)).argmax(-1)
    return [[word, src_tokens[j]] for word, j in zip(tgt_tokens[1:], chosen, strict=True)]


def alignment_by_vote(weights, src_tokens, tgt_tokens):
    votes = torch.nn.functional.one_hot(weights[1].argmax(-1), len(src_tokens)).sum(0)
    return [(tgt_tokens[t + 1], src_tokens[row.argmax()]) for t, row in enumerate(votes)]


def alignment_by_logarithms(weights, src_tokens, tgt_tokens):
    return [(w, src_tokens[row.argmax()]) for w, row in zip(tgt_tokens[1:], weights[1].log().sum(0), strict=True)]


def step_from_cache(x_new, keys, values, W_Q, W_O):
    query = (x_new @ W_Q).unflatten(-1, (keys.shape[1], 1, -1))  # [batch, n_heads, 1, d_k]
    heads = torch.nn.functional.scaled_dot_product_attention(query, keys, values)
    return heads.transpose(1, 2).flatten(2)[:, 0] @ W_O


def memory_gradient(x, memory, W_Q, W_K, W_V, grad_output):
    with torch.enable_grad():
        leaf = memory.clone().requires_grad_()
        weights = (x @ W_Q @ (leaf @ W_K).T / W_K.shape[1] ** 0.5).softmax(-1)
        return torch.autograd.grad(weights @ leaf @ W_V, leaf, grad_output)[0]


STYLES = [
    ("11.1", cross_attention),
    ("11.1", cross_attention_sentence_by_sentence),
    ("11.2", decoder_layer),
    ("11.4", alignment_in_lists),
    ("11.4", alignment_by_vote),
    ("11.4", alignment_by_logarithms),
    ("11.3", step_from_cache),
    ("11.5", memory_gradient),
]
