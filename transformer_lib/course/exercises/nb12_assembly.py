"""Exercises of notebook 12, continued: from token ids to logits, the parts put together."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal

INF = float("inf")


def ids_to_logits(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, pad_id):
    """Return the logits [batch, tgt_len, vocab_size] of an encoder-decoder whose parts are given as functions.

    src: [batch, src_len] and tgt_in: [batch, tgt_len], ids. embed_src(ids), embed_tgt(ids): vectors with positions.
    encoder(x, mask) -> memory; decoder(y, memory, tgt_mask, memory_mask) -> hidden; head(hidden) -> logits.
    Masks are boolean, True = may attend: [batch, 1, 1, src_len] over source keys, [batch, 1, tgt_len, tgt_len]
    over target keys, which hides padding and later tokens.
    """
    src_mask = torch.stack([row != pad_id for row in src])[:, None, None]
    places = torch.arange(tgt_in.shape[1])
    tgt_mask = (places <= places[:, None]) * torch.stack([row != pad_id for row in tgt_in])[:, None, None]
    memory = encoder(embed_src(src), src_mask)
    return head(decoder(embed_tgt(tgt_in), memory, tgt_mask, src_mask))


def _attend(x, source, mask, matrix):
    """One head with a residual path: x [batch, n, d] reads source [batch, m, d]; mask None lets it read all."""
    scores = x @ matrix @ source.mT
    if mask is not None:
        scores = torch.where(mask[:, 0], scores, torch.tensor(-INF))
    return torch.tanh(x + torch.nan_to_num(scores.softmax(-1)) @ source)


def _parts(seed, d_model, src_vocab_size, tgt_vocab_size):
    """Small pretend parts with random weights: two embeddings, an encoder, a decoder, a head."""
    shapes = [(src_vocab_size, d_model), (tgt_vocab_size, d_model), (13, d_model), *[(d_model, d_model)] * 4]
    src_table, tgt_table, places, *matrices, last = normal(seed, *shapes, (d_model, tgt_vocab_size))

    def embed_src(ids):
        return src_table[ids] + places[: ids.shape[1]]

    def embed_tgt(ids):
        return tgt_table[ids] + places[: ids.shape[1]]

    def encoder(x, mask):
        return _attend(x, x, mask, matrices[0])

    def decoder(y, memory, tgt_mask, memory_mask):
        for own, cross in ((matrices[1], matrices[2]), (matrices[3], matrices[2])):
            y = _attend(_attend(y, y, tgt_mask, own), memory, memory_mask, cross)
        return y

    def head(hidden):
        return hidden @ last

    return embed_src, embed_tgt, encoder, decoder, head


def _cases():
    def case(label, seed, batch, src_len, tgt_len, d_model, padded=0, pad_id=0, tgt_padded=0):
        low = 0 if pad_id else 1
        src, tgt_in = (integers(seed, (batch, n), low, 7) for n in (src_len, tgt_len))
        src[src == pad_id], tgt_in[tgt_in == pad_id] = 6, 6
        src[0, src_len - padded :], tgt_in[0, tgt_len - tgt_padded :] = pad_id, pad_id
        return Case(label, (src, tgt_in, *_parts(seed, d_model, 7, 11), pad_id))

    return [
        case("2 source tokens, one of them padding, 3 target tokens", 1, 1, 2, 3, 2, padded=1),
        case("2 sentences, padding in both languages", 2, 2, 5, 7, 3, padded=2, tgt_padded=3),
        case("no padding", 3, 3, 7, 5, 2),
        case("the padding id is 5", 4, 2, 5, 3, 7, padded=3, pad_id=5),
        case("one target token", 5, 2, 3, 1, 5, padded=1),
        case("two target tokens, one of them padding", 7, 1, 3, 2, 3, tgt_padded=1),
    ]


def _both(src, tgt_in, pad_id, causal=True, padding=True):
    """The two masks, with a part left out."""
    n = tgt_in.shape[1]
    seen = torch.ones(n, n).tril().bool() if causal else torch.ones(n, n).bool()
    real = (tgt_in != pad_id)[:, None, None] if padding else torch.ones(len(tgt_in), 1, 1, n).bool()
    return (src != pad_id)[:, None, None], real & seen


def _run(masks=_both, encode=True, hide_src=True, hide_memory=True, finish=lambda z: z, last=False, tgt_side=1):
    """The right way with one step exchanged for another."""

    def function(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, pad_id):
        src_mask, tgt_mask = masks(src, tgt_in, pad_id)
        x = embed_src(src)
        memory = encoder(x, src_mask if hide_src else None) if encode else x
        y = (embed_src, embed_tgt)[tgt_side](tgt_in)
        hidden = decoder(y, memory, tgt_mask, src_mask if hide_memory else None)
        return finish(head(hidden[:, -1:] if last else hidden))

    return function


EXERCISES = (
    Exercise(
        "12.4",
        "From ids to logits",
        15,
        2,
        ids_to_logits,
        _cases,
        (
            Mistake(
                "no source mask",
                _run(hide_src=False),
                "The encoder may see the source's padding: give it the source mask.",
            ),
            Mistake(
                "no memory mask",
                _run(hide_memory=False),
                "The decoder reads memory rows of padding: the cross-attention needs the source mask as well.",
            ),
            Mistake(
                "no masks at all for the source",
                _run(hide_src=False, hide_memory=False),
                "The source's padding is hidden nowhere: its mask belongs in the encoder and in the decoder.",
            ),
            Mistake(
                "no causal",
                _run(lambda s, t, p: _both(s, t, p, causal=False)),
                "The target mask hides padding only: each position reads the words that it has to predict.",
            ),
            Mistake(
                "no target padding",
                _run(lambda s, t, p: _both(s, t, p, padding=False)),
                "The target mask hides later tokens, but not the padding; join both masks with &.",
            ),
            Mistake(
                "inverted",
                _run(lambda s, t, p: tuple(~mask for mask in _both(s, t, p))),
                "Your masks are the wrong way round: True means may attend.",
            ),
            Mistake(
                "no encoder",
                _run(encode=False),
                "The decoder reads the embedded source; the encoder has to work on it first.",
            ),
            Mistake("source table", _run(tgt_side=0), "You embedded the target with embed_src; it has embed_tgt."),
            Mistake(
                "softmax",
                _run(finish=lambda z: z.softmax(-1)),
                "You returned probabilities; logits are the scores before the softmax.",
            ),
            Mistake(
                "last", _run(last=True), "You returned the last position only; training needs logits at every position."
            ),
        ),
    ),
)
