"""The exercises of notebook 05: tokens and embeddings."""

from __future__ import annotations

import itertools

import torch

from .model import Case, Exercise, Mistake, integers, normal

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
        Case("backwards", ([["b", "a"], ["a", "b"], ["b", "a", "c"]], [3, 5, 3])),
        Case("pairs that begin at odd places", ([["x", "b", "c"], ["b", "d"]], [2, 3])),
        Case("three of a kind", ([["a", "a", "a"], ["b", "c"]], [2, 3])),
        Case("a tie that the right token turns", ([["a", "z"], ["b", "c"], ["a", "y"]], [2, 2, 2])),
        Case("a tie of pairs that read alike", ([["ab", "c"], ["a", "bd"]], [5, 5])),
        Case("neighbours only", ([["a", "x", "b"], ["x", "b"], ["a", "y", "b"]], [2, 1, 2])),
        Case("a pair at an odd place", ([["x", "b", "c"], ["b", "c"], ["b", "d"]], [2, 2, 3])),
    ]


def _pairs(key=lambda n, pair, place: (-n, pair), types=False, once=False, across=False, step=1):
    """Return the pair with the least key, each slip a switch."""

    def function(words, counts):
        found = {}
        if across:
            words, counts = [[token for word in words for token in word]], [1]
        for word, times in zip(words, counts, strict=True):
            pairs = list(zip(word[:-1], word[1:], strict=True))[::step]
            for pair in dict.fromkeys(pairs) if once else pairs:
                found[pair] = found.get(pair, 0) + (1 if types else times)
        place = {pair: i for i, pair in enumerate(found)}
        return min(found, key=lambda pair: key(found[pair], pair, place[pair]))

    return function


def _tally(words, counts):
    found = {}
    for word, count in zip(words, counts, strict=True):
        for pair in zip(word[:-1], word[1:], strict=True):
            found[pair] = found.get(pair, 0) + count
    return found


def _unordered(words, counts):
    both = {}
    for (left, right), count in _tally(words, counts).items():
        pair = (min(left, right), max(left, right))
        both[pair] = both.get(pair, 0) + count
    return both


def _chosen(pairs_of, add=lambda old, count: old + count):
    """Return the most frequent of the pairs that `pairs_of(word)` gives."""

    def function(words, counts):
        found = {}
        for word, count in zip(words, counts, strict=True):
            for pair in pairs_of(word):
                found[pair] = add(found.get(pair, 0), count)
        return min(found, key=lambda pair: (-found[pair], pair))

    return function


def _without_overlap(words, counts):
    found = {}
    for word, count in zip(words, counts, strict=True):
        before = None
        for pair in zip(word[:-1], word[1:], strict=True):
            before = pair if pair != before else None
            found[pair] = found.get(pair, 0) + (count if before else 0)
    return min(found, key=lambda pair: (-found[pair], pair))


