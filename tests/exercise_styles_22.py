"""Right answers to the exercises of notebook 22 in another style: loops, library calls, other dtypes."""

from __future__ import annotations

import math

import numpy as np
import torch


def tokens_that_stand_in_torch(drafted, checked, eos_id):
    drafted, checked = torch.tensor(drafted, dtype=torch.long), torch.tensor(checked)
    standing = ((drafted == checked[:-1]) & (drafted != eos_id)).cumprod(0).sum()
    return checked[: standing + 1]


def acceptance_in_numpy(p, q):
    p, q = p.numpy(), q.numpy()
    accept = np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))
    stands = q * accept
    left = p - stands
    return torch.from_numpy(accept), torch.from_numpy(left / left.sum() if (p != q).any() else p.copy())


def acceptance_in_single_precision(p, q):
    missing = (p - q).clamp(min=0)
    residual = missing / missing.sum() if missing.sum() > 0 else p
    return (p / q).nan_to_num(1.0, posinf=1.0).clamp(max=1).float(), residual.float()


def quantize_by_rows(weight):
    scales = torch.stack([row.abs().max() / 127 if row.any() else torch.tensor(1.0) for row in weight])
    codes = torch.stack([torch.round(row / scale).char() for row, scale in zip(weight, scales, strict=True)])
    return [codes, scales]


def append_by_where(pages, table, length, free, row):
    size = pages.shape[1]
    new = length % size == 0
    table, free = [*table, *free[:new]], free[new:]
    here = torch.zeros(pages.shape[:2], dtype=torch.bool)
    here[table[-1], length % size] = True
    return torch.where(here[..., None], row, pages), tuple(table), tuple(free)


def block_gradients(g, query, key, value, log_totals, shared, first_query, first_key):
    root = math.sqrt(query.shape[1])
    seen = torch.ones(len(query), len(key), dtype=torch.bool).tril(first_query - first_key)
    weights = torch.where(seen, torch.exp(query @ key.T / root - log_totals[:, None]), 0.0)
    g_scores = weights * (g @ value.T - shared[:, None]) / root
    return g_scores @ key, g_scores.T @ query, weights.T @ g


def block_gradients_by_autograd(g, query, key, value, log_totals, shared, first_query, first_key):
    leaves = [x.clone().requires_grad_() for x in (query, key, value)]
    q, k, v = leaves
    positions = torch.arange(len(key)) + first_key, torch.arange(len(query)) + first_query
    scores = (q @ k.T / q.shape[1] ** 0.5).masked_fill(positions[0] > positions[1][:, None], -torch.inf)
    weights = (scores - log_totals[:, None]).exp()
    # the row's total changes with each score, and so does every weight: that is the part with `shared`
    target = (weights * (g @ v.T)).sum() - (weights * shared[:, None]).sum()
    return torch.autograd.grad(target, leaves)


def propose_by_recursion(ids, table, n, gamma):
    if gamma == 0:
        return []
    for start in range(max(len(ids) - n + 1, 0), len(ids)):
        following = table.get(tuple(ids[start:]))
        if following is not None:
            return [following, *propose_by_recursion([*ids, following], table, n, gamma - 1)]
    return []


def propose_as_numpy(ids, table, n, gamma):
    text = np.array(ids)
    for _ in range(gamma):
        ends = [tuple(text[-m:].tolist()) for m in range(min(n - 1, len(text)), 0, -1)]
        found = next((table[end] for end in ends if end in table), None)
        if found is None:
            break
        text = np.append(text, found)
    return text[len(ids) :]


def serve_by_slots(arrivals, capacity, step, eos_id):
    slots, results, queue, now = [None] * capacity, [None] * len(arrivals), list(range(len(arrivals))), 0
    while queue or any(slot is not None for slot in slots):
        for place in range(capacity):
            if slots[place] is None and queue and arrivals[queue[0]] <= now:
                slots[place] = queue.pop(0)
                results[slots[place]] = [now, []]
        texts = {slot: results[slot][1] for slot in slots if slot is not None}
        said = step(texts) if texts else {}
        for place, slot in enumerate(slots):
            if slot in said:
                results[slot][1] = [*results[slot][1], said[slot]]
                if said[slot] == eos_id:
                    slots[place] = None
        now += 1
    return [tuple(result) for result in results]


def serve_that_skips_idle_steps(arrivals, capacity, step, eos_id):
    inside, done, coming, now = {}, {}, list(enumerate(arrivals)), 0
    while coming or inside:
        if not inside:
            now = max(now, coming[0][1])
        while coming and coming[0][1] <= now and len(inside) < capacity:
            inside[coming.pop(0)[0]] = (now, [])
        for r, token in step({r: text for r, (_, text) in inside.items()}).items():
            inside[r][1].append(token)
        done |= {r: pair for r, pair in inside.items() if pair[1][-1] == eos_id}
        inside = {r: pair for r, pair in inside.items() if r not in done}
        now += 1
    return [done[r] for r in sorted(done)]


def find_pages_by_dictionary(tokens, page_size, held, free):
    known = {beginning: page for page, beginning in reversed(list(enumerate(held))) if beginning}
    cuts = [tuple(tokens[:end]) for end in range(page_size, len(tokens) + page_size, page_size)]
    shared = 0
    while shared < len(cuts) - 1 and cuts[shared] in known:
        shared += 1
    own = free[: len(cuts) - shared]
    if len(own) < len(cuts) - shared:
        return [], 0, held, free
    full = {page: cut for page, cut in zip(own, cuts[shared:], strict=True) if len(cut) % page_size == 0}
    table = [known[cut] for cut in cuts[:shared]] + own
    held = [full.get(page, beginning) for page, beginning in enumerate(held)]
    return table, len(tokens) - shared * page_size, held, free[len(own) :]


def find_pages_by_popping(tokens, page_size, held, free):
    own_held, left, table, start = [*held], [*free], (), 0
    while start + page_size < len(tokens) and tuple(tokens[: start + page_size]) in own_held:
        table += (own_held.index(tuple(tokens[: start + page_size])),)
        start += page_size
    computed = len(tokens) - start
    while start < len(tokens):
        if not left:
            return (), 0, held, free
        page = left.pop(0)
        table, start = (*table, page), start + page_size
        if start <= len(tokens):
            own_held[page] = tuple(tokens[:start])
    return table, computed, own_held, left


STYLES = [
    ("22.1", tokens_that_stand_in_torch),
    ("22.2", acceptance_in_numpy),
    ("22.2", acceptance_in_single_precision),
    ("22.3", quantize_by_rows),
    ("22.4", append_by_where),
    ("22.5", block_gradients),
    ("22.5", block_gradients_by_autograd),
    ("22.6", propose_by_recursion),
    ("22.6", propose_as_numpy),
    ("22.7", serve_by_slots),
    ("22.7", serve_that_skips_idle_steps),
    ("22.8", find_pages_by_dictionary),
    ("22.8", find_pages_by_popping),
]
