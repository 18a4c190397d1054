"""The exercises of notebook 05: tokens and embeddings."""

from __future__ import annotations

import itertools

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .slips import slips

# 05.1 The most frequent pair -----------------------------------------------------------------------------------------


def most_frequent_pair(words, counts):
    """Return the pair (left, right) of neighbouring tokens that occurs most often.

    words: a list of words, each a list of tokens; counts: how often each word occurs in the text.
    Among equally frequent pairs, return the one that comes first in alphabetical order.
    """
    found = {}
    for word, count in zip(words, counts, strict=True):
        for left, right in zip(word[:-1], word[1:], strict=True):
            found[left, right] = found.get((left, right), 0) + count
    return min(found, key=lambda pair: (-found[pair], pair))


def _pair_cases():
    return [
        Case("one word", ([["a", "b", "a", "b", "c"]], [1])),
        Case("a frequent word", ([["l", "o", "w"], ["o", "w", "l"], ["n", "o", "t"]], [2, 3, 11])),
        Case("a pair twice in a word", ([["p", "a", "p", "a"], ["a", "t"], ["t", "o"]], [3, 5, 2])),
        Case("a tie", ([["t", "o"], ["i", "n"], ["i", "t"]], [7, 7, 7])),
        Case("tokens of several letters", ([["s", "how"], ["s", "how", "s"], ["m", "one", "y"]], [5, 3, 7])),
        Case("words of one token", ([["a"], ["b"], ["a"], ["b"], ["c", "d"]], [13, 13, 13, 13, 2])),
        Case("pairs that begin at odd places", ([["x", "b", "c"], ["b", "d"]], [2, 3])),
        Case("three of a kind", ([["a", "a", "a"], ["b", "c"]], [2, 3])),
        Case("a tie that the right token turns", ([["a", "z"], ["b", "c"], ["a", "y"]], [2, 2, 2])),
        Case("a tie of pairs that read alike", ([["ab", "c"], ["a", "bd"]], [5, 5])),
        Case("neighbours only", ([["a", "x", "b"], ["x", "b"], ["a", "y", "b"]], [2, 1, 2])),
    ]


EXERCISE_1 = Exercise(
    "05.1", "The most frequent pair", 8, 1, most_frequent_pair, _pair_cases,
    slips(
        "words, counts", """
            found = {}
            for word, count in zip(words, counts, strict=True):
                for pair in zip(word, word[1:]):
                    found[pair] = found.get(pair, 0) + count
            best = min(found, key=lambda pair: (-found[pair], pair))
            return best
        """,
        ("types", "+ count", "+ 1", "You counted each word once; a pair counts as often as its word occurs."),
        ("last of a tie", "min(found, key=lambda pair: (-found", "max(found, key=lambda pair: (found",
         "Right but for ties: that is the alphabetically last of the most frequent pairs, as max gives it."),
        ("first seen", "(-found[pair], pair)", "-found[pair]",
         "Right but for ties: you returned the first one seen; alphabetical order decides."),
        ("across words", "found = {}", "words, counts = [[token for word in words for token in word]], [1]\nfound = {}",
         "You joined all words into one list; a pair never reaches from one word into the next."),
        ("joined", "return best", 'return "".join(best)',
         "You returned the joined token; return the two tokens as a pair."),
        ("wraps round", "zip(word, word[1:])", "[(word[i - 1], word[i]) for i in range(len(word))]",
         "At i = 0, word[i - 1] is the word's last token: start at 1."),
        ("with its count", "return best", "return best, found[best]",
         "You returned the pair with its count, as most_common does; return the pair alone."),
        itertools=itertools,
    ),
    returns=("left", "right"),
)  # fmt: skip


# 05.2 Merge a pair ---------------------------------------------------------------------------------------------------


def merge_pair(tokens, pair):
    """Return the tokens with each occurrence of the pair joined into one token, from left to right.

    tokens: a list of strings; pair: (left, right). Each token takes part in one merge at most.
    """
    merged, rest = [], list(tokens)
    while rest:
        size = 2 if rest[:2] == list(pair) else 1
        merged.append("".join(rest[:size]))
        rest = rest[size:]
    return merged


