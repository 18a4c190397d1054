"""Exercises of notebook 15, continued: norms of what is added, a probe, and rows taken from another sentence."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal


def weighted_norms(weights, value, W_O):
    """Return the length of what query i receives from key j, weights[i, j] value[j] W_O, as [q_len, k_len].

    weights: [q_len, k_len]; value: [k_len, d_v]; W_O: [d_v, d_model], the rows of this one head.
    """
    lengths = [torch.linalg.vector_norm(row @ W_O) for row in value]
    return weights * torch.stack(lengths)[None, :]


def nearest_mean(known, labels, asked):
    """Return for each asked vector the label whose known vectors have the nearest mean, [n_asked] integers.

    known: [n_known, d_model]; labels: [n_known] integers 0, 1, …, each used at least once; asked: [n_asked, d_model].
    Nearest by Euclidean distance.
    """
    kinds = int(labels.max()) + 1
    answers = []
    for vector in asked:
        distances = [((vector - known[labels == kind].mean(dim=0)) ** 2).sum().item() for kind in range(kinds)]
        answers.append(distances.index(min(distances)))
    return torch.tensor(answers)


def patch(memory, donor, places):
    """Return a copy of memory in which sentence i has row places[i] of donor's sentence i; memory stays as it is.

    memory, donor: [batch, src_len, d_model]; places: [batch] integers.
    """
    rows = []
    for own, other, place in zip(memory, donor, places.tolist(), strict=True):
        rows.append(torch.cat([own[:place], other[place : place + 1], own[place + 1 :]]))
    return torch.stack(rows)


def _norm_cases():
    def case(label, seed, q_len, k_len, d_v, d_model):
        scores, value, W_O = normal(seed, (q_len, k_len), (k_len, d_v), (d_v, d_model))
        return Case(label, (torch.softmax(2 * scores, dim=-1), value, W_O))

    return [
        case("2 queries, 3 keys", 1531, 2, 3, 2, 5),
        case("5 queries, 7 keys", 1532, 5, 7, 3, 11),
        case("as many queries as keys", 1533, 3, 3, 2, 7),
        case("one query", 1534, 1, 5, 3, 2),
        case("square", 1535, 5, 5, 5, 5),
    ]


def _probe_cases():
    def case(label, seed, n_known, n_asked, d_model, kinds):
        centres, noise, other = normal(seed, (kinds, d_model), (n_known, d_model), (n_asked, d_model))
        labels = torch.cat([torch.arange(kinds), integers(seed, (n_known - kinds,), 0, kinds)])
        sizes = torch.linspace(0.5, 2.5, kinds)[:, None]  # means of different lengths: distance is not a product
        asked = (centres * sizes)[integers(seed + 1, (n_asked,), 0, kinds)] + 0.8 * other
        return Case(label, ((centres * sizes)[labels] + 0.8 * noise, labels, asked))

    return [
        case("2 labels in the plane", 1541, 11, 7, 2, 2),
        case("3 labels", 1542, 23, 13, 5, 3),
        case("5 labels", 1543, 31, 17, 7, 5),
        case("one vector asked", 1544, 7, 1, 3, 2),
        case("few known vectors", 1545, 5, 19, 2, 3),
        case("more asked than known", 1546, 7, 29, 3, 3),
    ]


def _patch_cases():
    def case(label, seed, batch, src_len, d_model):
        memory, donor = normal(seed, (batch, src_len, d_model), (batch, src_len, d_model))
        return Case(label, (memory, donor, integers(seed, (batch,), 0, src_len)))

    def at(label, seed, places, src_len, d_model):
        memory, donor = normal(seed, (len(places), src_len, d_model), (len(places), src_len, d_model))
        return Case(label, (memory, donor, torch.tensor(places)))

    return [
        at("2 sentences, places 0 and 2", 1551, [0, 2], 3, 2),
        at("one sentence, its last place", 1552, [4], 5, 3),
        case("5 sentences", 1553, 5, 7, 3),
        at("as many sentences as places", 1554, [2, 0, 1], 3, 5),
        case("7 sentences of 11", 1555, 7, 11, 2),
    ]


def _means(known, labels):
    one_hot = torch.nn.functional.one_hot(labels).to(known)
    return one_hot.T @ known / one_hot.sum(dim=0)[:, None], one_hot


def _probe(closeness):
    return lambda known, labels, asked: closeness(asked, *_means(known, labels)).argmax(dim=-1)


def _nearest_neighbour(known, labels, asked):
    return labels[torch.cdist(asked, known).argmin(dim=-1)]


def _patched(rows, columns=None, turned=False):
    """Memory with some rows from the donor; rows(places) are sentences, columns(places) places (all by default)."""

    def function(memory, donor, places):
        base, source = (donor, memory) if turned else (memory, donor)
        result = base.clone()
        sentences, chosen = rows(places), columns(places) if columns else slice(None)
        result[sentences, chosen] = source[sentences, chosen]
        return result

    return function


def _all(places):
    return torch.arange(len(places))


def _in_place(memory, donor, places):
    memory[_all(places), places] = donor[_all(places), places]
    return memory


def _first_donor(memory, donor, places):
    result = memory.clone()
    result[_all(places), places] = donor[0, places]
    return result


EXERCISES = (
    Exercise(
        "15.2",
        "How much does a key add?",
        10,
        2,
        weighted_norms,
        _norm_cases,
        (
            Mistake(
                "weights alone",
                lambda w, v, W: w.clone(),
                "These are the weights; each is to be multiplied by a length.",
            ),
            Mistake(
                "no weights",
                lambda w, v, W: (v @ W).norm(dim=-1).expand(len(w), -1).clone(),
                "These are the lengths without the weights.",
            ),
            Mistake(
                "value not projected",
                lambda w, v, W: w * v.norm(dim=-1),
                "The length is that of the value before W_O; what arrives is value[j] W_O.",
            ),
            Mistake(
                "product of norms",
                lambda w, v, W: w * v.norm(dim=-1) * W.norm(),
                "The length of a product is not the product of the lengths: multiply value by W_O first.",
            ),
            Mistake(
                "squared",
                lambda w, v, W: w * (v @ W).square().sum(dim=-1),
                "That is the squared length; take its root.",
            ),
            Mistake(
                "weight squared",
                lambda w, v, W: w.square() * (v @ W).norm(dim=-1),
                "The weight multiplies the vector, so it multiplies the length once, not squared.",
            ),
            Mistake(
                "length of the sum",
                lambda w, v, W: (w @ v @ W).norm(dim=-1)[:, None].expand_as(w).clone(),
                "That is the length of the whole output of a query; asked for is the part of each key.",
            ),
            Mistake(
                "rows to one",
                lambda w, v, W: torch.nn.functional.normalize(w * (v @ W).norm(dim=-1), p=1, dim=-1),
                "You made the rows sum to one again; leave the lengths as they are.",
            ),
        ),
        gradients=("weights", "value", "W_O"),
    ),
    Exercise(
        "15.6",
        "A probe: the nearest mean",
        12,
        2,
        nearest_mean,
        _probe_cases,
        (
            Mistake("farthest", _probe(lambda a, m, h: torch.cdist(a, m)), "That is the farthest mean."),
            Mistake(
                "dot product",
                _probe(lambda a, m, h: a @ m.T),
                "The largest dot product prefers long means; asked for is the smallest distance.",
            ),
            Mistake(
                "cosine",
                _probe(
                    lambda a, m, h: (
                        torch.nn.functional.normalize(a, dim=-1) @ torch.nn.functional.normalize(m, dim=-1).T
                    )
                ),
                "You compared directions (cosine); asked for is the Euclidean distance.",
            ),
            Mistake(
                "sums",
                _probe(lambda a, m, h: -torch.cdist(a, m * h.sum(dim=0)[:, None])),
                "You compared with sums; divide each by the number of its vectors.",
            ),
            Mistake(
                "divided by all",
                _probe(lambda a, m, h: -torch.cdist(a, m * h.mean(dim=0)[:, None])),
                "You divided each sum by the number of all vectors; a mean divides by the number of its own.",
            ),
            Mistake(
                "nearest neighbour",
                _nearest_neighbour,
                "That is the label of the single nearest known vector; asked for is the nearest mean.",
            ),
            Mistake(
                "most frequent",
                lambda known, labels, asked: labels.mode().values.expand(len(asked)).clone(),
                "You answer the most frequent label, whatever is asked.",
            ),
        ),
    ),
    Exercise(
        "15.5",
        "Exchange one row",
        10,
        2,
        patch,
        _patch_cases,
        (
            Mistake("in place", _in_place, "You changed memory itself; work on a copy."),
            Mistake(
                "all but one",
                _patched(_all, lambda p: p, turned=True),
                "The roles are exchanged: all rows come from donor, and one from memory.",
            ),
            Mistake(
                "every sentence, every place",
                _patched(lambda p: slice(None), lambda p: p),
                "Each sentence got donor's rows at all the places: index sentence i together with places[i].",
            ),
            Mistake(
                "first place",
                _patched(_all, lambda p: p[:1].expand(len(p))),
                "All sentences were changed at the place of the first one.",
            ),
            Mistake("one too late", _patched(_all, lambda p: p - 1), "You changed a row beside the one asked for."),
            Mistake("first donor", _first_donor, "All rows come from donor's first sentence."),
            Mistake("nothing", lambda memory, donor, places: memory.clone(), "Nothing was exchanged."),
        ),
        gradients=("memory", "donor"),
    ),
)
