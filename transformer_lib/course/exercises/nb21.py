"""The exercises of notebook 21: a score, two ways to ask a head, a predictor that counts, and a layer that copies."""

from __future__ import annotations

import torch

from .model import Case, Exercise, integers, normal
from .slips import slips

INF = float("inf")


# 21.1 The induction score --------------------------------------------------------------------------------------------


def induction_score(weights, period):
    """Return the induction score of each head, [n_heads].

    weights: [batch, n_heads, seq_len, seq_len], rows are queries; every sequence repeats itself with this period. The
    score is the mean weight of the key at t - period + 1, over all sequences and all queries t from period on.
    """
    queries = range(period, weights.shape[2])
    found = [weights[:, :, t, t - period + 1] for t in queries]
    return torch.stack(found).mean(dim=0).mean(dim=0)


def _causal_weights(seed, batch, n_heads, seq_len):
    (scores,) = normal(seed, (batch, n_heads, seq_len, seq_len))
    causal = torch.ones(seq_len, seq_len, dtype=torch.bool).tril()
    return (1.5 * scores).masked_fill(~causal, -INF).softmax(dim=-1)


def _score_cases():
    def case(label, seed, sizes, period):
        return Case(label, (_causal_weights(seed, *sizes), period))

    return [
        case("one sequence of 7, one head, period 3", 2110, (1, 1, 7), 3),
        case("2 sequences of 11, 3 heads, period 5", 2111, (2, 3, 11), 5),
        case("5 sequences of 13, 2 heads, period 4", 2112, (5, 2, 13), 4),
        case("7 sequences of 19, 4 heads, period 11", 2113, (7, 4, 19), 11),
        case("3 sequences of 8, 2 heads, a single query to count", 2114, (3, 2, 8), 7),
    ]


EXERCISE_1 = Exercise(
    "21.1", "The induction score", 8, 2, induction_score, _score_cases,
    slips(
        "weights, period", """
            queries = torch.arange(period, weights.shape[2])
            found = weights[:, :, queries, queries - period + 1]
            return found.mean(dim=(0, 2))
        """,
        ("the same letter", "period + 1", "period",
         "You took the key one period back, where the same letter is; an induction head looks at the one after "
         "it."),
        ("one query too early", "arange(period", "arange(period - 1",
         "Your mean begins at query period - 1, one too early: its letter has not occurred before. (The diagonal has "
         "one entry too many.)"),
        ("divided by the length", "mean(dim=(0, 2))", "mean(dim=0).sum(dim=-1) / weights.shape[2]",
         "You divided by seq_len, but only seq_len - period queries count."),
        ("swapped", "queries, queries - period + 1", "queries - period + 1, queries",
         "All your scores are 0. A causal head gives no weight to later keys; rows are queries, columns are keys."),
        ("summed", "mean(dim=(0, 2))", "sum(dim=(0, 2))",
         "You added the weights up, over both axes; a score is their mean over sequences and queries."),
        ("heads joined", "dim=(0, 2)", "", "You averaged over the heads, too; each head has a score of its own."),
        ("sequences apart", "dim=(0, 2)", "dim=-1",
         "Each sequence still has its own score; take the mean over them, too: [n_heads]."),
    ),
    part="induction_score",
)  # fmt: skip


# 21.2 Take a head away -----------------------------------------------------------------------------------------------


def ablate_head(heads, head):
    """Return the outputs of all heads, with one replaced by its mean over all sequences and positions.

    heads: [batch, n_heads, seq_len, d_v], which stay as they are; head: which one, from 0. The mean is one vector of
    d_v numbers, the same at every position of every sequence.
    """
    kept = [heads[:, other] for other in range(heads.shape[1])]
    mean = kept[head].flatten(0, 1).mean(dim=0)
    kept[head] = mean.expand_as(kept[head])
    return torch.stack(kept, dim=1)


