"""The exercises of notebook 12: the whole Transformer."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .probes import future_leak

INF = float("inf")


# 12.1 Count the parameters of a layer --------------------------------------------------------------------------------


def encoder_layer_parameters(d_model, d_ff, attention_bias):
    """Return the number of parameters of one encoder layer.

    Attention has W_Q, W_K, W_V and W_O, each d_model x d_model, and with attention_bias a bias for each;
    the feed-forward network has two matrices and two biases; two LayerNorms have a gain and a bias each.
    """
    layer = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff, device="meta")
    total = sum(parameter.numel() for parameter in layer.parameters())
    biases = layer.self_attn.in_proj_bias.numel() + layer.self_attn.out_proj.bias.numel()
    return total if attention_bias else total - biases


def _parameter_cases():
    sizes = [("small", 3, 5), ("d_ff = 4 d_model", 7, 28), ("the paper's base model", 512, 2048), ("narrow", 11, 2)]
    return [
        Case(f"{label}, {'with' if bias else 'without'} attention biases", (d_model, d_ff, bias))
        for label, d_model, d_ff in sizes
        for bias in (False, True)
    ]


def _layer(d, f, bias, *, square=4, attention_biases=None, ff_biases=True, norms=4):
    attention = square * d * d + (4 * d if attention_biases is None else attention_biases) * bool(bias)
    return attention + 2 * d * f + (d + f) * ff_biases + norms * d


EXERCISE_1 = Exercise(
    "12.1",
    "Count the parameters of a layer",
    8,
    1,
    encoder_layer_parameters,
    _parameter_cases,
    (
        Mistake(
            "no W_O",
            lambda d, f, b: _layer(d, f, b, square=3, attention_biases=3 * d),
            "You counted three attention matrices; the output projection W_O is the fourth.",
        ),
        Mistake(
            "no norms",
            lambda d, f, b: _layer(d, f, b, norms=0),
            "The two LayerNorms are missing: a gain and a bias of d_model numbers each.",
        ),
        Mistake(
            "half norms",
            lambda d, f, b: _layer(d, f, b, norms=2),
            "You counted 2 d_model for the norms; there are two LayerNorms, each with a gain and a bias.",
        ),
        Mistake(
            "no feed-forward biases",
            lambda d, f, b: _layer(d, f, b, ff_biases=False),
            "The biases of the feed-forward network are missing: d_ff for the first, d_model for the second.",
        ),
        Mistake("never biases", lambda d, f, b: _layer(d, f, False), "You did not count the attention's biases."),
        Mistake(
            "always biases",
            lambda d, f, b: _layer(d, f, True),
            "You counted the attention's biases also when attention_bias is False.",
        ),
        Mistake(
            "one bias",
            lambda d, f, b: _layer(d, f, b, attention_biases=d),
            "Each of the four projections has a bias of its own, d_model numbers each; you counted one.",
        ),
        Mistake(
            "three biases",
            lambda d, f, b: _layer(d, f, b, attention_biases=3 * d),
            "You counted three biases; W_O has one too.",
        ),
        Mistake(
            "all biases by the flag",
            lambda d, f, b: _layer(d, f, b, ff_biases=b),
            "attention_bias is about the attention alone; the feed-forward network keeps its biases.",
        ),
        Mistake("turned flag", lambda d, f, b: _layer(d, f, not b), "attention_bias is taken the wrong way round."),
        Mistake(
            "decoder layer",
            lambda d, f, b: _layer(d, f, b, square=8, attention_biases=8 * d, norms=6),
            "That is a decoder layer; an encoder layer has one attention and two norms.",
        ),
        Mistake(
            "12 d squared",
            lambda d, f, b: _layer(d, 4 * d, b),
            "You took d_ff = 4 d_model, as in the paper; use the d_ff that is given.",
        ),
        Mistake(
            "one matrix",
            lambda d, f, b: _layer(d, f, b) - d * f,
            "The feed-forward network has two matrices: d_model x d_ff and d_ff x d_model.",
        ),
    ),
)


# 12.2 What enters the first layer ------------------------------------------------------------------------------------


def embed_with_positions(ids, table, positions):
    """Return what enters the first layer: each id's row of the table times √d_model, plus its position's row.

    ids: [batch, seq_len] integers; table: [vocab_size, d_model]; positions: [max_len, d_model], max_len ≥ seq_len.
    Returns [batch, seq_len, d_model].
    """
    batch, seq_len = ids.shape
    root = torch.tensor(table.shape[1], dtype=table.dtype).sqrt()
    rows = [table[ids[b, n]] * root + positions[n] for b in range(batch) for n in range(seq_len)]
    return torch.stack(rows).reshape(batch, seq_len, -1)


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


def _embed(scale=lambda t: t.shape[1] ** 0.5, pick=lambda ids, p: p[: ids.shape[1]]):
    return lambda ids, table, positions: table[ids] * scale(table) + pick(ids, positions)


EXERCISE_2 = Exercise(
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
)


# 12.3 Masks for a batch of translations ------------------------------------------------------------------------------


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


def _masks(visible=lambda n: torch.ones(n, n).tril().bool(), join=torch.logical_and, finish=lambda m: m):
    """Return the two masks with one step replaced."""

    def function(src, tgt_in, pad_id):
        src_mask = (src != pad_id)[:, None, None, :]
        tgt_mask = join((tgt_in != pad_id)[:, None, None, :], visible(tgt_in.shape[1]))
        return finish(src_mask), finish(tgt_mask)

    return function


def _masked_queries(src, tgt_in, pad_id):
    causal = torch.ones(tgt_in.shape[1], tgt_in.shape[1]).tril().bool()
    return (src != pad_id)[:, None, None, :], (tgt_in != pad_id)[:, None, :, None] & causal


EXERCISE_3 = Exercise(
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
)


# 12.4 From ids to logits ---------------------------------------------------------------------------------------------


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
    """Return one head with a residual path: x [batch, n, d] reads source [batch, m, d]; mask None lets it read all."""
    scores = x @ matrix @ source.mT
    if mask is not None:
        scores = torch.where(mask[:, 0], scores, torch.tensor(-INF))
    return torch.tanh(x + torch.nan_to_num(scores.softmax(-1)) @ source)


def _parts(seed, d_model, src_vocab_size, tgt_vocab_size):
    """Return small pretend parts with random weights: two embeddings, an encoder, a decoder, a head."""
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
    """Return the two masks, with a part left out."""
    n = tgt_in.shape[1]
    seen = torch.ones(n, n).tril().bool() if causal else torch.ones(n, n).bool()
    real = (tgt_in != pad_id)[:, None, None] if padding else torch.ones(len(tgt_in), 1, 1, n).bool()
    return (src != pad_id)[:, None, None], real & seen


def _run(masks=_both, encode=True, hide_src=True, hide_memory=True, finish=lambda z: z, last=False, tgt_side=1):
    """Return the right way with one step replaced."""

    def function(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, pad_id):
        src_mask, tgt_mask = masks(src, tgt_in, pad_id)
        x = embed_src(src)
        memory = encoder(x, src_mask if hide_src else None) if encode else x
        y = (embed_src, embed_tgt)[tgt_side](tgt_in)
        hidden = decoder(y, memory, tgt_mask, src_mask if hide_memory else None)
        return finish(head(hidden[:, -1:] if last else hidden))

    return function


EXERCISE_4 = Exercise(
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
        Mistake(
            "padding id 0",
            lambda src, tgt, *parts: ids_to_logits(src, tgt, *parts[:-1], 0),
            "You took 0 for the padding id; use pad_id.",
        ),
    ),
    part="ids_to_logits",
)


# 12.5 An output head that shares the embeddings ----------------------------------------------------------------------


def tied_logits(hidden, table):
    """Return the logits of an output head that shares the embedding table: one score for each vocabulary entry.

    hidden: [batch, tgt_len, d_model]; table: [vocab_size, d_model]. Returns [batch, tgt_len, vocab_size].
    """
    return torch.nn.functional.linear(hidden, table)


def _logit_cases():
    return [
        Case("one token", tuple(normal(6, (1, 1, 2), (3, 2)))),
        Case("2 sentences of 3 tokens", tuple(normal(7, (2, 3, 5), (11, 5)))),
        Case("vocabulary as large as d_model", tuple(normal(8, (3, 2, 7), (7, 7)))),
        Case("5 tokens", tuple(normal(9, (1, 5, 3), (13, 3)))),
    ]


EXERCISE_5 = Exercise(
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
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