EXERCISE_1 = Exercise(
    "05.1",
    "The most frequent pair",
    8,
    1,
    most_frequent_pair,
    _pair_cases,
    (
        Mistake("types", _pairs(types=True), "You counted each word once; a pair counts as often as its word occurs."),
        Mistake(
            "once a word",
            _pairs(once=True),
            "You counted a pair once per word; in a word like p-a-p-a the pair p, a occurs twice.",
        ),
        Mistake("least", _pairs(key=lambda n, pair, place: (n, pair)), "That is the rarest pair."),
        Mistake(
            "last of a tie",
            lambda words, counts: max(_tally(words, counts).items(), key=lambda item: (item[1], item[0]))[0],
            "Right but for ties: that is the alphabetically last of the most frequent pairs, as max gives it.",
        ),
        Mistake(
            "first seen",
            _pairs(key=lambda n, pair, place: (-n, place)),
            "Right but for ties: you returned the first one seen; alphabetical order decides.",
        ),
        Mistake(
            "across words",
            _pairs(across=True),
            "You joined all words into one list; a pair never reaches from one word into the next.",
        ),
        Mistake(
            "unordered",
            lambda words, counts: min((both := _unordered(words, counts)), key=lambda pair: (-both[pair], pair)),
            "You counted (a, b) and (b, a) together; the order of the two tokens matters.",
        ),
        Mistake(
            "joined",
            lambda words, counts: "".join(most_frequent_pair(words, counts)),
            "You returned the joined token; return the two tokens as a pair.",
        ),
        Mistake(
            "not neighbours",
            _chosen(lambda word: list(itertools.combinations(word, 2))),
            "You counted tokens that do not stand side by side; a pair is a token and the one right after it.",
        ),
        Mistake(
            "wraps round",
            _chosen(lambda word: [(word[i - 1], word[i]) for i in range(len(word))]),
            "At i = 0, word[i - 1] is the word's last token: start at 1.",
        ),
        Mistake(
            "last count",
            _chosen(lambda word: itertools.pairwise(word), add=lambda old, count: count),
            "You kept the count of the last word that has the pair; add up the counts of all.",
        ),
        Mistake(
            "letters",
            _chosen(lambda word: itertools.pairwise("".join(word))),
            "You joined the tokens of a word and paired its letters; pairs are made of tokens.",
        ),
        Mistake(
            "backwards",
            lambda words, counts: most_frequent_pair(words, counts)[::-1],
            "You returned (right, left); the order is (left, right).",
        ),
        Mistake(
            "with its count",
            lambda words, counts: ((pair := most_frequent_pair(words, counts)), _tally(words, counts)[pair]),
            "You returned the pair with its count, as most_common does; return the pair alone.",
        ),
        Mistake(
            "every other",
            _pairs(step=2),
            "You stepped over two tokens at a time; a pair may begin at every token but the last.",
        ),
        Mistake(
            "without overlap",
            _without_overlap,
            "In a-a-a the pair a, a occurs twice: count at every place, also where pairs overlap.",
        ),
        Mistake(
            "right token first",
            _pairs(key=lambda n, pair, place: (-n, pair[1], pair[0])),
            "Right but for ties: the left tokens are compared first, then the right ones.",
        ),
        Mistake(
            "left token alone",
            _pairs(key=lambda n, pair, place: (-n, pair[0], place)),
            "Right but for ties: of pairs with the same left token the right one decides.",
        ),
        Mistake(
            "ties of joined tokens",
            _pairs(key=lambda n, pair, place: (-n, pair[0] + pair[1])),
            "Right but for ties: compare the pairs, not the joined strings.",
        ),
    ),
    returns=("left", "right"),
)


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
        Case("the pair turned round", (["h", "t"], ("t", "h"))),
    ]


def _merge(limit=None, put=lambda left, right: [left + right], step=2, either=False):
    """Merge from left to right; ``put`` says what replaces a pair, ``step`` how far to go on after one."""

    def function(tokens, pair):
        merged, i, done = [], 0, 0
        while i < len(tokens):
            here = tuple(tokens[i : i + 2])
            fits = here == tuple(pair) or (either and here == tuple(pair)[::-1])
            if fits and (limit is None or done < limit):
                merged += put(*here)
                i, done = i + step, done + 1
            else:
                merged.append(tokens[i])
                i += 1
        return merged

    return function


def _pairwise(tokens, pair):
    neighbours = zip(tokens[:-1], tokens[1:], strict=True)
    return [left + right if (left, right) == tuple(pair) else left for left, right in neighbours]


def _from_the_right(tokens, pair):
    turned = _merge(put=lambda left, right: [right + left])(tokens[::-1], pair[::-1])
    return turned[::-1]


def _times(tokens, pair):
    """Return how often the pair is merged."""
    return len(tokens) - len(merge_pair(tokens, pair))


def _ends_merged(tokens, pair):
    """Return whether the last token is part of a merge."""
    return len(merge_pair([*tokens, "end"], pair)) - len(merge_pair(list(tokens)[:-1], pair)) < 2