def _ablation_cases():
    def case(label, seed, sizes, head):
        return Case(label, (normal(seed, sizes)[0] + 0.5, head))

    return [
        case("one sequence, one head", 2140, (1, 1, 3, 2), 0),
        case("2 sequences, 3 heads, the last one", 2141, (2, 3, 5, 2), 2),
        case("5 sequences, 2 heads, the first one", 2142, (5, 2, 7, 3), 0),
        case("3 sequences, 4 heads, one between", 2143, (3, 4, 11, 5), 2),
        case("as many sequences as heads and positions", 2144, (3, 3, 3, 3), 1),
    ]


EXERCISE_2 = Exercise(
    "21.2", "Take a head away", 6, 1, ablate_head, _ablation_cases,
    slips(
        "heads, head", """
            heads = heads.clone()
            heads[:, head] = heads[:, head].mean(dim=(0, 1))
            return heads
        """,
        ("zeros", "heads[:, head].mean(dim=(0, 1))", "0",
         "The head is replaced by zeros; here it is to be replaced by its mean, which later layers are used to."),
        ("a mean per sequence", "dim=(0, 1)", "dim=1, keepdim=True",
         "Each sequence has its own mean, which still says something about it; average over the sequences, too."),
        ("a mean per position", "dim=(0, 1)", "dim=0",
         "Each position has its own mean; average over the positions, too."),
        ("one number", "dim=(0, 1)", "",
         "The mean is a single number; it must be one vector, with a mean for each of the d_v features."),
        ("the mean of all heads", "heads[:, head].mean(dim=(0, 1))", "heads.mean(dim=(0, 1, 2))",
         "You put the mean of all heads there; the head is to be replaced by its own mean."),
        ("a sequence for a head", "heads[:, head] = heads[:, head].mean", "heads[head] = heads[head].mean",
         "You indexed the sequences, axis 0; the heads are axis 1."),
    ),
    gradients=("heads",), part="ablate_head",
)  # fmt: skip


# 21.3 What each head says --------------------------------------------------------------------------------------------


def head_contributions(heads, W_O, W_U, letters):
    """Return what each head adds to the logit of the letter of each position: [n_heads, seq_len].

    heads: [n_heads, seq_len, d_v], each head's output before heads are merged; W_O: [n_heads · d_v, d_model], for
    merged @ W_O; W_U: [d_model, vocab_size], for x @ W_U, which makes the logits; letters: [seq_len], whole numbers.
    The sum over the heads is the logit that the whole attention adds.
    """
    n_heads, seq_len, d_v = heads.shape
    rows = []
    for head in range(n_heads):
        logits = heads[head] @ W_O[head * d_v : (head + 1) * d_v] @ W_U
        rows.append(torch.stack([logits[t, int(letters[t])] for t in range(seq_len)]))
    return torch.stack(rows)


def _contribution_cases():
    def case(label, seed, n_heads, seq_len, d_v, d_model, vocab_size):
        tensors = normal(seed, (n_heads, seq_len, d_v), (n_heads * d_v, d_model), (d_model, vocab_size))
        return Case(label, (*tensors, integers(seed, (seq_len,), 0, vocab_size)))

    return [
        case("one head of 3 features", 2130, 1, 2, 3, 3, 5),
        case("2 heads of 3 features, 5 positions", 2131, 2, 5, 3, 6, 7),
        case("3 heads of 2 features, 7 positions", 2132, 3, 7, 2, 6, 11),
        case("4 heads of 5 features, d_model 20", 2133, 4, 11, 5, 20, 13),
        case("2 heads of 3 features into d_model 11", 2134, 2, 3, 3, 11, 5),
        case("as many heads as features", 2135, 3, 5, 3, 9, 7),
    ]