def _merge_cases():
    return [
        Case("one occurrence", (["t", "h", "e"], ("t", "h"))),
        Case("two occurrences", (["a", "n", "a", "n", "a", "s"], ("a", "n"))),
        Case("three of a kind", (["m", "a", "a", "a"], ("a", "a"))),
        Case("the other order", (["h", "t", "h"], ("t", "h"))),
        Case("nothing to merge", (["m", "o", "n", "e", "y"], ("a", "b"))),
        Case("long tokens", (["s", "how", "s", "h", "ow"], ("s", "how"))),
        Case("seven of a kind", (["o"] * 7, ("o", "o"))),
        Case("the pair as end and beginning of longer tokens", (["xa", "b"], ("a", "b"))),
        Case("the same letters, cut elsewhere", (["ab", "c"], ("a", "bc"))),
    ]


def _pairwise(tokens, pair):
    neighbours = zip(tokens[:-1], tokens[1:], strict=True)
    return [left + right if (left, right) == tuple(pair) else left for left, right in neighbours]


EXERCISE_2 = Exercise(
    "05.2", "Merge a pair", 8, 2, merge_pair, _merge_cases,
    slips(
        "tokens, pair", """
            merged, i = [], 0
            while i < len(tokens):
                size = 2 if tuple(tokens[i : i + 2]) == tuple(pair) else 1
                merged.append("".join(tokens[i : i + size]))
                i += size
            return merged
        """,
        ("nothing merged", "tuple(tokens[i : i + 2])", "tokens[i : i + 2]",
         "Nothing was merged. A list never equals a tuple: write tuple(…) == tuple(pair)."),
        ("last lost", "len(tokens)", "len(tokens) - 1",
         "The last token got lost where it was not merged: the loop ends one token too early."),
        ("letter by letter", "merged.append(", "merged += (",
         "Adding a string to a list with += adds its letters one by one: use append."),
        ("overlap", "+= size", "+= 1",
         "After a merge, move on by two tokens; you used the right token of the pair again."),
        ("as tuple", '"".join(tokens[i : i + size])', "pair if size == 2 else tokens[i]",
         "You put the pair in as a tuple; join its two strings: left + right."),
        ("joined strings", "tuple(tokens[i : i + 2]) == tuple(pair)", '"".join(tokens[i : i + 2]) == "".join(pair)',
         "You compared the joined strings, and another cut of the same letters fits too: compare both tokens."),
    )
    + slips(
        "tokens, pair", """
            merged = list(tokens)
            for i in range(len(tokens) - 1):
                if tuple(merged[i : i + 2]) == tuple(pair):
                    merged[i : i + 2] = [merged[i] + merged[i + 1]]
            return merged
        """,
        ("from the right", "range(len(tokens) - 1)", "reversed(range(len(tokens) - 1))",
         "You merged from right to left; of three equal tokens the first two are joined."),
    )
    + (
        Mistake("for loop", _pairwise,
                "You loop over the pairs of neighbours: after a merge the right token must be skipped, "
                "and the last token must not get lost. A while loop can move on by 2 or by 1."),
        Mistake("as one text", lambda tokens, pair: "|".join(tokens).replace("|".join(pair), "".join(pair)).split("|"),
                "You searched in the joined text, "
                "where the pair also fits the end and the beginning of longer tokens."),
    ),
)  # fmt: skip


# 05.3 Encode a word --------------------------------------------------------------------------------------------------


def bpe_encode(word, merges):
    """Return the tokens of a word: its characters, joined by the merges in the order in which they were learned.

    word: a string; merges: a list of pairs (left, right), the first learned first.
    """
    tokens = list(word)
    for pair in merges:
        tokens = merge_pair(tokens, pair)
    return tokens