def _by_joined(tokens, pair):
    merged, i = [], 0
    while i < len(tokens):
        size = 2 if "".join(tokens[i : i + 2]) == "".join(pair) and i + 1 < len(tokens) else 1
        merged.append("".join(tokens[i : i + size]))
        i += size
    return merged


EXERCISE_2 = Exercise(
    "05.2",
    "Merge a pair",
    8,
    2,
    merge_pair,
    _merge_cases,
    (
        Mistake(
            "nothing merged",
            lambda tokens, pair: list(tokens),
            "Nothing was merged. A list never equals a tuple: write tuple(…) == tuple(pair).",
        ),
        Mistake(
            "last lost",
            lambda tokens, pair: merge_pair(tokens, pair)[: None if _ends_merged(tokens, pair) else -1],
            "The last token got lost where it was not merged: the loop ends one token too early.",
        ),
        Mistake(
            "letter by letter",
            lambda tokens, pair: [letter for token in merge_pair(tokens, pair) for letter in token],
            "Adding a string to a list with += adds its letters one by one: use append.",
        ),
        Mistake(
            "merged only",
            lambda tokens, pair: [left + right for left, right in [pair] for _ in range(_times(tokens, pair))],
            "Only the merged tokens are there; all others stay as they are.",
        ),
        Mistake("first only", _merge(limit=1), "Only the first occurrence was joined; join them all."),
        Mistake(
            "overlap",
            _merge(step=1),
            "After a merge go on two tokens further; you used the right token of the pair again.",
        ),
        Mistake(
            "from the right",
            _from_the_right,
            "You merged from right to left; of three equal tokens the first two are joined.",
        ),
        Mistake(
            "for loop",
            _pairwise,
            "You walk over the pairs of neighbours: after a merge the right token must be skipped, and the "
            "last token must not get lost. A while loop can go on by 2 or by 1.",
        ),
        Mistake(
            "either order",
            _merge(either=True),
            "You joined (right, left) too; the order of the two tokens matters.",
        ),
        Mistake(
            "deleted",
            _merge(put=lambda left, right: []),
            "The pair has vanished; the joined token left + right takes its place.",
        ),
        Mistake(
            "left only",
            _merge(put=lambda left, right: [left]),
            "You kept the left token of the pair and lost the right one; put in left + right.",
        ),
        Mistake(
            "as tuple",
            _merge(put=lambda left, right: [(left, right)]),
            "You put the pair in as a tuple; join its two strings: left + right.",
        ),
        Mistake(
            "as one text",
            lambda tokens, pair: "|".join(tokens).replace("|".join(pair), "".join(pair)).split("|"),
            "You searched in the joined text, where the pair also fits the end and the beginning of longer tokens.",
        ),
        Mistake(
            "joined strings",
            _by_joined,
            "You compared the joined strings, and another cut of the same letters fits too: compare both tokens.",
        ),
    ),
)


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
        Case("twice the same part", ("onmonon", learned)),
        Case("the order decides", ("abc", [("b", "c"), ("a", "b"), ("ab", "c")])),
        Case("the second merge needs the first", ("lower", [("l", "o"), ("lo", "w"), ("e", "r"), ("low", "er")])),
        Case("the second merge would also fit", ("abc", [("b", "c"), ("a", "bc"), ("a", "b")])),
        Case("a token ends as the next pair begins", ("xab", [("x", "a"), ("a", "b")])),
        Case("two merges overlap", ("abc", [("b", "c"), ("a", "b")])),
        Case("another cut of the same letters", ("abc", [("a", "b"), ("x", "y"), ("a", "bc")])),
        Case("a merge that reads like another", ("xabc", [("b", "c"), ("ab", "c"), ("x", "a")])),
        Case("one letter", ("s", learned)),
        Case("no merges", ("seal", [])),
        Case("three of a kind", ("baaa", [("a", "a"), ("b", "aa")])),
        Case("a word with its mark", ("▁the", [("h", "e"), ("▁", "t"), ("▁t", "he")])),
        Case("the mark stays alone", ("▁river", [("r", "i"), ("e", "r")])),
    ]


