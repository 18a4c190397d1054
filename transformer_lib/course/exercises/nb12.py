"""The exercises of notebook 12: the whole Transformer."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, integers, normal
from .slips import slips

INF = float("inf")


# 12.1 From ids to logits ---------------------------------------------------------------------------------------------


def ids_to_logits(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, padding_mask, causal_mask, pad_id):
    """Return the logits [batch, tgt_len, vocab_size] of an encoder-decoder whose parts are given as functions.

    src: [batch, src_len] and tgt_in: [batch, tgt_len], ids. embed_src(ids), embed_tgt(ids): vectors with positions.
    encoder(x, mask) -> memory; decoder(y, memory, tgt_mask, memory_mask) -> hidden; head(hidden) -> logits.
    padding_mask(ids, pad_id), [batch, 1, 1, n], and causal_mask(seq_len), [seq_len, seq_len], are yours of notebook 07:
    boolean, True = may attend. Target keys must pass both. Use no other masks, so that it is these which run.
    """
    src_mask = padding_mask(src, pad_id)
    tgt_mask = causal_mask(tgt_in.shape[1]) * padding_mask(tgt_in, pad_id)
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


def _padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None]


def _causal_mask(seq_len):
    return torch.ones(seq_len, seq_len).tril().bool()


def _two_ids_hidden(ids, pad_id):
    return _padding_mask(ids, pad_id) & _padding_mask(ids, 3)


def _two_words_back(seq_len):
    return _causal_mask(seq_len).triu(-2)


def _cases():
    def case(label, seed, batch, src_len, tgt_len, d_model, padded=0, pad_id=0, tgt_padded=0, masks=None):
        low = 0 if pad_id else 1
        src, tgt_in = (integers(seed, (batch, n), low, 7) for n in (src_len, tgt_len))
        src[src == pad_id], tgt_in[tgt_in == pad_id] = 6, 6
        src[0, src_len - padded :], tgt_in[0, tgt_len - tgt_padded :] = pad_id, pad_id
        if masks:  # what they hide is there: each of them differs from the usual one
            src[1, 2] = tgt_in[1, 2] = 3
        return Case(
            label, (src, tgt_in, *_parts(seed, d_model, 7, 11), *(masks or (_padding_mask, _causal_mask)), pad_id)
        )

    return [
        case("2 source tokens, one of them padding, 3 target tokens", 1, 1, 2, 3, 2, padded=1),
        case("2 sentences, padding in both languages", 2, 2, 5, 7, 3, padded=2, tgt_padded=3),
        case("no padding", 3, 3, 7, 5, 2),
        case("the padding id is 5", 4, 2, 5, 3, 7, padded=3, pad_id=5),
        case("one target token", 5, 2, 3, 1, 5, padded=1),
        case("two target tokens, one of them padding", 7, 1, 3, 2, 3, tgt_padded=1),
        case("masks that hide more than usual", 8, 2, 5, 7, 3, masks=(_two_ids_hidden, _two_words_back)),
    ]


EXERCISE_1 = Exercise(
    "12.1", "From ids to logits", 12, 2, ids_to_logits, _cases,
    slips(
        "src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, padding_mask, causal_mask, pad_id", """
            n = tgt_in.shape[1]
            causal = causal_mask(n)
            src_mask = padding_mask(src, pad_id)
            tgt_mask = padding_mask(tgt_in, pad_id) & causal
            memory = encoder(embed_src(src), src_mask)
            hidden = decoder(embed_tgt(tgt_in), memory, tgt_mask, src_mask)
            return head(hidden)
        """,
        ("no source mask", "embed_src(src), src_mask", "embed_src(src), None",
         "The encoder may see the source's padding: give it the source mask."),
        ("no memory mask", "tgt_mask, src_mask)", "tgt_mask, None)",
         "The decoder reads memory rows of padding: the cross-attention needs the source mask as well."),
        ("no causal", " & causal", "",
         "The target mask hides padding only: each position reads the words that it has to predict."),
        ("no target padding", "padding_mask(tgt_in, pad_id) & causal", "causal[None, None]",
         "The target mask hides later tokens, but not the padding; join both masks with &. With padding at the end no "
         "real word notices. The rows of the padding do, and the check compares them, too; and with padding at the "
         "front the words would notice."),
        ("own padding mask", "n = tgt_in",
         "padding_mask = lambda ids, pad_id: (ids != pad_id)[:, None, None]\nn = tgt_in",
         "You made the padding's mask yourself, or took the library's. Call padding_mask(ids, pad_id), which comes as "
         "an argument: in your own Transformer it is yours of notebook 07."),
        ("own causal mask", "causal_mask(n)", "torch.ones(n, n).tril().bool()",
         "You made the causal mask yourself, or took the library's. Call causal_mask(n), which comes as an argument: "
         "in your own Transformer it is yours of notebook 07."),
        ("own masks", "causal = causal_mask(n)",
         "causal = torch.ones(n, n).tril().bool()\npadding_mask = lambda ids, pad_id: (ids != pad_id)[:, None, None]",
         "You made both masks yourself, or took the library's. Call padding_mask(ids, pad_id) and causal_mask(n), "
         "which come as arguments: in your own Transformer they are yours of notebook 07."),
        ("either mask", " & causal", " | causal",
         "You joined the target's two masks with |; a key has to pass both, so join them with &."),
        ("padding as queries", "padding_mask(tgt_in, pad_id)", "padding_mask(tgt_in, pad_id).mT",
         "You hid what the target's padding may read, its rows; hide the padding as keys, along the columns."),
        ("inverted", "memory = encoder(", "src_mask, tgt_mask = ~src_mask, ~tgt_mask\nmemory = encoder(",
         "Your masks are the wrong way round: True means may attend."),
        ("softmax", "head(hidden)", "head(hidden).softmax(-1)",
         "You returned probabilities; logits are the scores before the softmax."),
        ("last", "head(hidden)", "head(hidden[:, -1:])",
         "You returned the last position only; training needs logits at every position."),
        ("padding id 0", "n = tgt_in", "pad_id = 0\nn = tgt_in", "You took 0 for the padding id; use pad_id."),
    ),
    part="ids_to_logits",
)  # fmt: skip


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


EXERCISE_2 = Exercise(
    "12.2", "Find the wrong parts", 10, 2, wrong_parts, _parts_cases,
    slips(
        "names, logits_with", """
            right = logits_with([])
            found = []
            for name in names:
                logits = logits_with([name])
                if not ((logits - right).abs() < 1e-4).all():
                    found.append(name)
            return found
        """,
        ("NaN is not large", "not ((logits - right).abs() < 1e-4).all()", "((logits - right).abs() > 1e-4).any()",
         "A part that returns NaN slips through: a comparison with NaN is False, so ask whether all differences "
         "are small."),
        ("exactly equal", "((logits - right).abs() < 1e-4).all()", "torch.equal(logits, right)",
         "You call parts wrong that are right except for rounding; allow each logit to move by up to 1e-4 (atol)."),
        ("best words only", "((logits - right).abs() < 1e-4).all()", "torch.equal(logits.argmax(-1), right.argmax(-1))",
         "You compare the best words only; they can stay the same while the logits are wrong."),
        ("without abs, and NaN", "not ((logits - right).abs() < 1e-4).all()", "(logits - right > 1e-4).any()",
         "Logits that are too low slip through, and so does NaN: ask whether all absolute differences are small."),
        ("too coarse", "1e-4", "1e-2",
         "You allow more than rounding needs, so that small errors slip through; allow 1e-4."),
        ("one more each time", "[name]", "names[: names.index(name) + 1]",
         "You add one part after the other, so those after a wrong one look wrong too; try each part alone."),
        ("all but one", "[name])\n    if not (", "[other for other in names if other != name])\n    if (",
         "You leave out one part and ask whether all is right then; with two wrong parts it never is. Try each "
         "part alone."),
    ),
    items="names",
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "12.3", "Count the parameters", 10, 2, parameters, _count_cases,
    slips(
        "d_model, d_ff, n_layers, src_vocab_size, tgt_vocab_size, tied", """
            attention = 4 * d_model**2
            feed_forward = 2 * d_model * d_ff + d_ff + d_model
            norm = 2 * d_model
            encoder_layer = attention + feed_forward + 2 * norm
            decoder_layer = 2 * attention + feed_forward + 3 * norm
            rows = src_vocab_size if tied else src_vocab_size + 2 * tgt_vocab_size
            return n_layers * (encoder_layer + decoder_layer) + rows * d_model
        """,
        ("one attention in the decoder", "2 * attention", "attention",
         "A decoder layer has two attentions, one for its own words and one for the memory; you counted one."),
        ("attention biases", "4 * d_model**2", "4 * d_model**2 + 4 * d_model",
         "You counted biases in the attention; here it has none."),
        ("two norms in the decoder", "3 * norm", "2 * norm",
         "A decoder layer has three norms, one for each sub-layer; you counted two."),
        ("gains only", "norm = 2 * d_model", "norm = d_model",
         "Each norm has a gain and a bias; you counted one of the two."),
        ("final norms", "rows * d_model", "rows * d_model + 2 * norm",
         "You counted a norm at the end of each stack; here the last layer ends in its own norm."),
        ("no feed-forward biases", " + d_ff + d_model", "",
         "The biases of the feed-forward networks are missing: d_ff for the first matrix, d_model for the second."),
        ("no head", "2 * tgt_vocab_size", "tgt_vocab_size",
         "Untied, the output head is a third table, with tgt_vocab_size rows; it is missing."),
        ("head of the source", "src_vocab_size + 2 * tgt_vocab_size", "2 * src_vocab_size + tgt_vocab_size",
         "The output head scores target words, so it has tgt_vocab_size rows."),
        ("tied head apart", "src_vocab_size if tied", "2 * src_vocab_size if tied",
         "With tied, the output head is the same table too; you counted two tables."),
    ),
)  # fmt: skip


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


EXERCISE_4 = Exercise(
    "12.4", "The loss of a blind model", 10, 2, blind_loss, _blind_cases,
    slips(
        "logits", """
            log_p = logits.log_softmax(dim=-1)
            return -log_p.mean(dim=-1).mean()
        """,
        ("entropy", "log_p.mean(dim=-1)", "(log_p.exp() * log_p).sum(dim=-1)",
         "You weighted the words by p, as if the model drew the label itself; here each word has the weight 1/V."),
        ("ln V", "-log_p.mean(dim=-1).mean()", "logits.new_tensor(math.log(logits.shape[-1]))",
         "That is ln V, which holds only if all logits of a position are equal. (The logarithm of the mean "
         "probability is always −ln V; here you need the mean of the logarithms.)"),
        ("the logarithm of a softmax", "log_softmax(dim=-1)", "softmax(dim=-1).log()",
         "For logits far apart the softmax of all but the largest is exactly 0, and the logarithm of 0 is −∞: use "
         "torch.log_softmax or torch.logsumexp."),
        ("an epsilon", "logits.log_softmax(dim=-1)", "(logits.softmax(dim=-1) + 1e-9).log()",
         "Adding 1e-9 to the probabilities cuts every loss off at 20.7; use torch.logsumexp or torch.log_softmax."),
    )
    + slips(
        "logits", """
            shifted = logits - logits.amax(dim=-1, keepdim=True)
            return (shifted.exp().sum(dim=-1).log() - shifted.mean(dim=-1)).mean()
        """,
        ("overflow", " - logits.amax(dim=-1, keepdim=True)", "",
         "For logits in the thousands exp is infinite; subtract each position's largest logit first, or use "
         "torch.logsumexp or torch.log_softmax."),
        ("shifted once", "shifted.mean", "logits.mean",
         "You subtracted the largest logit in the first term only; subtract it in both, or in neither."),
    ),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