def _encode_cases():
    learned = [("o", "n"), ("e", "y"), ("m", "on"), ("t", "h"), ("th", "e"), ("mon", "ey"), ("s", "how")]
    return [
        Case("a word that was learned", ("money", learned)),
        Case("a new word", ("themoon", learned)),
        Case("the order decides", ("abc", [("b", "c"), ("a", "b"), ("ab", "c")])),
        Case("the second merge needs the first", ("lower", [("l", "o"), ("lo", "w"), ("e", "r"), ("low", "er")])),
        Case("the second merge would also fit", ("abc", [("b", "c"), ("a", "bc"), ("a", "b")])),
        Case("a token ends as the next pair begins", ("xab", [("x", "a"), ("a", "b")])),
        Case("two merges overlap", ("abc", [("b", "c"), ("a", "b")])),
        Case("another cut of the same letters", ("abc", [("a", "b"), ("x", "y"), ("a", "bc")])),
        Case("a merge that reads like another", ("xabc", [("b", "c"), ("ab", "c"), ("x", "a")])),
        Case("no merges", ("seal", [])),
        Case("three of a kind", ("baaa", [("a", "a"), ("b", "aa")])),
        Case("a word with its mark", ("▁the", [("h", "e"), ("▁", "t"), ("▁t", "he")])),
        Case("the mark stays alone", ("▁river", [("r", "i"), ("e", "r")])),
    ]


def _replacing(word, merges):
    text = " ".join(word)
    for left, right in merges:
        text = text.replace(f"{left} {right}", left + right)
    return text.split(" ")


def _longest_match(word, merges):
    known, tokens = {left + right for left, right in merges}, []
    while word:
        size = next((n for n in range(len(word), 1, -1) if word[:n] in known), 1)
        tokens.append(word[:size])
        word = word[size:]
    return tokens


EXERCISE_3 = Exercise(
    "05.3", "Encode a word", 8, 2, bpe_encode, _encode_cases,
    slips(
        "word, merges", """
            tokens = list(word)
            for pair in merges:
                tokens = merge_pair(tokens, pair)
            return tokens
        """,
        ("characters", "tokens = merge_pair", "merge_pair", "These are the characters: no merge was applied."),
        ("reversed", "in merges", "in merges[::-1]",
         "You applied the last learned merge first; the first learned comes first."),
        ("with a mark", "list(word)", 'list("▁" + word)',
         "You put a ▁ in front; here `word` is taken as it is, its mark included."),
        ("stops", "tokens = merge_pair(tokens, pair)",
         "before, tokens = tokens, merge_pair(tokens, pair)\n    if tokens == before:\n        break",
         "You stopped at the first merge that finds nothing; later ones may still apply."),
        merge_pair=merge_pair,
    )
    + slips(
        "word, merges", """
            rank, tokens = {pair: i for i, pair in enumerate(merges)}, list(word)
            while known := [pair for pair in itertools.pairwise(tokens) if pair in rank]:
                tokens = merge_pair(tokens, min(known, key=rank.get))
            return tokens
        """,
        ("leftmost", "min(known, key=rank.get)", "known[0]",
         "You joined the leftmost pair that is a merge; of all that fit, the one learned first goes first."),
        itertools=itertools, merge_pair=merge_pair,
    )
    + (
        Mistake("longest match", _longest_match,
                "You took the longest known token from the left; BPE replays its merges in order."),
        Mistake("one text", _replacing,
                "You replaced in one text, where the pair also fits the end and the beginning of longer tokens."),
    ),
)  # fmt: skip


# 05.4 The embedding layer --------------------------------------------------------------------------------------------


def embed(ids, table):
    """Return for each id its row of the table, times √d_model.

    ids: [..., seq_len], integers; table: [vocab_size, d_model]. Returns [..., seq_len, d_model].
    """
    one_hot = torch.nn.functional.one_hot(ids, len(table)).to(table.dtype)
    return one_hot @ table * table.shape[1] ** 0.5