def _encode(merge=None, order=list, stop=False):
    def function(word, merges):
        tokens = list(word)
        for pair in order(merges):
            again = (merge or merge_pair)(tokens, pair)
            if stop and again == tokens:
                break
            tokens = again
        return tokens

    return function


def _leftmost(word, merges):
    tokens = list(word)
    while pair := next((p for p in zip(tokens[:-1], tokens[1:], strict=True) if p in merges), None):
        tokens = merge_pair(tokens, pair)
    return tokens


def _last_learned(word, merges):
    rank, tokens = {pair: i for i, pair in enumerate(merges)}, list(word)
    while known := [pair for pair in itertools.pairwise(tokens) if pair in rank]:
        tokens = merge_pair(tokens, max(known, key=rank.__getitem__))
    return tokens


def _by_joined_rank(word, merges):
    rank, tokens = {}, list(word)
    for i, pair in enumerate(merges):
        rank.setdefault("".join(pair), i)
    while known := [pair for pair in itertools.pairwise(tokens) if "".join(pair) in rank]:
        tokens = merge_pair(tokens, min(known, key=lambda pair: rank["".join(pair)]))
    return tokens


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
    "05.3",
    "Encode a word",
    8,
    2,
    bpe_encode,
    _encode_cases,
    (
        Mistake("characters", lambda word, merges: list(word), "These are the characters: no merge was applied."),
        Mistake(
            "reversed",
            _encode(order=lambda merges: merges[::-1]),
            "You applied the last learned merge first; the first learned comes first.",
        ),
        Mistake(
            "last learned",
            _last_learned,
            "Of the pairs that are merges you joined the one learned last; the first learned comes first.",
        ),
        Mistake(
            "longest match",
            _longest_match,
            "You took the longest known token from the left; BPE replays its merges in order.",
        ),
        Mistake(
            "leftmost",
            _leftmost,
            "You joined the leftmost pair that is a merge; of all that fit, the one learned first goes first.",
        ),
        Mistake(
            "joined ranks",
            _by_joined_rank,
            "You looked up joined strings; a merge is a pair of tokens, and another pair can read the same.",
        ),
        Mistake(
            "with a mark",
            lambda word, merges: bpe_encode("▁" + word, merges),
            "You put a ▁ in front; here `word` is taken as it is, its mark included.",
        ),
        Mistake(
            "mark dropped",
            lambda word, merges: [rest for token in bpe_encode(word, merges) if (rest := token.replace("▁", ""))],
            "You dropped the mark ▁; it is the first character of the word, and part of its tokens.",
        ),
        Mistake(
            "mark off first",
            lambda word, merges: bpe_encode(word.removeprefix("▁"), merges),
            "You took off the mark ▁ before the merges; some of them join it.",
        ),
        Mistake(
            "one text",
            _replacing,
            "You replaced in one text, where the pair also fits the end and the beginning of longer tokens.",
        ),
        Mistake(
            "first merge only",
            _encode(order=lambda merges: merges[:1]),
            "Only the first merge was applied; go through all of them.",
        ),
        Mistake(
            "stops",
            _encode(stop=True),
            "You stopped at the first merge that finds nothing; later ones may still apply.",
        ),
        Mistake(
            "one place",
            _encode(merge=_merge(limit=1)),
            "Each merge was applied at one place only; it joins all its occurrences.",
        ),
        Mistake(
            "sorted",
            _encode(order=sorted),
            "You sorted the merges; their order is the order of learning, and it decides.",
        ),
    ),
)


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


def _picked(factor, rows=lambda ids, table: table[ids]):
    return lambda ids, table: rows(ids, table) * factor(ids, table)


def _root(ids, table):
    return table.shape[1] ** 0.5


