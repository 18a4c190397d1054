"""Exercises of notebook 12: what enters the Transformer, its masks, and what leaves it."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .probes import future_leak


def embed_with_positions(ids, table, positions):
    """Return what enters the first layer: each id's row of the table times √d_model, plus its position's row.

    ids: [batch, seq_len] integers; table: [vocab_size, d_model]; positions: [max_len, d_model], max_len ≥ seq_len.
    Returns [batch, seq_len, d_model].
    """
    batch, seq_len = ids.shape
    root = torch.tensor(table.shape[1], dtype=table.dtype).sqrt()
    rows = [table[ids[b, n]] * root + positions[n] for b in range(batch) for n in range(seq_len)]
    return torch.stack(rows).reshape(batch, seq_len, -1)


def translation_masks(src, tgt_in, pad_id):
    """Return the boolean masks (src_mask, tgt_mask) of a batch; True = may attend.

    src: [batch, src_len]; tgt_in: [batch, tgt_len]. src_mask: [batch, 1, 1, src_len] hides padding.
    tgt_mask: [batch, 1, tgt_len, tgt_len] hides padding and, from each position, all later ones.
    """
    src_mask = torch.tensor([[[[token != pad_id for token in row]]] for row in src.tolist()])
    tgt_mask = torch.tensor(
        [
            [[[j <= i and token != pad_id for j, token in enumerate(row)] for i in range(len(row))]]
            for row in tgt_in.tolist()
        ]
    )
    return src_mask, tgt_mask


def tied_logits(hidden, table):
    """Return the logits of an output head that shares the embedding table: one score for each vocabulary entry.

    hidden: [batch, tgt_len, d_model]; table: [vocab_size, d_model]. Returns [batch, tgt_len, vocab_size].
    """
    return torch.nn.functional.linear(hidden, table)


def _embedding_cases():
    def case(label, seed, batch, seq_len, vocab, d_model, max_len):
        ids = integers(seed, (batch, seq_len), 0, vocab)
        return Case(label, (ids, *normal(seed, (vocab, d_model), (max_len, d_model))))

    return [
        case("one sentence of 2 tokens", 1, 1, 2, 3, 2, 3),
        case("2 sentences of 3 tokens", 2, 2, 3, 11, 5, 13),
        case("3 sentences of 7 tokens", 3, 3, 7, 5, 2, 7),
        case("as long as max_len", 4, 2, 5, 7, 3, 5),
        case("one token", 5, 2, 1, 5, 7, 11),
    ]


def _mask_cases():
    src = torch.tensor([[5, 7, 3, 0, 0], [4, 6, 8, 9, 3]])
    tgt = torch.tensor([[1, 5, 6], [1, 7, 0]])
    other = torch.where(src == 3, 10, torch.where(src == 0, 3, src))
    return [
        Case("a source of 2 tokens", (torch.tensor([[5, 0]]), torch.tensor([[1, 4]]), 0)),
        Case("5 source tokens, 3 target tokens", (src, tgt, 0)),
        Case("the padding id is 3", (other, torch.tensor([[1, 5, 6, 7, 3], [1, 0, 5, 3, 3]]), 3)),
        Case("no padding", (torch.tensor([[4, 5, 6]] * 3), torch.tensor([[1, 4, 5, 6, 7, 8, 9]] * 3), 0)),
        Case("one target token", (src, torch.tensor([[1], [1]]), 0)),
    ]


def _logit_cases():
    return [
        Case("one token", tuple(normal(6, (1, 1, 2), (3, 2)))),
        Case("2 sentences of 3 tokens", tuple(normal(7, (2, 3, 5), (11, 5)))),
        Case("vocabulary as large as d_model", tuple(normal(8, (3, 2, 7), (7, 7)))),
        Case("5 tokens", tuple(normal(9, (1, 5, 3), (13, 3)))),
    ]


def _embed(scale=lambda t: t.shape[1] ** 0.5, pick=lambda ids, p: p[: ids.shape[1]]):
    return lambda ids, table, positions: table[ids] * scale(table) + pick(ids, positions)


def _masks(visible=lambda n: torch.ones(n, n).tril().bool(), join=torch.logical_and, finish=lambda m: m):
    """The two masks with one step exchanged for another."""

    def function(src, tgt_in, pad_id):
        src_mask = (src != pad_id)[:, None, None, :]
        tgt_mask = join((tgt_in != pad_id)[:, None, None, :], visible(tgt_in.shape[1]))
        return finish(src_mask), finish(tgt_mask)

    return function


def _masked_queries(src, tgt_in, pad_id):
    causal = torch.ones(tgt_in.shape[1], tgt_in.shape[1]).tril().bool()
    return (src != pad_id)[:, None, None, :], (tgt_in != pad_id)[:, None, :, None] & causal


EXERCISES = (
    Exercise(
        "12.2",
        "What enters the first layer",
        10,
        1,
        embed_with_positions,
        _embedding_cases,
        (
            Mistake("no root", _embed(lambda t: 1.0), "Multiply the embeddings by √d_model before adding positions."),
            Mistake("d_model", _embed(lambda t: t.shape[1]), "You multiplied by d_model; the paper takes √d_model."),
            Mistake("divided", _embed(lambda t: t.shape[1] ** -0.5), "You divided by √d_model; multiply by it."),
            Mistake(
                "vocabulary",
                _embed(lambda t: t.shape[0] ** 0.5),
                "You took the root of the vocabulary size; d_model is the length of one row of the table.",
            ),
            Mistake(
                "both",
                lambda ids, t, p: (t[ids] + p[: ids.shape[1]]) * t.shape[1] ** 0.5,
                "You multiplied the sum by √d_model; only the embeddings are scaled, not the positions.",
            ),
            Mistake(
                "by token",
                _embed(pick=lambda ids, p: p[ids]),
                "You looked positions up by token id; row n of positions belongs to place n of the sentence.",
            ),
            Mistake(
                "from one",
                _embed(pick=lambda ids, p: p[1 : ids.shape[1] + 1]),
                "Your positions start at row 1; the first token has position 0.",
            ),
            Mistake(
                "all rows",
                _embed(pick=lambda ids, p: p),
                "You added all rows of positions; take only the first seq_len of them.",
            ),
            Mistake("no positions", lambda ids, t, p: t[ids] * t.shape[1] ** 0.5, "You did not add the positions."),
        ),
        gradients=("table", "positions"),
    ),
    Exercise(
        "12.3",
        "Masks for a batch of translations",
        15,
        2,
        translation_masks,
        _mask_cases,
        (
            Mistake(
                "inverted",
                _masks(finish=lambda m: ~m),
                "Both masks are the wrong way round: True means may attend, so padding is False.",
            ),
            Mistake(
                "triu",
                _masks(lambda n: torch.ones(n, n).triu().bool()),
                "triu and tril are swapped: each target token sees itself and later ones, not earlier ones.",
            ),
            Mistake(
                "no causal",
                _masks(lambda n: torch.ones(n, n).bool()),
                "The target mask hides padding only: later tokens still leak into every position.",
            ),
            Mistake(
                "no padding",
                lambda s, t, p: (
                    _masks()(s, t, p)[0],
                    torch.ones(t.shape[1], t.shape[1]).tril().bool().expand(len(t), 1, -1, -1),
                ),
                "The target mask hides later tokens but not the padding.",
            ),
            Mistake(
                "strict",
                _masks(lambda n: torch.ones(n, n).tril(-1).bool()),
                "Your target mask hides the diagonal: a token may attend to itself; the first has nothing else.",
            ),
            Mistake(
                "or",
                _masks(join=torch.logical_or),
                "You joined padding and causal mask with |; a key must pass both, so use &.",
            ),
            Mistake(
                "queries",
                _masked_queries,
                "You hid padded queries (rows); it is the padded keys (columns) that nobody may attend to.",
            ),
            Mistake("pad is 0", lambda s, t, p: _masks()(s, t, 0), "You took 0 for the padding id; use pad_id."),
            Mistake(
                "floats",
                _masks(finish=lambda m: m.float()),
                "The masks hold numbers; they must be boolean (torch.bool).",
            ),
        ),
        returns=("src_mask", "tgt_mask"),
        probes=(future_leak(1),),
    ),
    Exercise(
        "12.5",
        "An output head that shares the embeddings",
        3,
        1,
        tied_logits,
        _logit_cases,
        (
            Mistake(
                "scaled",
                lambda h, t: h @ t.T * t.shape[1] ** 0.5,
                "You multiplied by √d_model; that factor belongs to the embeddings, not to the logits.",
            ),
            Mistake(
                "divided",
                lambda h, t: h @ t.T / t.shape[1] ** 0.5,
                "You divided by √d_model; logits are plain dot products, unlike attention scores.",
            ),
            Mistake(
                "softmax",
                lambda h, t: torch.softmax(h @ t.T, -1),
                "You returned probabilities; logits are the scores before the softmax.",
            ),
            Mistake(
                "log",
                lambda h, t: torch.log_softmax(h @ t.T, -1),
                "You returned log-probabilities; logits are the scores before the softmax.",
            ),
            Mistake(
                "no transpose",
                lambda h, t: h @ t,
                "You multiplied by the table itself; each hidden vector meets each row, so transpose the table.",
            ),
            Mistake(
                "last",
                lambda h, t: h[:, -1:] @ t.T,
                "You returned the logits of the last position only; training needs every position.",
            ),
            Mistake("argmax", lambda h, t: (h @ t.T).argmax(-1), "You returned the best ids; return all logits."),
            Mistake(
                "detached",
                lambda h, t: h @ t.detach().T,
                "Right values, but no gradient reaches the table: it must learn from both of its uses.",
            ),
        ),
        gradients=("hidden", "table"),
    ),
)
