"""The exercises of notebook 12: the whole Transformer."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, integers, normal

INF = float("inf")


# 12.1 From ids to logits ---------------------------------------------------------------------------------------------


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


def _check_mask(what, mask, x, source):
    """Raise ValueError for a mask that is not boolean [batch, 1, queries, keys], or as many ones in place of them."""
    if mask is None:
        return
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise ValueError(f"{what} must be a boolean tensor, got {getattr(mask, 'dtype', type(mask).__name__)}")
    wanted = [len(x), 1, x.shape[1], source.shape[1]]
    fits = mask.dim() == len(wanted) and mask.shape[-1] == wanted[-1]
    if not fits or any(size not in (1, most) for size, most in zip(mask.shape, wanted, strict=True)):
        raise ValueError(
            f"{what} must fit {wanted[2]} queries and {wanted[3]} keys, with the axes [batch, 1, queries or 1, keys], "
            f"got the shape {list(mask.shape)}"
        )


def _parts(seed, d_model, src_vocab_size, tgt_vocab_size):
    """Return small pretend parts with random weights: two embeddings, an encoder, a decoder, a head."""
    shapes = [(src_vocab_size, d_model), (tgt_vocab_size, d_model), (13, d_model), *[(d_model, d_model)] * 4]
    src_table, tgt_table, places, *matrices, last = normal(seed, *shapes, (d_model, tgt_vocab_size))

    def embed_src(ids):
        return src_table[ids] + places[: ids.shape[1]]

    def embed_tgt(ids):
        return tgt_table[ids] + places[: ids.shape[1]]

    def encoder(x, mask):
        _check_mask("encoder(x, mask): mask", mask, x, x)
        return _attend(x, x, mask, matrices[0])

    def decoder(y, memory, tgt_mask, memory_mask):
        _check_mask("decoder(y, memory, tgt_mask, memory_mask): tgt_mask", tgt_mask, y, y)
        _check_mask("decoder(y, memory, tgt_mask, memory_mask): memory_mask", memory_mask, y, memory)
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


def _turned(tgt_in, pad_id, turn):
    n = tgt_in.shape[1]
    return (tgt_in != pad_id)[:, None, None] & turn(torch.ones(n, n)).bool()


def _joined_by_or(src, tgt_in, pad_id):
    n = tgt_in.shape[1]
    return (src != pad_id)[:, None, None], (tgt_in != pad_id)[:, None, None] | torch.ones(n, n).tril().bool()


def _hidden_rows(src, tgt_in, pad_id):
    n = tgt_in.shape[1]
    return (src != pad_id)[:, None, None], (tgt_in != pad_id)[:, None, :, None] & torch.ones(n, n).tril().bool()


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


def _source_hides_later(in_encoder):
    """Return the right way but for a causal mask on the source, in the encoder or over the memory."""

    def function(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, pad_id):
        src_mask, tgt_mask = _both(src, tgt_in, pad_id)
        causal = torch.ones(src.shape[1] if in_encoder else tgt_in.shape[1], src.shape[1]).tril().bool()
        memory = encoder(embed_src(src), src_mask & causal if in_encoder else src_mask)
        return head(decoder(embed_tgt(tgt_in), memory, tgt_mask, src_mask if in_encoder else src_mask & causal))

    return function


EXERCISE_1 = Exercise(
    "12.1",
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
            "either mask",
            _run(_joined_by_or),
            "You joined the target's two masks with |; a key has to pass both, so join them with &.",
        ),
        Mistake(
            "no target mask",
            _run(lambda s, t, p: (_both(s, t, p)[0], None)),
            "The target has no mask at all, so each position reads the words that it has to predict.",
        ),
        Mistake(
            "no mask at all",
            _run(lambda s, t, p: (None, None)),
            "You gave no masks at all: padding is read, and each position reads the words that it has to predict.",
        ),
        Mistake(
            "later words only",
            _run(lambda s, t, p: (_both(s, t, p)[0], _turned(t, p, lambda m: m.triu()))),
            "Your causal mask is upside down: a word may read itself and earlier ones (tril), not later ones.",
        ),
        Mistake(
            "not itself",
            _run(lambda s, t, p: (_both(s, t, p)[0], _turned(t, p, lambda m: m.tril(-1)))),
            "Your causal mask hides the diagonal; a word may read itself, and the first has nothing else.",
        ),
        Mistake(
            "padding as queries",
            _run(_hidden_rows),
            "You hid what the target's padding may read, its rows; hide the padding as keys, along the columns.",
        ),
        Mistake(
            "log-probabilities",
            _run(finish=lambda z: z.log_softmax(-1)),
            "You returned log-probabilities; logits are the scores before the softmax.",
        ),
        Mistake(
            "inverted",
            _run(lambda s, t, p: tuple(~mask for mask in _both(s, t, p))),
            "Your masks are the wrong way round: True means may attend.",
        ),
        Mistake(
            "source inverted",
            _run(lambda s, t, p: (~_both(s, t, p)[0], _both(s, t, p)[1])),
            "Your source mask is the wrong way round: it is True at the padding, and True means may attend.",
        ),
        Mistake(
            "causal source",
            _source_hides_later(in_encoder=True),
            "You gave the encoder a causal mask; a source word may read all words of its sentence.",
        ),
        Mistake(
            "causal memory",
            _source_hides_later(in_encoder=False),
            "You put a causal mask over the memory; a target word may read the whole source sentence.",
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


# 12.2 Find the wrong parts --------------------------------------------------------------------------------------------

ENOUGH = 1e-4  # rounding moves no logit by so much


def wrong_parts(names, logits_with):
    """Return the names of the parts that are wrong, in the order of names.

    logits_with(parts) returns the logits of a model in which the parts named in the list `parts` are a learner's, and
    all others the library's. Rounding moves logits by less than 1e-4; a wrong part, alone in the library's model, moves
    at least one logit by more, or makes it NaN.
    """
    right, found = logits_with([]), []
    for name in names:
        if not torch.allclose(logits_with([name]), right, rtol=0.0, atol=ENOUGH):
            found.append(name)
    return found


NAMES = ("softmax", "embed", "causal_mask", "split_heads", "layer_norm", "feed_forward", "decoder_layer")


def _model_of(right, moves):
    """Return a function like `logits_with`: each part named in `moves` adds its change to the right logits."""

    def logits_with(parts):
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise TypeError(f"logits_with takes a list of names, such as ['embed'], got {parts!r}")
        if unknown := [part for part in parts if part not in NAMES]:
            raise ValueError(f"logits_with knows the parts {', '.join(NAMES)}, got {unknown[0]!r}")
        return sum((moves[part] for part in NAMES if part in parts and part in moves), right.clone())

    return logits_with


def _parts_case(label, seed, names=NAMES, **moves):
    right, *noise = normal(seed, (2, 3, 5), *[(2, 3, 5)] * len(NAMES))
    rounding = {name: 1e-5 * change.clamp(-2, 2) for name, change in zip(NAMES, noise, strict=True)}
    return Case(label, (list(names), _model_of(10 * right, rounding | moves)))


def _single(value, *index):
    change = torch.zeros(2, 3, 5)
    change[index] = value
    return change


def _parts_cases():
    plus = torch.full((2, 3, 5), 3.0)
    tilted = torch.tensor([2.0, -2.0, 1.0, -1.0, 0.0]).expand(2, 3, 5)
    return [
        _parts_case("one wrong part", 120, split_heads=tilted * 2),
        _parts_case("all parts right, but for rounding", 121),
        _parts_case("two wrong parts that cancel each other", 122, embed=tilted, layer_norm=-tilted),
        _parts_case("all logits higher by 3", 123, softmax=plus, feed_forward=_single(0.5, 1, 2, 4)),
        _parts_case("all logits lower by 3", 124, causal_mask=-plus),
        _parts_case("a single logit off by 0.002", 125, decoder_layer=_single(0.002, 0, 1, 2)),
        _parts_case("all logits off by 0.005", 128, embed=torch.full((2, 3, 5), 0.005)),
        _parts_case("a part that returns NaN", 126, layer_norm=_single(float("nan"), 1, 1, 1), embed=tilted),
        _parts_case("names in another order", 127, NAMES[::-1], softmax=tilted, decoder_layer=plus),
    ]


def _large(difference):
    return bool((difference.abs() > ENOUGH).any())


def _judged(wrong):
    """Return the loop over single parts with another judgement of (logits, right logits)."""

    def function(names, logits_with):
        right = logits_with([])
        return [name for name in names if wrong(logits_with([name]), right)]

    return function


def _growing(names, logits_with):
    right = logits_with([])
    return [name for n, name in enumerate(names) if not ((logits_with(names[: n + 1]) - right).abs() < ENOUGH).all()]


def _each_step(names, logits_with):
    runs = [logits_with(names[:n]) for n in range(len(names) + 1)]
    return [
        name
        for name, now, before in zip(names, runs[1:], runs, strict=False)
        if not ((now - before).abs() < ENOUGH).all()
    ]


def _left_out(names, logits_with):
    right = logits_with([])
    return [
        name
        for name in names
        if ((logits_with([other for other in names if other != name]) - right).abs() < ENOUGH).all()
    ]


def _against_all(names, logits_with):
    theirs = logits_with(names)
    return [name for name in names if not ((logits_with([name]) - theirs).abs() < ENOUGH).all()]


def _against_the_last(names, logits_with):
    last, found = logits_with([]), []
    for name in names:
        now = logits_with([name])
        if not ((now - last).abs() < ENOUGH).all():
            found.append(name)
        last = now
    return found


def _each_change(names, logits_with):
    theirs = logits_with(names)
    rest = {name: [other for other in names if other != name] for name in names}
    return [name for name in names if not ((logits_with(rest[name]) - theirs).abs() < ENOUGH).all()]


EXERCISE_2 = Exercise(
    "12.2",
    "Find the wrong parts",
    10,
    2,
    wrong_parts,
    _parts_cases,
    (
        Mistake(
            "NaN is not large",
            _judged(lambda z, right: _large(z - right)),
            "A part that returns NaN slips through: a comparison with NaN is False, so ask whether all differences "
            "are small.",
        ),
        Mistake(
            "exactly equal",
            _judged(lambda z, right: not torch.equal(z, right)),
            "You find parts wrong that are right but for rounding; let every single logit move by up to 1e-4 (atol).",
        ),
        Mistake(
            "best words only",
            _judged(lambda z, right: not torch.equal(z.argmax(dim=-1), right.argmax(dim=-1))),
            "You compare the best words only; they can stay the same while the logits are wrong.",
        ),
        Mistake(
            "probabilities",
            _judged(lambda z, right: not ((z.softmax(-1) - right.softmax(-1)).abs() < ENOUGH).all()),
            "You compare probabilities, and a softmax hides what moves all logits alike; compare the logits.",
        ),
        Mistake(
            "without abs",
            _judged(lambda z, right: not (z - right < ENOUGH).all()),
            "Logits that are too low slip through; take the absolute difference.",
        ),
        Mistake(
            "without abs, and NaN",
            _judged(lambda z, right: bool((z - right > ENOUGH).any())),
            "Logits that are too low slip through, and so does NaN: ask whether all absolute differences are small.",
        ),
        Mistake(
            "mean difference",
            _judged(lambda z, right: not abs((z - right).mean()) < ENOUGH),
            "You judge by the mean difference, in which higher and lower logits cancel; look at the largest one.",
        ),
        Mistake(
            "sum of the differences",
            _judged(lambda z, right: not abs((z - right).sum()) < ENOUGH),
            "You judge by the sum of the differences, in which higher and lower logits cancel; look at the largest "
            "one, without its sign.",
        ),
        Mistake(
            "mean absolute difference",
            _judged(lambda z, right: not (z - right).abs().mean() < ENOUGH),
            "You judge by the mean of the differences, in which a single wrong logit is lost; look at the largest one.",
        ),
        Mistake(
            "too coarse",
            _judged(lambda z, right: not ((z - right).abs() < 1e-2).all()),
            "You allow more than rounding needs, so that small errors slip through; allow 1e-4.",
        ),
        Mistake(
            "the model before",
            _against_the_last,
            "You compare each model with the one before it, which may be wrong itself; compare with logits_with([]).",
        ),
        Mistake(
            "all logits off",
            _judged(lambda z, right: not ((z - right).abs() < ENOUGH).any()),
            "You count a part as wrong only if every logit moves; one is enough.",
        ),
        Mistake(
            "one more each time",
            _growing,
            "You add one part after the other, so those after a wrong one look wrong too; try each part alone.",
        ),
        Mistake(
            "each step",
            _each_step,
            "You add one part after the other and compare with the model before; after a NaN every later part looks "
            "wrong. Try each part alone.",
        ),
        Mistake(
            "all but one",
            _left_out,
            "You leave out one part and ask whether all is right then; with two wrong parts it never is. Try each "
            "part alone.",
        ),
        Mistake(
            "against all parts",
            _against_all,
            "You compare with the model of all the learner's parts; compare with the library's, logits_with([]).",
        ),
        Mistake(
            "what one part changes",
            _each_change,
            "You take one part out of the learner's model, where another wrong part may already give NaN; put each "
            "part alone into the library's.",
        ),
        Mistake(
            "first only",
            lambda names, logits_with: wrong_parts(names, logits_with)[:1],
            "You stop at the first wrong part; there may be more.",
        ),
        Mistake(
            "the right ones",
            lambda names, logits_with: [n for n in names if n not in wrong_parts(names, logits_with)],
            "You return the parts that are right; asked for are the wrong ones.",
        ),
        Mistake(
            "in another order",
            lambda names, logits_with: sorted(wrong_parts(names, logits_with)),
            "These are the right names in alphabetical order; keep the order of names.",
        ),
    ),
    items="names",
)


# 12.3 Count the parameters -------------------------------------------------------------------------------------------


def parameters(d_model, d_ff, n_layers, src_vocab_size, tgt_vocab_size, tied):
    """Return the number of parameters of an encoder-decoder Transformer with n_layers layers on each side.

    Attention has four matrices d_model x d_model without biases, the feed-forward network two matrices and two biases,
    each norm a gain and a bias. Positions are computed. There are three tables, for source, target and output head,
    without biases; with `tied` they are one and the same.
    """
    attention = [(d_model, d_model)] * 4
    feed_forward = [(d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,)]
    norm = [(d_model,)] * 2
    layers = [*attention, *feed_forward, *norm * 2, *attention * 2, *feed_forward, *norm * 3]
    tables = [(src_vocab_size, d_model)] + [(tgt_vocab_size, d_model)] * (0 if tied else 2)
    return sum(math.prod(shape) for shape in layers * n_layers + tables)


def _count_cases():
    return [
        Case("one layer on each side", (2, 3, 1, 5, 7, False)),
        Case("one layer on each side, tied", (2, 3, 1, 5, 5, True)),
        Case("three layers, many words", (12, 7, 3, 101, 47, False)),
        Case("five layers, tied", (8, 28, 5, 53, 53, True)),
        Case("the same vocabularies, but not tied", (6, 11, 2, 13, 13, False)),
        Case("wide", (512, 2048, 6, 1_009, 997, False)),
    ]


def _count(
    attentions=3,
    matrices=4,
    attention_biases=0,
    ff_matrices=2,
    ff_biases=True,
    ff=2,
    norms=5,
    norm=2,
    last=0,
    tables=None,
):
    """Return the count with one term replaced; attentions, ff and norms are those of both layers together."""

    def function(d, f, n, src, tgt, tied):
        attention = matrices * d * d + attention_biases * d
        feed_forward = ff_matrices * d * f + (d + f) * ff_biases
        rows = tables(src, tgt, tied) if tables else (src if tied else src + 2 * tgt)
        return n * (attentions * attention + ff * feed_forward + norms * norm * d) + last * norm * d + rows * d

    return function


def _each_side_half(d, f, n, src, tgt, tied):
    rows = src if tied else src + 2 * tgt
    return (_count()(d, f, n, src, tgt, tied) - rows * d) // 2 + rows * d


EXERCISE_3 = Exercise(
    "12.3",
    "Count the parameters",
    10,
    2,
    parameters,
    _count_cases,
    (
        Mistake(
            "one attention in the decoder",
            _count(attentions=2),
            "A decoder layer has two attentions, one for its own words and one for the memory; you counted one.",
        ),
        Mistake("no W_O", _count(matrices=3), "Each attention has a fourth matrix, the output projection W_O."),
        Mistake(
            "attention biases",
            _count(attention_biases=4),
            "You counted biases in the attention; here it has none.",
        ),
        Mistake(
            "two norms in the decoder",
            _count(norms=4),
            "A decoder layer has three norms, one for each sub-layer; you counted two.",
        ),
        Mistake("no norms", _count(norms=0), "The norms are missing: a gain and a bias of d_model numbers each."),
        Mistake("gains only", _count(norm=1), "Each norm has a gain and a bias; you counted one of the two."),
        Mistake(
            "final norms",
            _count(last=2),
            "You counted a norm at the end of each stack; here the last layer ends in its own norm.",
        ),
        Mistake(
            "no feed-forward biases",
            _count(ff_biases=False),
            "The biases of the feed-forward networks are missing: d_ff for the first matrix, d_model for the second.",
        ),
        Mistake(
            "d_ff biases twice",
            lambda d, f, n, src, tgt, tied: _count()(d, f, n, src, tgt, tied) + 2 * n * (f - d),
            "You counted d_ff biases for both matrices; the second gives d_model numbers, so it has d_model biases.",
        ),
        Mistake(
            "d_model biases twice",
            lambda d, f, n, src, tgt, tied: _count()(d, f, n, src, tgt, tied) + 2 * n * (d - f),
            "You counted d_model biases for both matrices; the first gives d_ff numbers, so it has d_ff biases.",
        ),
        Mistake(
            "one layer on each side",
            lambda d, f, n, src, tgt, tied: _count()(d, f, 1, src, tgt, tied),
            "You counted one layer on each side; there are n_layers.",
        ),
        Mistake(
            "no tables",
            _count(tables=lambda src, tgt, tied: 0),
            "The tables are missing: source, target and output head, each with d_model numbers for every word.",
        ),
        Mistake(
            "rows only",
            lambda d, f, n, src, tgt, tied: (
                _count(tables=lambda *given: 0)(d, f, n, src, tgt, tied) + (src if tied else src + 2 * tgt)
            ),
            "You counted the rows of the tables; each row has d_model numbers.",
        ),
        Mistake(
            "one feed-forward matrix",
            _count(ff_matrices=1),
            "Each feed-forward network has two matrices, d_model x d_ff and d_ff x d_model.",
        ),
        Mistake(
            "one feed-forward network",
            _count(ff=1),
            "There is a feed-forward network in the encoder layers and in the decoder layers; you counted one.",
        ),
        Mistake(
            "n_layers in all",
            _each_side_half,
            "There are n_layers layers on each side; you counted half as many.",
        ),
        Mistake(
            "no head",
            _count(tables=lambda src, tgt, tied: src if tied else src + tgt),
            "Untied, the output head is a third table, with tgt_vocab_size rows; it is missing.",
        ),
        Mistake(
            "head of the source",
            _count(tables=lambda src, tgt, tied: src if tied else 2 * src + tgt),
            "The output head scores target words, so it has tgt_vocab_size rows.",
        ),
        Mistake(
            "tied head apart",
            _count(tables=lambda src, tgt, tied: 2 * src if tied else src + 2 * tgt),
            "With tied, the output head is the same table too; you counted two tables.",
        ),
        Mistake(
            "never tied",
            _count(tables=lambda src, tgt, tied: src + 2 * tgt),
            "With tied, one table does all three jobs and counts once.",
        ),
        Mistake(
            "always tied",
            _count(tables=lambda src, tgt, tied: src),
            "You counted one table always; without tied there are three.",
        ),
        Mistake(
            "flag the wrong way round",
            _count(tables=lambda src, tgt, tied: src + 2 * tgt if tied else src),
            "You took tied the wrong way round: with it there is one table, without it there are three.",
        ),
        Mistake(
            "head with biases",
            lambda d, f, n, src, tgt, tied: _count()(d, f, n, src, tgt, tied) + tgt,
            "You gave the output head biases; it has none.",
        ),
        Mistake(
            "four times d_model",
            lambda d, f, n, src, tgt, tied: _count()(d, 4 * d, n, src, tgt, tied),
            "You took d_ff = 4 d_model, as in the paper; use the d_ff that is given.",
        ),
    ),
)


# 12.4 The loss of a blind model --------------------------------------------------------------------------------------


def blind_loss(logits):
    """Return the loss to expect of these logits if every label is drawn at random, each word with probability 1/V.

    logits: [positions, vocab_size]. Returns a tensor without axes: the mean over the positions of the expected
    −ln p(label). It works for logits in the thousands, too.
    """
    losses = []
    for row in logits:
        shifted = row - row.max()
        losses.append((shifted.exp().sum().log() - shifted).mean())
    return torch.stack(losses).mean()


def _blind_cases():
    def case(label, seed, positions, vocab_size, spread=1.0, shift=0.0):
        return Case(label, (spread * normal(seed, (positions, vocab_size))[0] + shift,))

    equal = torch.zeros(3, 11)
    # So far apart that exp of a difference is 0, and yet exp of no logit is infinite, nor 0 in a whole row.
    reach = 1 if torch.get_default_dtype() == torch.float32 else 7
    apart = normal(145, (2, 5))[0] + reach * torch.tensor([0.0, -160.0, 40.0, 20.0, -40.0])
    apart[1] -= 110 * reach  # so that the largest logit of all is far above this row
    far = normal(143, (5, 7))[0] + torch.tensor([[0.0], [5.0], [-5.0], [20.0], [-20.0]])
    return [
        case("2 positions, 3 words", 140, 2, 3),
        Case("all logits equal", (equal,)),
        case("5 positions, 7 words", 141, 5, 7, 2.0),
        case("one position", 142, 1, 13),
        Case("positions at different heights", (far,)),
        case("logits in the thousands", 144, 3, 5, 1000.0, 3000.0),
        Case("logits far apart", (apart,)),
    ]


def _ratios(z):
    """Return the logarithm of the shares of exp(z), taken one after the other."""
    return (z.exp() / z.exp().sum(dim=-1, keepdim=True)).log()


def _blind(of):
    """Return the loss as another function of the logits."""
    return lambda logits: of(logits, logits.log_softmax(dim=-1))


EXERCISE_4 = Exercise(
    "12.4",
    "The loss of a blind model",
    10,
    2,
    blind_loss,
    _blind_cases,
    (
        Mistake(
            "entropy",
            _blind(lambda z, log_p: -(log_p.exp() * log_p).sum(dim=-1).mean()),
            "You weighted the words by p, as if the model drew the label itself; here each word has the weight 1/V.",
        ),
        Mistake(
            "ln V",
            _blind(lambda z, log_p: z.new_tensor(math.log(z.shape[-1]))),
            "That is ln V, which holds only if all logits of a position are equal. (The logarithm of the mean "
            "probability is always −ln V; asked for is the mean of the logarithms.)",
        ),
        Mistake(
            "without the label",
            _blind(lambda z, log_p: z.logsumexp(dim=-1).mean()),
            "The second term is missing: −ln p(y) is ln Σ exp(z_v) − z_y, and the mean of z_y is that of the logits.",
        ),
        Mistake(
            "the best word",
            _blind(lambda z, log_p: -log_p.amax(dim=-1).mean()),
            "You took the best word of each position for the label; every word is equally likely to be it.",
        ),
        Mistake(
            "the label plus",
            _blind(lambda z, log_p: (z.logsumexp(dim=-1) + z.mean(dim=-1)).mean()),
            "The label's logit is subtracted, not added: −ln p(y) is ln Σ exp(z_v) − z_y.",
        ),
        Mistake(
            "negative",
            _blind(lambda z, log_p: log_p.mean()),
            "The sign is missing: the loss is −ln p.",
        ),
        Mistake(
            "sum over words",
            _blind(lambda z, log_p: -log_p.sum(dim=-1).mean()),
            "You summed over the words; each has the probability 1/V, so take the mean.",
        ),
        Mistake(
            "sum over positions",
            _blind(lambda z, log_p: -log_p.mean(dim=-1).sum()),
            "You summed over the positions; take the mean.",
        ),
        Mistake(
            "per position",
            _blind(lambda z, log_p: -log_p.mean(dim=-1)),
            "You returned a loss for each position; take their mean.",
        ),
        Mistake(
            "other axis",
            _blind(lambda z, log_p: -z.log_softmax(dim=0).mean()),
            "Your softmax runs over the positions; the words are the last axis.",
        ),
        Mistake(
            "one sum for all",
            _blind(lambda z, log_p: z.flatten().logsumexp(dim=0) - z.mean()),
            "Your sum of exponentials goes over all positions; each position has its own.",
        ),
        Mistake(
            "overflow",
            _blind(lambda z, log_p: (z.exp().sum(dim=-1).log() - z.mean(dim=-1)).mean()),
            "For logits in the thousands exp is infinite; subtract each position's largest logit first, or use "
            "torch.logsumexp or torch.log_softmax.",
        ),
        Mistake(
            "overflow, then a ratio",
            _blind(lambda z, log_p: -_ratios(z).mean()),
            "For logits in the thousands exp is infinite, and a ratio of infinities NaN; use torch.log_softmax or "
            "torch.logsumexp, which never form it.",
        ),
        Mistake(
            "the logarithm of a softmax",
            _blind(lambda z, log_p: -z.softmax(dim=-1).log().mean()),
            "The softmax of all but the largest logits is exactly 0 for logits far apart, and the logarithm of 0 is "
            "−∞: never form it, but use torch.log_softmax or torch.logsumexp.",
        ),
        Mistake(
            "one maximum for all",
            _blind(lambda z, log_p: ((z - z.max()).exp().sum(dim=-1).log() - (z - z.max()).mean(dim=-1)).mean()),
            "You subtracted the largest logit of all positions, so that every exp of a lower position becomes 0; each "
            "position has its own largest: amax(dim=-1, keepdim=True).",
        ),
        Mistake(
            "one maximum for all, then a ratio",
            _blind(lambda z, log_p: -_ratios(z - z.max()).mean()),
            "You subtracted the largest logit of all positions, and 0/0 is NaN in the lower ones; use "
            "torch.log_softmax or torch.logsumexp, position by position.",
        ),
        Mistake(
            "an epsilon",
            _blind(lambda z, log_p: -(z.softmax(dim=-1) + 1e-9).log().mean()),
            "Adding 1e-9 to the probabilities cuts every loss off at 20.7; use torch.logsumexp or torch.log_softmax.",
        ),
        Mistake(
            "shifted once",
            _blind(lambda z, log_p: ((z - z.amax(-1, keepdim=True)).logsumexp(dim=-1) - z.mean(dim=-1)).mean()),
            "You subtracted the largest logit in the first term only; subtract it in both, or in neither.",
        ),
        Mistake(
            "sum over all",
            _blind(lambda z, log_p: -log_p.sum()),
            "You summed over words and positions; take the mean over both.",
        ),
        Mistake(
            "half the variance",
            _blind(lambda z, log_p: math.log(z.shape[-1]) + z.var(dim=-1, correction=0).mean() / 2),
            "That is ln V + σ²/2, which holds about for many small logits; the exact loss is asked for.",
        ),
    ),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