def _own_rows(call, case, got):
    """Tell whether the result is the same for another table."""
    ids, table = case.args
    if torch.equal(got, call(ids, table + 1)):
        return "The result does not depend on the table: a new nn.Embedding has random rows of its own."
    return None


def _without_row_0(ids, table):
    return torch.nn.functional.embedding(ids, torch.cat((torch.zeros_like(table[:1]), table[1:])))


EXERCISE_4 = Exercise(
    "05.4",
    "The embedding layer",
    6,
    2,
    embed,
    _embed_cases,
    (
        Mistake("no factor", lambda ids, table: table[ids], "These are the rows of the table; multiply by √d_model."),
        Mistake(
            "d_model",
            _picked(lambda ids, table: table.shape[1]),
            "You multiplied by d_model; multiply by its root.",
        ),
        Mistake(
            "divided",
            _picked(lambda ids, table: table.shape[1] ** -0.5),
            "You divided by √d_model, as one does with scores; a row of the table is multiplied by it.",
        ),
        Mistake(
            "half of d_model",
            _picked(lambda ids, table: table.shape[1] / 2),
            "You multiplied by d_model / 2: in Python d_model ** 1 / 2 is (d_model ** 1) / 2. Write d_model ** 0.5.",
        ),
        Mistake(
            "vocab_size",
            _picked(lambda ids, table: len(table) ** 0.5),
            "You took the root of the number of rows, vocab_size; d_model is the length of a row, table.shape[-1].",
        ),
        Mistake(
            "seq_len",
            _picked(lambda ids, table: ids.shape[-1] ** 0.5),
            "You took the root of the number of tokens; d_model is the length of a row, table.shape[-1].",
        ),
        Mistake(
            "axis 1 of the result",
            _picked(lambda ids, table: table[ids].shape[1] ** 0.5),
            "Right for one sentence. In a batch, axis 1 of the result is the sentence; d_model is the last axis.",
        ),
        Mistake(
            "nested list",
            lambda ids, table: table[ids.tolist()] * _root(ids, table),
            "Right for one sentence. A nested list indexes several axes at once: index with the tensor ids itself.",
        ),
        Mistake(
            "single precision",
            lambda ids, table: table[ids].float() * _root(ids, table),
            "The table in double precision came out in single precision: keep its dtype, as in x.to(table.dtype).",
        ),
        Mistake(
            "all tokens",
            _picked(lambda ids, table: ids.numel() ** 0.5),
            "You took the root of the number of all tokens; d_model is the length of a row, table.shape[-1].",
        ),
        Mistake(
            "first axis of the ids",
            _picked(lambda ids, table: len(ids) ** 0.5),
            "You took the root of the first axis of the ids; d_model is the length of a row, table.shape[-1].",
        ),
        Mistake(
            "added",
            lambda ids, table: table[ids] + _root(ids, table),
            "You added √d_model to every entry; multiply by it.",
        ),
        Mistake(
            "whole root of d_model",
            _picked(lambda ids, table: int(table.shape[1] ** 0.5)),
            "√d_model need not be an integer: do not round it.",
        ),
        Mistake(
            "lengths",
            lambda ids, table: torch.nn.functional.normalize(table, dim=1)[ids] * _root(ids, table),
            "You gave every row the length √d_model; keep the rows as they are, and only multiply.",
        ),
        Mistake(
            "columns",
            lambda ids, table: table.T[ids] * _root(ids, table),
            "You picked columns of the table; a token is a row.",
        ),
        Mistake(
            "counted from 1",
            _picked(_root, lambda ids, table: table[ids - 1]),
            "You took the row before: ids count from 0, so id 0 is the first row.",
        ),
        Mistake(
            "row 0 hidden",
            _picked(_root, _without_row_0),
            "Id 0 got zeros; it is a token like the others here, with a row and a gradient.",
        ),
        Mistake(
            "no gradient for row 0",
            lambda ids, table: torch.nn.functional.embedding(ids, table, padding_idx=0) * _root(ids, table),
            "The values are right, but row 0 gets no gradient: leave padding_idx out.",
        ),
        Mistake(
            "one list",
            lambda ids, table: table[ids.flatten()] * _root(ids, table),
            "All tokens of the batch are in one long list; keep the axes of the ids and add d_model as the last one.",
        ),
        Mistake(
            "summed",
            lambda ids, table: table[ids].sum(dim=-2) * _root(ids, table),
            "You added the tokens up; every token keeps its own vector.",
        ),
        Mistake(
            "first sentence",
            lambda ids, table: table[ids.reshape(-1, ids.shape[-1])[0]] * _root(ids, table),
            "Only the first sentence of a batch was looked up; ids may have any number of axes.",
        ),
    ),
    gradients=("table",),
    probes=(_own_rows,),
    part="embed",
)


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