def _embed_cases():
    def case(label, seed, shape, vocab_size, d_model):
        return Case(label, (integers(seed, shape, 0, vocab_size), normal(seed, (vocab_size, d_model))[0]))

    return [
        Case("three tokens, one of them twice", (torch.tensor([3, 1, 3]), normal(70, (5, 2))[0])),
        Case("with the id 0", (torch.tensor([0, 2, 0, 1]), normal(71, (3, 7))[0])),
        case("7 tokens, 11 rows", 72, (7,), 11, 5),
        case("a batch of 2", 73, (2, 5), 7, 3),
        case("a square table", 74, (5,), 5, 5),
        case("a batch of batches", 75, (2, 3, 5), 13, 2),
        Case("one token", (torch.tensor([4]), normal(76, (7, 3))[0])),
        Case("a table in double precision", (torch.tensor([2, 0, 2]), normal(77, (5, 3), dtype=torch.float64)[0])),
    ]


def _own_rows(call, case, got):
    """Tell whether the result is the same for another table."""
    ids, table = case.args
    if torch.equal(got, call(ids, table + 1)):
        return "The result does not depend on the table: a new nn.Embedding has random rows of its own."
    return None


EXERCISE_4 = Exercise(
    "05.4", "The embedding layer", 6, 2, embed, _embed_cases,
    slips(
        "ids, table", "return table[ids] * table.shape[-1] ** 0.5",
        ("no factor", " * table.shape[-1] ** 0.5", "", "These are the rows of the table; multiply by √d_model."),
        ("d_model", " ** 0.5", "", "You multiplied by d_model; multiply by its root."),
        ("divided", "* table", "/ table",
         "You divided by √d_model, as one does with scores; a row of the table is multiplied by it."),
        ("half of d_model", "** 0.5", "** 1 / 2",
         "You multiplied by d_model / 2: in Python d_model ** 1 / 2 is (d_model ** 1) / 2. Write d_model ** 0.5."),
        ("vocab_size", "shape[-1]", "shape[0]",
         "You took the root of the number of rows, vocab_size; d_model is the length of a row, table.shape[-1]."),
        ("nested list", "[ids]", "[ids.tolist()]",
         "Right for one sentence. A nested list indexes several axes at once: index with the tensor ids itself."),
        ("columns", "table[ids]", "table.T[ids]", "You picked columns of the table; a token is a row."),
        ("no gradient for row 0", "table[ids]", "torch.nn.functional.embedding(ids, table, padding_idx=0)",
         "The values are right, but row 0 gets no gradient: leave padding_idx out."),
    ),
    gradients=("table",), probes=(_own_rows,), part="embed",
)  # fmt: skip


# 05.5 The gradient of a lookup ---------------------------------------------------------------------------------------


def embedding_gradient(ids, grad_output, vocab_size):
    """Return the gradient of the loss with respect to the embedding table.

    ids: [..., seq_len], which row of the table each token is; grad_output: [..., seq_len, d_model], the gradient
    with respect to the vectors that were looked up. Returns [vocab_size, d_model].
    """
    one_hot = torch.nn.functional.one_hot(ids, vocab_size).to(grad_output.dtype).reshape(-1, vocab_size)
    return one_hot.T @ grad_output.reshape(-1, grad_output.shape[-1])


def _gradient_cases():
    def case(label, seed, shape, d_model, vocab_size):
        return Case(label, (integers(seed, shape, 0, vocab_size), normal(seed, (*shape, d_model))[0], vocab_size))

    return [
        Case("three tokens, one of them twice", (torch.tensor([3, 1, 3]), normal(60, (3, 2))[0], 5)),
        Case("all different", (torch.tensor([4, 0, 2]), normal(61, (3, 3))[0], 5)),
        case("7 tokens, 5 words", 62, (7,), 3, 5),
        case("a batch of 2", 63, (2, 5), 3, 11),
        case("square", 64, (7,), 7, 7),
        case("a batch of batches", 65, (2, 2, 3), 3, 5),
    ]