EXERCISE_3 = Exercise(
    "21.3", "What each head says", 12, 3, head_contributions, _contribution_cases,
    slips(
        "heads, W_O, W_U, letters", """
            n_heads, seq_len, d_v = heads.shape
            blocks = W_O.unflatten(0, (n_heads, d_v))
            logits = heads @ blocks @ W_U
            added = logits[:, torch.arange(seq_len), letters]
            return added
        """,
        ("an even share", "return added", "return added.mean(0).expand(n_heads, -1)",
         "Every head got the same share of the sum; each goes through its own rows of W_O."),
        ("all rows for each", "heads @ blocks", "heads @ blocks.sum(0)",
         "Every head went through all rows of W_O added up; head i has the rows i · d_v to (i + 1) · d_v - 1."),
        ("rows dealt in turn", "(n_heads, d_v))", "(d_v, n_heads)).transpose(0, 1)",
         "You dealt the rows of W_O out in turn; merging puts the heads side by side, so a head's rows follow each "
         "other."),
        ("all letters", "return added", "return logits",
         "You returned the logits of all letters; pick letters[t] at position t."),
        ("every letter at every position", "[:, torch.arange(seq_len), letters]", "[..., letters]",
         "You picked all letters at every position; pick letters[t] at position t alone, with two indices."),
    ),
    gradients=("heads", "W_O", "W_U"),
)  # fmt: skip


# 21.4 Counting in context --------------------------------------------------------------------------------------------


def bigram_in_context(ids, vocab_size):
    """Return probabilities [batch, seq_len, vocab_size] of the next letter, counted within the sequence itself.

    ids: [batch, seq_len]. At position t, let n be how often the letter ids[t] has been followed by any letter so far,
    where a pair of equal letters counts, too, and c(a) how often by a; position t itself is the last that has been
    read. Then the letter a has the probability (c(a) + 1) / (n + vocab_size).
    """
    batch, seq_len = ids.shape
    found = torch.ones(batch, seq_len, vocab_size)
    for b, row in enumerate(ids.tolist()):
        for t, letter in enumerate(row):
            for before, after in zip(row[:t], row[1 : t + 1], strict=True):
                found[b, t, after] += before == letter
    return found / found.sum(dim=-1, keepdim=True)


def _counting_cases():
    def case(label, ids, vocab_size):
        return Case(label, (ids, vocab_size))

    return [
        case("a b a b a of two letters", torch.tensor([[0, 1, 0, 1, 0]]), 2),
        case("2 sequences of 11, 3 letters", integers(2120, (2, 11), 0, 3), 3),
        case("7 sequences of 13, 5 letters", integers(2121, (7, 13), 0, 5), 5),
        case("3 sequences of 17, 4 letters", integers(2122, (3, 17), 0, 4), 4),
        case("letters that come only once", torch.tensor([[3, 0, 4, 1, 2]]), 7),
        case("a single letter to start from", torch.tensor([[2], [0], [1]]), 3),
    ]


EXERCISE_4 = Exercise(
    "21.4", "Counting in context", 12, 2, bigram_in_context, _counting_cases,
    slips(
        "ids, vocab_size", """
            letters = torch.nn.functional.one_hot(ids, vocab_size).float()
            earlier = (ids[:, :, None] == ids[:, None, :]).float().tril(-1)
            c = earlier[:, :, :-1] @ letters[:, 1:]
            n = c.sum(-1, keepdim=True)
            return (c + 1) / (n + vocab_size)
        """,
        ("nothing added", "(c + 1) / (n + vocab_size)", "torch.where(n > 0, c / n, 1 / vocab_size)",
         "The counts are not increased by 1, so a pair that has not occurred yet gets 0 as soon as its first letter "
         "has been followed by another."),
        ("0 / 0", "(c + 1) / (n + vocab_size)", "c / n",
         "A letter that occurs for the first time has n = 0: add 1 to each count, and vocab_size to n."),
        ("peeks at the next letter", "tril(-1)", "tril()",
         "At position t you count the pair of t and t + 1, too; but the letter at t + 1 is the one to be predicted."),
        ("the whole sequence", ".tril(-1)", "",
         "You count over the whole sequence; at position t only the letters up to t are known."),
        ("unigram", "earlier[:, :, :-1] @ letters[:, 1:]", "letters.cumsum(1)",
         "You count the letters, whatever comes before them; only those after an occurrence of ids[t] count."),
        ("raw counts", "return (c + 1) / (n + vocab_size)", "return c",
         "You returned the counts themselves; divide, so that each row becomes probabilities."),
        ("raw counts and one", "(c + 1) / (n + vocab_size)", "c + 1",
         "You returned the counts, one added to each; divide by n + vocab_size, so that each row sums to 1."),
        ("what came before", "earlier[:, :, :-1] @ letters[:, 1:]", "earlier[:, :, 1:] @ letters[:, :-1]",
         "You count what came before each earlier occurrence; count what came after it."),
        ("the present one in n", "n + vocab_size", "n + 1 + vocab_size",
         "Your n counts the present occurrence, too, which nothing has followed yet."),
    )
    + slips(
        "ids, vocab_size", """
            found = torch.empty(*ids.shape, vocab_size)
            for b, row in enumerate(ids.tolist()):
                table = torch.ones(vocab_size, vocab_size)
                for t, letter in enumerate(row):
                    if t > 0:
                        table[row[t - 1], letter] += 1
                    found[b, t] = table[letter] / table[letter].sum()
            return found
        """,
        ("never reset", "for b, row in enumerate(ids.tolist()):\n    table = torch.ones(vocab_size, vocab_size)",
         "table = torch.ones(vocab_size, vocab_size)\nfor b, row in enumerate(ids.tolist()):",
         "Your table goes on from one sequence to the next; each begins with nothing counted."),
        ("transposed", "table[row[t - 1], letter] += 1", "table[letter, row[t - 1]] += 1",
         "Your table is transposed: it counts what came before each letter, not what came after it."),
        ("wrapped round", "if t > 0:\n            table", "table",
         "You count a pair at t = 0, of the last letter and the first: the index t - 1 is -1 there."),
    ),
)  # fmt: skip

