"""Right answers to the exercises of notebook 14 in another style: library calls, loops, arrays, heaps."""

from __future__ import annotations

import heapq
import math

import numpy as np
import torch


def greedy_loop(next_logits, bos_id, eos_id, max_new_tokens):
    ids = torch.tensor([bos_id])
    while len(ids) <= max_new_tokens:
        ids = torch.cat([ids, next_logits(ids.tolist()).argmax().view(1)])
        if ids[-1] == eos_id:
            return ids
    return ids


def cached_attention(x, keys, values, W_Q, W_K, W_V):
    new, t = len(x), len(keys)
    keys, values = torch.vstack([keys, x @ W_K]), torch.vstack([values, x @ W_V])
    may_read = torch.arange(t + new) <= t + torch.arange(new)[:, None]
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(x @ W_Q, keys, values, attn_mask=may_read), keys, values


def cached_attention_token_by_token(x, keys, values, W_Q, W_K, W_V):
    rows = []
    for token in x:
        keys, values = torch.vstack([keys, token @ W_K]), torch.vstack([values, token @ W_V])
        scores = [float(token @ W_Q @ key) / len(key) ** 0.5 for key in keys]
        grown = [math.exp(score - max(scores)) for score in scores]
        rows.append(sum(g / sum(grown) * value for g, value in zip(grown, values, strict=True)))
    return torch.vstack(rows), keys, values


def nucleus_in_a_loop(logits, p, temperature):
    grown = np.exp((logits.double().numpy() - logits.max().item()) / temperature)
    probabilities, kept, total = grown / grown.sum(), np.zeros(len(grown)), 0.0
    for token in np.argsort(-probabilities):
        kept[token] = probabilities[token]
        total += probabilities[token]
        if total >= p - 1e-6:  # logits of float32 say no more
            break
    return torch.from_numpy(kept / kept.sum()).to(logits.dtype)


def nucleus_by_searching(logits, p, temperature):
    probabilities, order = (logits / temperature).log_softmax(0).exp().sort(descending=True)
    count = int(torch.searchsorted(probabilities.cumsum(0), p)) + 1
    kept = torch.zeros_like(logits)
    kept[order[:count]] = probabilities[:count] / probabilities[:count].sum()
    return kept


def beam_step(scores, next_log_probs, beam_size):
    totals = scores.unsqueeze(1) + next_log_probs
    order = totals.flatten().argsort(descending=True)[:beam_size]
    parents = torch.div(order, totals.shape[1], rounding_mode="floor")
    return totals.flatten()[order], parents.to(torch.int32), order - parents * totals.shape[1]


def most_probable(next_log_probs, bos_id, eos_id, max_new_tokens):
    """The most probable open prefix is continued first; the first sentence to come up is the answer."""
    heap = [(0.0, [bos_id])]
    while heap[0][1][-1] != eos_id:
        loss, ids = heapq.heappop(heap)
        if len(ids) <= max_new_tokens:
            for token, gain in enumerate(next_log_probs(ids)):
                heapq.heappush(heap, (loss - gain.item(), [*ids, token]))
    return heap[0][1], -heap[0][0]


def whose_error_by_products(found, right, next_log_probs):
    probability = {}
    for name, ids in (("found", found), ("right", right)):
        steps = [next_log_probs(ids[: i + 1]).exp()[token].item() for i, token in enumerate(ids[1:])]
        probability[name] = math.prod(steps)
    if list(found) == list(right):
        return "none"
    return max(("model", probability["found"]), ("search", probability["right"]), key=lambda pair: pair[1])[0]


def whose_error_by_difference(found, right, next_log_probs):
    advantage = 0.0
    for sign, ids in ((1, right), (-1, found)):
        rows = torch.stack([next_log_probs(ids[:i]) for i in range(1, len(ids))])
        advantage += sign * float(rows.gather(1, torch.tensor(ids[1:])[:, None]).sum())
    return {True: "none", False: "search" if advantage > 0 else "model"}[found == right]


STYLES = [
    ("14.1", greedy_loop),
    ("14.2", cached_attention),
    ("14.2", cached_attention_token_by_token),
    ("14.3", nucleus_in_a_loop),
    ("14.3", nucleus_by_searching),
    ("14.4", beam_step),
    ("14.5", most_probable),
    ("14.6", whose_error_by_products),
    ("14.6", whose_error_by_difference),
]
