"""The exercises of notebook 07: masking and teacher forcing."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .slips import slips

# 07.1 The causal mask --------------------------------------------------------------------------------------------


def causal_mask(seq_len):
    """Return the causal mask: booleans [seq_len, seq_len], True = query i (row) may see key j (column).

    Each token may see itself and the tokens before it. seq_len: an int.
    """
    return torch.tensor([[j <= i for j in range(seq_len)] for i in range(seq_len)])


def _length_cases():
    return [
        Case("2 tokens", (2,)),
        Case("one token", (1,)),
        Case("3 tokens", (3,)),
        Case("5 tokens", (5,)),
        Case("11 tokens", (11,)),
    ]


EXERCISE_1 = Exercise(
    "07.1", "The causal mask", 5, 1, causal_mask, _length_cases,
    slips(
        "seq_len", "return torch.ones(seq_len, seq_len, dtype=torch.bool).tril()",
        ("strict", "tril()", "tril(-1)",
         "A token may see itself: the diagonal is True. Yours leaves the first row with nothing to see."),
        ("turned", "tril", "triu",
         "Row i sees key i and all later ones: the mask is transposed. Queries are rows, keys are columns."),
        ("inverted", "tril()", "triu(1)", "You marked what is hidden. In this course True = may attend."),
        ("numbers", ", dtype=torch.bool", "",
         "Right places, but as numbers 0 and 1: return booleans, for example with .bool()."),
        ("to be added", "torch.ones(seq_len, seq_len, dtype=torch.bool).tril()",
         "torch.full((seq_len, seq_len), -torch.inf).triu(1)",
         "That is a matrix of 0 and −∞ to be added to scores; return booleans."),
    ),
    part="causal_mask",
)  # fmt: skip


# 07.2 The padding mask -----------------------------------------------------------------------------------------------


def padding_mask(ids, pad_id):
    """Return which keys are real tokens, as booleans that broadcast to [batch, n_heads, q_len, k_len].

    ids: [batch, k_len] integers; pad_id: the id that fills up short sentences. Returns [batch, 1, 1, k_len].
    """
    return torch.tensor([[[[token != pad_id for token in row]]] for row in ids.tolist()])


def _id_cases():
    ids = torch.tensor([[5, 7, 3, 0, 0], [4, 6, 8, 9, 3], [2, 0, 0, 0, 0]])
    return [
        Case("one sentence of 2", (torch.tensor([[5, 0]]), 0)),
        Case("3 sentences of up to 5", (ids, 0)),
        Case("the padding id is 3", (torch.tensor([[5, 1, 3], [1, 0, 2]]), 3)),
        Case("no padding", (torch.tensor([[4, 5, 6, 7, 8, 9, 1]] * 2), 0)),
        Case("padding in front", (torch.tensor([[11, 11, 4], [11, 2, 13], [1, 2, 5], [7, 8, 9], [11, 3, 12]]), 11)),
    ]


EXERCISE_2 = Exercise(
    "07.2", "The padding mask", 5, 1, padding_mask, _id_cases,
    slips(
        "ids, pad_id", """
            real = ids != pad_id
            return real[:, None, None, :]
        """,
        ("inverted", "!=", "==", "You marked the padding. In this course True = may attend."),
        ("flat", "[:, None, None, :]", "",
         "Right entries, but [batch, k_len] would be read as [q_len, k_len]: add two axes in the middle."),
        ("queries", "None, None, :", "None, :, None",
         "Your mask hides rows, the queries at padding. Padding must be hidden as a key: the last axis."),
        ("always 0", "pad_id", "0", "You compared with 0; the id to hide is pad_id."),
        ("no heads", "None, None", "None",
         "One axis is missing: [batch, 1, k_len] would put the batch in the place of the heads."),
        ("batch third", ":, None, None, :", "None, None",
         "The new axes are in front, so the batch is in the place of the queries: [:, None, None, :]."),
        ("numbers", "None, :]", "None, :].float()", "Right entries, but as numbers: return booleans."),
        ("as many from the left", "ids != pad_id", "torch.arange(ids.shape[1]) < (ids != pad_id).sum(1, keepdim=True)",
         "You marked as many places from the left as there are real tokens; "
         "padding may be anywhere, so compare each id with pad_id."),
    ),
    part="padding_mask",
)  # fmt: skip


# 07.3 The loss, one step at a time ------------------------------------------------------------------------------------


def stepwise_loss(logits_of, tgt):
    """Return the mean cross-entropy of a sentence, computed one step at a time.

    logits_of: takes token ids [n] and returns logits [n, vocab_size]; row t scores the token after the first t + 1.
    tgt: [seq_len + 1] ids, beginning with bos. At each of the seq_len steps the model gets the true tokens so far
    and nothing else; the loss of the step is −log of the probability that it gives to the true next token.
    """
    losses = []
    for known in range(1, len(tgt)):
        last = logits_of(tgt[:known].clone())[-1]
        losses.append(torch.logsumexp(last, dim=0) - last[tgt[known]])
    return sum(losses) / len(losses)


def _model(seed, vocab_size, longest, sees):
    """Return a model whose logits in row t are a blend of the tokens that `sees(t, s)` lets it see."""
    tables = normal(seed, (longest, vocab_size, vocab_size), dtype=torch.float64)[0]  # one table per distance

    def logits_of(ids):
        if ids.dim() != 1:
            raise ValueError(
                f"logits_of takes the ids of one sentence, [n], without a batch axis; got {list(ids.shape)}"
            )
        if not len(ids):
            raise ValueError("logits_of got no tokens; the first prefix is tgt[:1], and has one")
        n, rows = len(ids), []
        for t in range(n):
            seen = [tables[abs(t - s) % longest, ids[s]] * (1.5 if s > t else 1.0) for s in range(n) if sees(t, s)]
            rows.append(sum(seen, torch.zeros(vocab_size, dtype=torch.float64)))
        return torch.stack(rows)

    return logits_of


def _past(t, s):
    return s <= t


def _loss_cases():
    def case(label, seed, vocab_size, length, sees):
        return Case(label, (_model(seed, vocab_size, 13, sees), integers(seed, (length,), 0, vocab_size)))

    return [
        case("one step", 75, 3, 2, _past),
        case("2 steps, 5 words", 76, 5, 3, _past),
        case("7 steps, 11 words", 77, 11, 8, _past),
        case("a model that would look ahead if it could", 78, 5, 6, lambda t, s: True),
        case("a model that would read the next token", 79, 7, 4, lambda t, s: s in (t, t + 1)),
    ]


EXERCISE_3 = Exercise(
    "07.3", "The loss, one step at a time", 10, 2, stepwise_loss, _loss_cases,
    slips(
        "logits_of, tgt", """
            losses = []
            for t in range(len(tgt) - 1):
                logits = logits_of(tgt[: t + 1])[-1]
                losses.append(-logits.log_softmax(-1)[tgt[t + 1]])
            return torch.stack(losses).mean()
        """,
        ("in one pass", "tgt[: t + 1])[-1]", "tgt[:-1])[t]",
         "You fed the whole sentence. That is right for a causal model only; "
         "here the model must get the tokens so far, tgt[:t + 1]."),
        ("in one pass, the last word too", "tgt[: t + 1])[-1]", "tgt)[t]",
         "You fed all of tgt at once, and a model that is not causal then reads its answers: feed tgt[:t + 1]."),
        ("prefix too long", "[: t + 1]", "[: t + 2]",
         "Your prefix is too long and holds the label: feed tgt[:t + 1], compare with tgt[t + 1]."),
        ("one step too many", "torch.stack(losses).mean()", "sum(losses) / len(tgt)",
         "You divided by the length of tgt; there is one step fewer, len(tgt) - 1."),
        ("own guesses", "[tgt[t + 1]])",
         "[tgt[t + 1]])\n    tgt = torch.cat([tgt[: t + 1], logits.argmax()[None], tgt[t + 2 :]])",
         "You fed the model's own guesses; teacher forcing feeds the true tokens, tgt[:t + 1]."),
        ("unshifted", "[tgt[t + 1]]", "[tgt[t]]", "You compared with the token just read; the label is the next one."),
        ("sum", ".mean()", ".sum()", "You added up the steps; return their mean."),
        ("no first step", "range(len(tgt) - 1)", "range(1, len(tgt) - 1)",
         "The first step is missing: after bos alone the model must predict the first word."),
        ("all rows of each prefix", "[-1]\n    losses.append(-logits.log_softmax(-1)[tgt[t + 1]])",
         "\n    losses.append(torch.nn.functional.cross_entropy(logits, tgt[1 : t + 2]))",
         "You averaged all rows of each prefix; only the last one is new."),
        ("all rows of all prefixes", """