# 21.5 A layer whose keys are told -------------------------------------------------------------------------------------


def told_layer(ids, letters, positions, before, W_Q, W_K, W_V, W_O, W_U):
    """Return logits [batch, seq_len, vocab_size] of a language model of one layer and one head.

    ids: [batch, seq_len]; letters: [vocab_size, d_model]; positions: [max_len, d_model], a row for each position;
    before: [vocab_size, d_model], a second table of letters; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v]; W_O:
    [d_v, d_model]; W_U: [d_model, vocab_size]. The stream x is letter plus position. Queries and values are made from
    x; keys from x plus the row of `before` for the letter one position earlier (nothing is added at position 0). The
    head is causal and scaled, what it returns goes through W_O and is added to x, and W_U makes the logits.
    """
    batches = []
    for row in ids.tolist():
        stream = [letters[letter] + positions[t] for t, letter in enumerate(row)]
        keys = [(x if t == 0 else x + before[row[t - 1]]) @ W_K for t, x in enumerate(stream)]
        logits = []
        for t, x in enumerate(stream):
            scores = torch.stack([(x @ W_Q) @ key for key in keys[: t + 1]]) / W_Q.shape[1] ** 0.5
            read = scores.softmax(dim=0) @ torch.stack(stream[: t + 1]) @ W_V
            logits.append((x + read @ W_O) @ W_U)
        batches.append(torch.stack(logits))
    return torch.stack(batches)


def _layer_cases():
    def case(label, seed, batch, seq_len, vocab_size, d_model, d_k, d_v, max_len):
        tables = normal(seed, (vocab_size, d_model), (max_len, d_model), (vocab_size, d_model))
        shapes = (d_model, d_k), (d_model, d_k), (d_model, d_v), (d_v, d_model), (d_model, vocab_size)
        matrices = (W / d_model**0.5 for W in normal(seed + 1, *shapes))
        return Case(label, (integers(seed, (batch, seq_len), 0, vocab_size), *tables, *matrices))

    return [
        case("one string of 2 letters", 2150, 1, 2, 5, 3, 2, 2, 7),
        case("2 strings of 5 letters", 2152, 2, 5, 7, 3, 3, 3, 5),
        case("3 strings of 7 letters, d_k 5 and d_v 2", 2154, 3, 7, 11, 13, 5, 2, 17),
        case("as many strings as letters", 2156, 5, 5, 3, 7, 2, 3, 11),
        case("7 strings of 3 letters out of 2", 2158, 7, 3, 2, 5, 3, 7, 3),
    ]


