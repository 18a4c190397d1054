"""Exercises of notebook 05, continued: merging a pair, and encoding a word by merges."""

from __future__ import annotations

from .model import Case, Exercise, Mistake


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


def bpe_encode(word, merges):
    """Return the tokens of a word: its characters, joined by the merges in the order in which they were learned.

    word: a string; merges: a list of pairs (left, right), the first learned first.
    """
    tokens = list(word)
    for pair in merges:
        tokens = merge_pair(tokens, pair)
    return tokens


def _merge_cases():
    return [
        Case("one occurrence", (["t", "h", "e"], ("t", "h"))),
        Case("two occurrences", (["a", "n", "a", "n", "a", "s"], ("a", "n"))),
        Case("three of a kind", (["m", "a", "a", "a"], ("a", "a"))),
        Case("the other order", (["h", "t", "h"], ("t", "h"))),
        Case("nothing to merge", (["m", "o", "n", "e", "y"], ("a", "b"))),
        Case("long tokens", (["s", "how", "s", "h", "ow"], ("s", "how"))),
        Case("seven of a kind", (["o"] * 7, ("o", "o"))),
    ]


def _encode_cases():
    learned = [("o", "n"), ("e", "y"), ("m", "on"), ("t", "h"), ("th", "e"), ("mon", "ey"), ("s", "how")]
    return [
        Case("a word that was learned", ("money", learned)),
        Case("a new word", ("themoon", learned)),
        Case("twice the same part", ("onmonon", learned)),
        Case("the order decides", ("abc", [("b", "c"), ("a", "b"), ("ab", "c")])),
        Case("the second merge needs the first", ("lower", [("l", "o"), ("lo", "w"), ("e", "r"), ("low", "er")])),
        Case("the second merge would also fit", ("abc", [("b", "c"), ("a", "bc"), ("a", "b")])),
        Case("one letter", ("s", learned)),
        Case("no merges", ("seal", [])),
    ]


def _merge(limit=None, put=lambda left, right: [left + right], step=2, either=False):
    """Left-to-right merging; ``put`` says what takes the place of a pair, ``step`` how far to go on after one."""

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


def _longest_match(word, merges):
    known, tokens = {left + right for left, right in merges}, []
    while word:
        size = next((n for n in range(len(word), 1, -1) if word[:n] in known), 1)
        tokens.append(word[:size])
        word = word[size:]
    return tokens


EXERCISES = (
    Exercise(
        "05.3",
        "Merge a pair",
        10,
        2,
        merge_pair,
        _merge_cases,
        (
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
        ),
    ),
    Exercise(
        "05.4",
        "Encode a word",
        10,
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
    ),
)