EXERCISE_5 = Exercise(
    "05.5", "The gradient of a lookup", 10, 3, embedding_gradient, _gradient_cases,
    slips(
        "ids, grad_output, vocab_size", """
            rows, gradients = ids.flatten(), grad_output.flatten(0, -2)
            grad = grad_output.new_zeros(vocab_size, grad_output.shape[-1])
            for row, g in zip(rows, gradients, strict=True):
                grad[row] += g
            return grad
        """,
        ("last wins", "+= g", "= g",
         "A row used twice kept only its last gradient; contributions of all occurrences are added."),
        ("first axis alone", "ids.flatten(), grad_output.flatten(0, -2)", "ids, grad_output",
         "Right for one sentence. "
         "In a batch ids[i] is a whole sentence, and a token that it has twice counts once: flatten first."),
        ("with the factor", "return grad", "return grad * grad.shape[-1] ** 0.5",
         "This is the gradient of the lookup alone, X = OE, without the factor √d_model."),
        ("mean", "return grad", "return grad / rows.bincount(minlength=vocab_size).clamp(min=1)[:, None]",
         "You averaged over a row's occurrences; gradients of several uses add up."),
        ("used rows", "return grad", "return grad[ids.unique()]",
         "You returned the used rows only; the others belong to the gradient too, as zeros."),
    ),
)  # fmt: skip


# 05.6 Nearest neighbours ---------------------------------------------------------------------------------------------


def nearest_neighbours(table, token_id, k):
    """Return the ids of the k rows most similar to row token_id by cosine, the most similar first, without itself.

    table: [vocab_size, d_model], no row is zero. Returns a list of k ids.
    """
    unit = table / table.norm(dim=1, keepdim=True)
    order = torch.argsort(unit @ unit[token_id], descending=True).tolist()
    return [i for i in order if i != token_id][:k]


def _neighbour_cases():
    long = torch.tensor([[1.0, 0.2], [0.9, 0.1], [5.0, 5.0], [-1.0, 0.0], [2.0, 0.3], [0.1, 1.0], [-3.0, -2.0]])
    tables = normal(65, (11, 5), (7, 7), (13, 2))
    line = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 3.0]])
    return [
        Case("a long row that points elsewhere", (long, 0, 2)),
        Case("the same, another row", (long, 5, 3)),
        Case("11 rows of 5", (tables[0], 3, 5)),
        Case("7 rows of 7", (tables[1], 6, 1)),
        Case("all others", (tables[2], 0, 12)),
        Case("a row along the same line, after it", (line, 0, 2)),
        Case("a row along the same line, before it", (line, 1, 2)),
    ]


def _has_itself(call, case, got):
    """Is the token among its own neighbours?"""
    _, token_id, _ = case.args
    return "Your list contains the token itself; leave it out." if token_id in list(got) else None


EXERCISE_6 = Exercise(
    "05.6", "Nearest neighbours", 10, 2, nearest_neighbours, _neighbour_cases,
    slips(
        "table, token_id, k", """
            unit = table / table.norm(dim=1, keepdim=True)
            order = (unit @ unit[token_id]).argsort(descending=True).tolist()
            return [i for i in order if i != token_id][:k]
        """,
        ("dot product", " / table.norm(dim=1, keepdim=True)", "",
         "You ranked by dot product, which favours long rows; divide by the lengths."),
        ("distance", "(unit @ unit[token_id]).argsort(descending=True)",
         "(table - table[token_id]).norm(dim=1).argsort()",
         "You ranked by distance, in which lengths count; the cosine compares directions only."),
        ("cosines", "return [i for", "return [float(unit[i] @ unit[token_id]) for",
         "These are the cosines; return the ids of their rows."),
        ("row removed", "return [i for", "return [i - (i > token_id) for",
         "You removed the token's row from the table, so that the ids after it are one too low."),
        ("farthest", "descending=True", "", "These are the least similar rows; sort by descending cosine."),
        ("columns", "dim=1", "dim=0", "You normalised the columns of the table; a token is a row: dim=1."),
        ("too few", "order if i != token_id][:k]", "order[:k] if i != token_id]",
         "You cut to k before leaving out the token itself: one neighbour is missing."),
        ("first place dropped", "[i for i in order if i != token_id][:k]",
         "(unit @ unit[token_id]).topk(k + 1).indices[1:].tolist()",
         "You dropped the first place; where another row has the same cosine that need not be the token itself."),
    ),
    probes=(_has_itself,),
)  # fmt: skip