def _scattered(ids, grad_output, vocab_size, mean=False, reduce=True):
    rows, flat = ids.reshape(-1), grad_output.reshape(-1, grad_output.shape[-1])
    grad = torch.zeros(vocab_size, flat.shape[1], dtype=flat.dtype)
    for row, g in zip(rows.tolist(), flat, strict=True):
        grad[row] = grad[row] + g if reduce else g
    if mean:
        grad = grad / torch.bincount(rows, minlength=vocab_size).clamp(min=1)[:, None]
    return grad


def _first_axis_alone(ids, grad_output, vocab_size):
    grad = grad_output.new_zeros(vocab_size, grad_output.shape[-1])
    for i, rows in enumerate(ids):
        grad[rows] = grad[rows] + grad_output[i]
    return grad


def _sentence(which):
    def function(ids, grad_output, vocab_size):
        rows, grads = ids.reshape(-1, ids.shape[-1]), grad_output.reshape(-1, *grad_output.shape[-2:])
        return _scattered(rows[which], grads[which], vocab_size)

    return function


def _first_wins(ids, grad_output, vocab_size):
    return _scattered(
        ids.reshape(-1).flip(0), grad_output.reshape(-1, grad_output.shape[-1]).flip(0), vocab_size, reduce=False
    )


EXERCISE_5 = Exercise(
    "05.5",
    "The gradient of a lookup",
    10,
    3,
    embedding_gradient,
    _gradient_cases,
    (
        Mistake(
            "last wins",
            lambda i, g, v: _scattered(i, g, v, reduce=False),
            "A row used twice kept only its last gradient; contributions of all occurrences are added.",
        ),
        Mistake(
            "first wins",
            _first_wins,
            "A row used twice kept only its first gradient; contributions of all occurrences are added.",
        ),
        Mistake(
            "first axis alone",
            _first_axis_alone,
            "Right for one sentence. In a batch ids[i] is a whole sentence, and a token that it has twice counts once: "
            "flatten first.",
        ),
        Mistake(
            "with the factor",
            lambda i, g, v: _scattered(i, g, v) * g.shape[-1] ** 0.5,
            "This is the gradient of the lookup alone, X = OE, without the factor √d_model.",
        ),
        Mistake(
            "row 0 without gradient",
            lambda i, g, v: _scattered(i, g, v) * (torch.arange(v) > 0)[:, None],
            "Row 0 got no gradient; id 0 is a token like the others here.",
        ),
        Mistake("first sentence alone", _sentence(0), "Only the first sentence of a batch was counted; flatten first."),
        Mistake("last sentence alone", _sentence(-1), "Only the last sentence of a batch was counted; flatten first."),
        Mistake(
            "mean of the batch",
            lambda i, g, v: _scattered(i, g, v) / (i.numel() / i.shape[-1]),
            "You divided by the number of sentences; gradients of a batch add up.",
        ),
        Mistake(
            "mean",
            lambda i, g, v: _scattered(i, g, v, mean=True),
            "You averaged over a row's occurrences; gradients of several uses add up.",
        ),
        Mistake(
            "transposed",
            lambda i, g, v: _scattered(i, g, v).T,
            "The result is transposed: the gradient has the shape of the table, [vocab_size, d_model].",
        ),
        Mistake(
            "used rows",
            lambda i, g, v: _scattered(i, g, v)[i.unique()],
            "You returned the used rows only; the others belong to the gradient too, as zeros.",
        ),
        Mistake(
            "looked up",
            lambda i, g, v: _scattered(i, g, v)[i],
            "You looked rows up again: the gradient has one row per word of the vocabulary, not per token.",
        ),
        Mistake(
            "counts",
            lambda i, g, v: _scattered(i, torch.ones_like(g), v),
            "You counted the uses; add up the rows of grad_output.",
        ),
        Mistake(
            "shared",
            lambda i, g, v: (_scattered(i, g, v) != 0) * g.reshape(-1, g.shape[-1]).sum(dim=0),
            "Every used row got the sum over all tokens; it gets only that of its own occurrences.",
        ),
    ),
)


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