[-1]
    losses.append(-logits.log_softmax(-1)[tgt[t + 1]])
return torch.stack(losses).mean()
""".strip("\n"), """
    losses.append(torch.nn.functional.cross_entropy(logits, tgt[1 : t + 2], reduction="none"))
return torch.cat(losses).mean()
""".rstrip("\n"),
         "You averaged over all rows of all prefixes, so the early words count many times; "
         "of each call only the last row is new."),
        ("mean of the logits", "[: t + 1])[-1]", "[: t + 1]).mean(0)",
         "You averaged the logits over all rows; the next word is predicted by the last row alone."),
        ("one token at a time", "[: t + 1]", "[t : t + 1]",
         "You fed only the last token; the model must get all tokens so far, tgt[:t + 1]."),
    ),
)  # fmt: skip


# 07.4 Find the leak ---------------------------------------------------------------------------------------------------


def leak_map(logits_of, ids, vocab_size):
    """Return where a model looks ahead: booleans [seq_len, seq_len], True where row t depends on a later token s.

    logits_of: takes token ids [seq_len] and returns logits [seq_len, vocab_size]. ids: [seq_len] integers from 0 to
    vocab_size − 1. Entries with s ≤ t are False.
    """
    before = logits_of(ids.clone())
    rows = []
    for t in range(len(ids)):
        row = []
        for s in range(len(ids)):
            swapped = [(token + 1) % vocab_size if place == s else token for place, token in enumerate(ids.tolist())]
            row.append(s > t and not torch.equal(logits_of(torch.tensor(swapped))[t], before[t]))
        rows.append(row)
    return torch.tensor(rows)


def _hint(seed, vocab_size, sizes):
    """Return a causal model some of whose logits also depend on the next token; ``sizes`` says which, and how much."""
    causal = _model(seed, vocab_size, 13, _past)

    def logits_of(ids):
        logits = causal(ids)
        for place, size in sizes.items():
            logits[:-1, place] += ids[1:] * size
        return logits

    return logits_of


def _leak_cases():
    def case(label, seed, ids, vocab_size, sees):
        return Case(label, (_model(seed, vocab_size, 13, sees), torch.tensor(ids), vocab_size))

    return [
        case("2 tokens, everything seen", 80, [1, 2], 3, lambda t, s: True),
        case("a causal model", 81, [1, 4, 0, 2, 3], 5, _past),
        case("reads the next token", 82, [2, 6, 1, 0, 5, 3, 4], 7, lambda t, s: s <= t + 1),
        case("reads the next token alone", 85, [4, 1, 3, 0, 2], 5, lambda t, s: s == t + 1),
        case("row 1 reads the last but one", 83, [3, 1, 2, 0, 4], 5, lambda t, s: s <= t or (t, s) == (1, 3)),
        case("without a mask", 84, [0, 2, 1], 3, lambda t, s: True),
        Case("a small leak into one logit", (_hint(86, 5, {0: 1e-3}), torch.tensor([2, 4, 0, 1]), 5)),
        Case("a leak into the last logit", (_hint(87, 5, {-1: 1.0}), torch.tensor([3, 1, 4, 0, 2]), 5)),
        Case("one logit up, one down", (_hint(88, 3, {0: 1.0, -1: -1.0}), torch.tensor([1, 0, 2]), 3)),
    ]


def _cut_off(logits_of, ids, vocab_size):
    before, n = logits_of(ids), len(ids)
    found = torch.zeros(n, n, dtype=torch.bool)
    for s in range(1, n):
        found[:s, s] = (logits_of(ids[:s]) != before[:s]).any(-1)
    return found


def _all_later_at_once(logits_of, ids, vocab_size):
    before, n = logits_of(ids), len(ids)
    found = torch.zeros(n, n, dtype=torch.bool)
    for t in range(n - 1):
        changed = torch.cat([ids[: t + 1], (ids[t + 1 :] + 1) % vocab_size])
        found[t, t + 1 :] = bool((logits_of(changed)[t] != before[t]).any())
    return found


EXERCISE_4 = Exercise(
    "07.4", "Find the leak", 10, 3, leak_map, _leak_cases,
    slips(
        "logits_of, ids, vocab_size", """
            before, columns = logits_of(ids), []
            for s in range(len(ids)):
                changed = ids.clone()
                changed[s] = (ids[s] + 1) % vocab_size
                columns.append((logits_of(changed) != before).any(-1))
            return torch.stack(columns, dim=1).triu(1)
        """,
        ("the past too", ".triu(1)", "",
         "You also marked s ≤ t; a row may depend on itself and on earlier tokens, only later ones leak."),
        ("turned", "dim=1", "dim=0",
         "Rows and columns are swapped: the row is the prediction t, the column the changed token s."),
        ("never put back", "[]\nfor s in range(len(ids)):\n    changed = ids.clone()",
         "[]\nchanged = ids.clone()\nfor s in range(len(ids)):",
         "You did not put a changed token back, so earlier changes show up as leaks: copy ids each time."),
        ("always id 0", "(ids[s] + 1) % vocab_size", "0",
         "You replaced tokens by id 0, which changes nothing where the token is 0: "
         "choose another id, such as (id + 1) % vocab_size."),
        ("the winner alone", "(logits_of(changed) != before).any(-1)",
         "logits_of(changed).argmax(-1) != before.argmax(-1)",
         "You compared which word has the highest logit; a leak can move logits without changing that."),
        ("sum of the logits", "(logits_of(changed) != before).any(-1)",
         "(logits_of(changed) - before).sum(-1).abs() > 1e-9",
         "You compared sums or means of the logits, in which changes up and down cancel: compare each logit."),
    )
    + (
        Mistake("all at once", _all_later_at_once,
                "You changed all later tokens together, which shows that a row leaks, but not from where."),
        Mistake("later tokens left out", _cut_off,
                "You cut the sentence off instead of changing a token. "
                "That shows that something later matters, but not which token: change one, and keep the others."),
    ),
)  # fmt: skip


# 07.5 Several sentences in one row ------------------------------------------------------------------------------------


def packed_mask(segments):
    """Return the causal mask for rows that hold several sentences one after the other.

    segments: [batch, seq_len] integers: the number of the sentence that each token belongs to, 0 = padding.
    Returns booleans [batch, 1, seq_len, seq_len]: a token sees itself and the earlier tokens of its own sentence;
    padding sees nothing, and no token sees it.
    """
    return torch.tensor(
        [
            [[[j <= i and row[j] == row[i] != 0 for j in range(len(row))] for i in range(len(row))]]
            for row in segments.tolist()
        ]
    )


def _segment_cases():
    return [
        Case("2 sentences of 1 token", (torch.tensor([[1, 2]]),)),
        Case("sentences of 2 and 3 tokens", (torch.tensor([[1, 1, 2, 2, 2]]),)),
        Case(
            "3 rows of 7, with padding",
            (torch.tensor([[1, 1, 1, 2, 2, 0, 0], [1, 2, 2, 2, 2, 2, 3], [1, 1, 1, 1, 0, 0, 0]]),),
        ),
        Case("sentences numbered backwards", (torch.tensor([[5, 5, 3, 3, 2], [3, 1, 1, 1, 0]]),)),
        Case("one sentence", (torch.tensor([[1] * 5] * 2),)),
    ]


EXERCISE_5 = Exercise(
    "07.5", "Several sentences in one row", 10, 2, packed_mask, _segment_cases,
    slips(
        "segments", """
            queries, keys = segments[:, :, None], segments[:, None, :]
            causal = torch.ones(segments.shape[1], segments.shape[1], dtype=torch.bool).tril()
            return ((queries == keys) & (keys != 0) & causal)[:, None]
        """,
        ("no order", " & causal", "",
         "Sentences are kept apart, but each token sees the later ones of its own sentence."),
        ("no sentences", "queries == keys", "queries != 0",
         "Later tokens are hidden, but a sentence reads the sentences before it."),
        ("padding", " & (keys != 0)", "", "Padding has number 0 and sees padding; it must see nothing."),
        ("strict", "tril()", "tril(-1)", "A token may see itself: j ≤ i."),
        ("inverted", "return ", "return ~", "You marked what is hidden: True = may attend."),
        ("no heads", "[:, None]", "", "The axis of the heads is missing: [batch, 1, seq_len, seq_len]."),
    ),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