# 05.7 Can you beat it? -----------------------------------------------------------------------------------------------


def fewest_tokens(word, vocabulary):
    """Return into how few tokens of the vocabulary the word can be cut.

    word: a string; vocabulary: a list of strings, among them every character of the word. Returns a number.
    """
    tokens, reached, cuts = set(vocabulary), {0}, 0
    while len(word) not in reached:
        reached = {end for start in reached for end in range(start + 1, len(word) + 1) if word[start:end] in tokens}
        cuts += 1
    return cuts


def _cut_cases():
    letters = list("abcdef")
    return [
        Case("one token", ("show", ["s", "h", "o", "w", "sh", "show"])),
        Case("characters alone", ("money", list("money"))),
        Case("the longest beginning is a trap", ("abcde", [*letters, "ab", "abc", "cde"])),
        Case("the longest end is a trap", ("abcde", [*letters, "abc", "cde", "de"])),
        Case("the longest token is a trap", ("abcdef", [*letters, "abc", "def", "bcde"])),
        Case("a single character", ("a", ["a", "b"])),
        Case("three tokens", ("▁banana", ["▁", "a", "b", "n", "▁b", "an", "ana", "na", "▁ba"])),
        Case("tokens that do not fit", ("seal", ["s", "e", "a", "l", "sea", "eal", "see", "ale"])),
        Case("seventeen letters", ("abcabdabcabdabcab", [*"abcd", "ab", "ca", "bd", "abc", "dab", "cab", "bcab"])),
    ]


def _cut_from(word, vocabulary, sizes):
    """Cut by always taking the longest token at one end: `sizes` is 1 for the left end, -1 for the right."""
    count = 0
    while word:
        ends = range(len(word), 0, -1)
        size = next(n for n in ends if (word[:n] if sizes > 0 else word[-n:]) in vocabulary)
        word = word[size:] if sizes > 0 else word[:-size]
        count += 1
    return count


def _longest_first(word, vocabulary):
    if not word:
        return 0
    best = max((token for token in vocabulary if token in word), key=len)
    left, right = word.split(best, 1)
    return _longest_first(left, vocabulary) + 1 + _longest_first(right, vocabulary)


EXERCISE_7 = Exercise(
    "05.7", "Can you beat it?", 10, 3, fewest_tokens, _cut_cases,
    slips(
        "word, vocabulary", """
            best = [0]
            for end in range(1, len(word) + 1):
                known = [start for start in range(end) if word[start:end] in vocabulary]
                best.append(min(best[start] for start in known) + 1)
            return best[-1]
        """,
        ("all beginnings", "return best[-1]", "return best",
         "You returned the fewest tokens of every beginning of the word; the last of them is the answer."),
        ("cuts", "return best[-1]", "return best[-1] - 1",
         "One too few, as if you had counted the places where the word is cut; count the tokens."),
        ("most", "min(best", "max(best", "These are the most tokens, one for each character; take the fewest."),
        ("short tokens", "range(end)", "range(max(0, end - 2), end)",
         "You joined two characters at most; a token may be longer."),
    )
    + (
        Mistake("longest from the left", lambda word, vocabulary: _cut_from(word, vocabulary, 1),
                "You took the longest token from the left; a shorter one may leave a rest that takes fewer."),
        Mistake("longest from the right", lambda word, vocabulary: _cut_from(word, vocabulary, -1),
                "You took the longest token from the right; a shorter one may leave a rest that takes fewer."),
        Mistake("longest anywhere", _longest_first,
                "You took the longest token first, wherever it is; what is left on both sides may then take more."),
    ),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6, EXERCISE_7)