def _ranked(score, itself=False, largest=True):
    def function(table, token_id, k):
        order = torch.argsort(score(table, token_id), descending=largest).tolist()
        return [i for i in order if itself or i != token_id][:k]

    return function


def _cosine(table, i):
    return torch.nn.functional.normalize(table, dim=1) @ torch.nn.functional.normalize(table[i], dim=0)


def _has_itself(call, case, got):
    """Is the token among its own neighbours?"""
    _, token_id, _ = case.args
    return "Your list contains the token itself; leave it out." if token_id in list(got) else None


def _by_column(table, i):
    unit = torch.nn.functional.normalize(table, dim=0)
    return unit @ unit[i]


EXERCISE_6 = Exercise(
    "05.6",
    "Nearest neighbours",
    10,
    2,
    nearest_neighbours,
    _neighbour_cases,
    (
        Mistake(
            "dot product",
            _ranked(lambda table, i: table @ table[i]),
            "You ranked by dot product, which favours long rows; divide by the lengths.",
        ),
        Mistake(
            "distance",
            _ranked(lambda table, i: (table - table[i]).norm(dim=1), largest=False),
            "You ranked by distance, in which lengths count; the cosine compares directions only.",
        ),
        Mistake(
            "cosines",
            lambda table, i, k: [_cosine(table, i)[j].item() for j in nearest_neighbours(table, i, k)],
            "These are the cosines; return the ids of their rows.",
        ),
        Mistake(
            "row removed",
            lambda table, i, k: [j - (j > i) for j in nearest_neighbours(table, i, k)],
            "You removed the token's row from the table, so that the ids after it are one too low.",
        ),
        Mistake(
            "nearest last",
            lambda table, i, k: nearest_neighbours(table, i, k)[::-1],
            "These are the right rows in reversed order; the nearest comes first.",
        ),
        Mistake(
            "farthest", _ranked(_cosine, largest=False), "These are the least similar rows; sort by falling cosine."
        ),
        Mistake(
            "absolute",
            _ranked(lambda table, i: _cosine(table, i).abs()),
            "You ranked by the size of the cosine; a row that points the opposite way is not similar.",
        ),
        Mistake("columns", _ranked(_by_column), "You normalised the columns of the table; a token is a row: dim=1."),
        Mistake(
            "too few",
            lambda table, i, k: nearest_neighbours(table, i, k)[: k - 1] or [i],
            "You cut to k before leaving out the token itself: one neighbour is missing.",
        ),
        Mistake(
            "first place dropped",
            lambda table, i, k: torch.topk(_cosine(table, i), k + 1).indices[1:].tolist(),
            "You dropped the first place; where another row has the same cosine that need not be the token itself.",
        ),
        Mistake(
            "all that are alike dropped",
            lambda table, i, k: [j for j in _ranked(_cosine)(table, i, len(table)) if _cosine(table, i)[j] < 0.99999][
                :k
            ],
            "You dropped every row whose cosine is 1; only the token itself is left out.",
        ),
    ),
    probes=(_has_itself,),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
