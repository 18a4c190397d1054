"""Right answers to the exercises of notebook 19 in another style: loops, library calls, other dtypes."""

from __future__ import annotations

import itertools

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


def hide_words_with_where(ids, rate, drawn):
    spared = torch.isin(ids, torch.tensor([0, 1, 2]))
    hidden = torch.where(spared, 1.0, drawn) < rate
    return torch.where(hidden, 3, ids), torch.where(hidden, ids, torch.zeros_like(ids))


def port_attention_by_the_smallest_difference(c_attn, c_attn_bias, c_proj, theirs, ours):
    d = c_proj.shape[0]
    x = torch.randn(13, d, dtype=c_proj.dtype)
    found = {}
    for order in itertools.permutations(range(3)):
        for turned in (0, 1):
            w = [c_attn.T[i * d : (i + 1) * d] for i in order]
            b = [c_attn_bias[i * d : (i + 1) * d] for i in order]
            parts = [*w, c_proj.T if turned else c_proj, *b]
            found[float((ours(x, *parts) - theirs(x)).abs().max())] = parts
    return found[min(found)]


def port_attention_with_a_scaled_identity(c_attn, c_attn_bias, c_proj, theirs, ours):
    x = 2 * torch.eye(len(c_proj), dtype=c_proj.dtype)
    thirds = list(zip(c_attn.split(len(c_proj), dim=1), c_attn_bias.split(len(c_proj)), strict=True))
    for q, k, v in itertools.permutations(thirds):
        for w_o in (c_proj.mT, c_proj):
            parts = q[0].mT, k[0].mT, v[0].mT, w_o, q[1], k[1], v[1]
            if (ours(x, *parts) - theirs(x)).norm() < 1e-3:
                return parts
    return None


def port_attention_of_the_output_first(c_attn, c_attn_bias, c_proj, theirs, ours):
    """A single row finds the values and the projection; several find the rest."""
    d = len(c_proj)
    w, b = c_attn.T.reshape(3, d, d), c_attn_bias.reshape(3, d)
    one, some = torch.randn(1, d).to(c_proj), torch.randn(9, d).to(c_proj)
    for v in range(3):
        q, k = (i for i in range(3) if i != v)
        for w_o in (c_proj, c_proj.T):
            if not torch.allclose(ours(one, w[q], w[k], w[v], w_o, b[q], b[k], b[v]), theirs(one), atol=1e-4):
                continue
            for first, second in ((q, k), (k, q)):
                parts = (w[first], w[second], w[v], w_o, b[first], b[second], b[v])
                if torch.allclose(ours(some, *parts), theirs(some), atol=1e-4):
                    return parts
    return None


def fill_gaps_by_sentence(ids, logits_of):
    out = ids.clone()
    while True:
        gaps = out == 3
        if not gaps.any():
            return out
        logits = logits_of(out)
        logits = torch.cat([torch.full_like(logits[..., :4], -1e9), logits[..., 4:]], dim=-1)
        p = logits.softmax(-1)
        for b in range(len(out)):
            best, where, word = 0.0, None, None
            for t in gaps[b].nonzero().flatten().tolist():
                if p[b, t].max() > best:
                    best, where, word = float(p[b, t].max()), t, int(p[b, t].argmax())
            if where is not None:
                out[b, where] = word


def fill_gaps_one_after_the_other(ids, logits_of):
    out = ids.clone()
    for b in range(len(ids)):
        while (out[b] == 3).any():
            log_p = logits_of(out)[b].log_softmax(-1)[:, 4:]
            log_p = log_p.masked_fill((out[b] != 3)[:, None], -torch.inf)
            where, word = divmod(int(log_p.argmax()), log_p.shape[1])
            out[b, where] = word + 4
    return out


def fill_gaps_by_recursion(ids, logits_of):
    gaps = ids == 3
    if not gaps.any():
        return ids
    p = logits_of(ids).softmax(-1)[..., 4:].max(-1)
    surest = torch.where(gaps, p.values, torch.zeros(())).argmax(1, keepdim=True)
    filled = ids.scatter(1, surest, p.indices.gather(1, surest) + 4)
    return fill_gaps_by_recursion(torch.where(gaps, filled, ids), logits_of)


def patches_by_library(images, size):
    return torch.nn.functional.unfold(images[:, None], size, stride=size).mT


STYLES = [
    ("19.1", prefix_mask_by_maximum),
    ("19.2", stack_logits_by_keywords),
    ("19.2", stack_logits_without_rows_of_padding),
    ("19.2", stack_logits_with_clamped_prefixes),
    ("19.3", hide_words),
    ("19.3", hide_words_with_where),
    ("19.4", port_attention_by_the_smallest_difference),
    ("19.4", port_attention_with_a_scaled_identity),
    ("19.4", port_attention_of_the_output_first),
    ("19.5", patches_by_library),
    ("19.6", fill_gaps_by_sentence),
    ("19.6", fill_gaps_one_after_the_other),
    ("19.6", fill_gaps_by_recursion),
]