EXERCISE_5 = Exercise(
    "21.5", "A layer whose keys are told", 12, 3, told_layer, _layer_cases,
    slips(
        "ids, letters, positions, before, W_Q, W_K, W_V, W_O, W_U", """
            n = ids.shape[1]
            x = letters[ids] + positions[:n]
            earlier = torch.cat([torch.zeros_like(x[:, :1]), before[ids[:, :-1]]], dim=1)
            q = x @ W_Q
            k = (x + earlier) @ W_K
            v = x @ W_V
            scores = q @ k.mT / q.shape[-1] ** 0.5
            causal = torch.ones(n, n).tril().bool()
            weights = scores.masked_fill(~causal, -torch.inf).softmax(dim=-1)
            return (x + weights @ v @ W_O) @ W_U
        """,
        ("all are told", "q = x @ W_Q", "x = x + earlier\nearlier = 0\nq = x @ W_Q",
         "You added the table to the stream itself, so queries, values and logits know it, too; only keys may."),
        ("queries are told", "q = x @ W_Q", "q = (x + earlier) @ W_Q", "The queries know the previous letter, too."),
        ("queries, not keys", "q = x @ W_Q\nk = (x + earlier) @ W_K", "q = (x + earlier) @ W_Q\nk = x @ W_K",
         "You told the queries; it is the keys that get the table."),
        ("values are told", "v = x @ W_V", "v = (x + earlier) @ W_V", "The values know the previous letter, too."),
        ("values, not keys", "k = (x + earlier) @ W_K\nv = x @ W_V", "k = x @ W_K\nv = (x + earlier) @ W_V",
         "You told the values; it is the keys that get the table."),
        ("all three", "q = x @ W_Q\nk = (x + earlier) @ W_K\nv = x @ W_V",
         "q, k, v = ((x + earlier) @ W for W in (W_Q, W_K, W_V))",
         "Queries and values know the previous letter, too; make those from x."),
        ("nobody is told", "(x + earlier) @ W_K", "x @ W_K", "Your keys do not get the table `before`."),
        ("the key alone", "(x + earlier) @ W_K", "earlier @ W_K",
         "Your keys are made of the previous letter alone; it is added to x."),
        ("its own letter", "torch.cat([torch.zeros_like(x[:, :1]), before[ids[:, :-1]]], dim=1)", "before[ids]",
         "You looked up each key's own letter in `before`; it must be the letter one position earlier."),
        ("wrapped round", "torch.cat([torch.zeros_like(x[:, :1]), before[ids[:, :-1]]], dim=1)",
         "before[ids.roll(1, dims=1)]",
         "At position 0 you add the row of the string's last letter: nothing stands before the first one."),
        ("the next letter", "torch.cat([torch.zeros_like(x[:, :1]), before[ids[:, :-1]]], dim=1)",
         "torch.cat([before[ids[:, 1:]], torch.zeros_like(x[:, :1])], dim=1)",
         "Your keys are told the letter after them, which is the answer; it must be the one before."),
        ("the table of letters", "before[ids[:, :-1]]", "letters[ids[:, :-1]]",
         "You looked the previous letter up in `letters`; it has a table of its own, `before`."),
        ("no mask", ".masked_fill(~causal, -torch.inf)", "", "Your queries see later positions; mask them."),
        ("mask inverted", "~causal", "causal.tril(-1)", "Your mask hides the past; it must hide the future."),
        ("not scaled", " / q.shape[-1] ** 0.5", "", "The scores are not divided by the root of d_k."),
        ("d_model for d_k", "q.shape[-1]", "x.shape[-1]", "You divided by the root of d_model; it must be d_k."),
        ("not added", "(x + weights @ v @ W_O)", "(weights @ v @ W_O)",
         "What the head returns must be added to x before W_U."),
        ("no positions", " + positions[:n]", "", "The positions are missing."),
        ("queries softmaxed", "softmax(dim=-1)", "softmax(dim=-2)",
         "Your softmax runs over the queries; the weights of each query must sum to 1, so it runs over the keys."),
        ("attention alone", "return (x + weights @ v @ W_O) @ W_U", "return weights @ v @ W_O",
         "You returned what the head adds; add it to x, and multiply by W_U."),
    ),
    gradients=("letters", "positions", "before", "W_Q", "W_K", "W_V", "W_O", "W_U"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
