"""Right answers to the exercises of notebook 19 in another style: loops, library calls, other dtypes."""

from __future__ import annotations

import torch

import transformer_lib as tl


def prefix_mask_by_maximum(lengths, seq_len):
    places = torch.arange(seq_len)
    last = torch.maximum(places, lengths[:, None] - 1)  # [batch, query]: the last key that it may see
    return (places <= last[..., None]).unsqueeze(1)


def stack_logits_by_keywords(ids, prefix_lengths, embed, stack, head, pad_id):
    hidden = ~tl.prefix_mask(prefix_lengths, ids.shape[1]) | (ids == pad_id)[:, None, None]
    x = stack(x=embed(ids), mask=~hidden)
    return head(x)


def stack_logits_without_rows_of_padding(ids, prefix_lengths, embed, stack, head, pad_id):
    real = ids != pad_id
    mask = tl.prefix_mask(prefix_lengths, ids.shape[1]) & real[:, None, None] & real[:, None, :, None]
    return head(stack(embed(ids) * real[..., None], mask))


def stack_logits_with_clamped_prefixes(ids, prefix_lengths, embed, stack, head, pad_id):
    lengths = torch.minimum(prefix_lengths, (ids != pad_id).sum(1))  # padding stands behind the sentence
    return head(stack(embed(ids), tl.prefix_mask(lengths, ids.shape[1])))


def hide_words(ids, rate, drawn):
    seen, labels = ids.clone(), torch.zeros_like(ids)
    for place in ((ids > 2) & (drawn < rate)).nonzero().tolist():
        b, t = place
        labels[b, t], seen[b, t] = ids[b, t], 3
    return [seen, labels]


def gpt2_attention_as_a_list(c_attn, c_attn_bias, c_proj):
    return [*c_attn.unflatten(-1, (3, -1)).permute(1, 2, 0), c_proj.mT, *c_attn_bias.split(len(c_proj))]


def patches_by_library(images, size):
    return torch.nn.functional.unfold(images[:, None], size, stride=size).mT


STYLES = [
    ("19.1", prefix_mask_by_maximum),
    ("19.2", stack_logits_by_keywords),
    ("19.2", stack_logits_without_rows_of_padding),
    ("19.2", stack_logits_with_clamped_prefixes),
    ("19.3", hide_words),
    ("19.4", gpt2_attention_as_a_list),
    ("19.5", patches_by_library),
]
