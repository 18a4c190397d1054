"""Exercises of notebook 05: a vocabulary of words, and the pairs that byte-pair encoding counts."""

from __future__ import annotations

from .model import Case, Exercise, Mistake


def build_vocabulary(texts, specials):
    """Return the vocabulary as a list of words; the place of a word in the list is its id.

    texts: a list of strings, words separated by spaces; specials: a list of special tokens.
    The special tokens come first, then each word once: the most frequent first, equally frequent ones
    in alphabetical order.
    """
    counts = {}
    for text in texts:
        for word in text.split():
            counts[word] = counts.get(word, 0) + 1
    return [*specials, *sorted(counts, key=lambda word: (-counts[word], word))]


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


def _vocabulary_cases():
    marks = ["<pad>", "<bos>", "<eos>", "<unk>"]
    return [
        Case("two words, one of them twice", (["show me", "show"], ["<unk>"])),
        Case("equally frequent words", (["the money the life", "money life the"], ["<pad>", "<unk>"])),
        Case("rare before frequent", (["z y y x x x", "w"], marks)),
        Case("upper and lower case", (["The bank the Bank", "the bank"], marks)),
        Case("a word inside another", (["he the the", "cat cat cat he"], ["<unk>"])),
        Case("no special tokens", (["not on your life", "on your bank", "your seal"], [])),
    ]


def _pair_cases():
    return [
        Case("one word", ([["a", "b", "a", "b", "c"]], [1])),
        Case("a frequent word", ([["l", "o", "w"], ["o", "w", "l"], ["n", "o", "t"]], [2, 3, 11])),
        Case("a pair twice in a word", ([["p", "a", "p", "a"], ["a", "t"], ["t", "o"]], [3, 5, 2])),
        Case("a tie", ([["t", "o"], ["i", "n"], ["i", "t"]], [7, 7, 7])),
        Case("tokens of several letters", ([["s", "how"], ["s", "how", "s"], ["m", "one", "y"]], [5, 3, 7])),
        Case("words of one token", ([["a"], ["b"], ["a"], ["b"], ["c", "d"]], [13, 13, 13, 13, 2])),
        Case("backwards", ([["b", "a"], ["a", "b"], ["b", "a", "c"]], [3, 5, 3])),
    ]


def _counted(texts, cut=str.split):
    counts = {}
    for text in texts:
        for word in cut(text):
            counts[word] = counts.get(word, 0) + 1
    return counts


def _vocabulary(key, cut=str.split):
    """Special tokens first, then the words sorted by a key of (count, word, place of its first occurrence)."""

    def function(texts, specials):
        counts = _counted(texts, cut)
        place = {word: i for i, word in enumerate(counts)}
        return [*specials, *sorted(counts, key=lambda word: key(counts[word], word, place[word]))]

    return function


def _pairs(key=lambda n, pair, place: (-n, pair), types=False, once=False, across=False):
    """The pair with the least key, each slip a switch."""

    def function(words, counts):
        found = {}
        if across:
            words, counts = [[token for word in words for token in word]], [1]
        for word, times in zip(words, counts, strict=True):
            pairs = list(zip(word[:-1], word[1:], strict=True))
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


EXERCISES = (
    Exercise(
        "05.1",
        "A vocabulary of words",
        8,
        1,
        build_vocabulary,
        _vocabulary_cases,
        (
            Mistake(
                "no specials",
                lambda t, s: build_vocabulary(t, []),
                "The special tokens are missing; they come first, so that their ids never change.",
            ),
            Mistake(
                "specials last",
                lambda t, s: [*build_vocabulary(t, []), *s],
                "The special tokens stand at the end, where their ids depend on the texts; put them first.",
            ),
            Mistake(
                "repeats",
                lambda t, s: [*s, *(word for text in t for word in text.split())],
                "You listed every occurrence; each word gets one id, however often it occurs.",
            ),
            Mistake(
                "alphabet",
                _vocabulary(lambda n, word, place: word),
                "You sorted by alphabet alone; the most frequent words come first.",
            ),
            Mistake(
                "as they come",
                _vocabulary(lambda n, word, place: place),
                "You kept the order of first occurrence; the most frequent words come first.",
            ),
            Mistake(
                "rare first",
                _vocabulary(lambda n, word, place: (n, word)),
                "You put the rarest first; sort by the negative count.",
            ),
            Mistake(
                "ties as they come",
                _vocabulary(lambda n, word, place: (-n, place)),
                "Right but for ties: equally frequent words come in alphabetical order, so that the result "
                "does not depend on the order of the texts.",
            ),
            Mistake(
                "substrings",
                lambda t, s: [
                    *s,
                    *sorted(
                        {w for text in t for w in text.split()},
                        key=lambda word: (-sum(text.count(word) for text in t), word),
                    ),
                ],
                "text.count counts inside longer words too ('he' in 'the'): count the words of text.split().",
            ),
            Mistake(
                "ties backwards",
                lambda t, s: [*s, *sorted(_counted(t), reverse=True, key=lambda word: (_counted(t)[word], word))],
                "Right but for ties: reverse=True turns the alphabet round too; sort by the negative count.",
            ),
            Mistake(
                "lower case",
                lambda t, s: build_vocabulary([text.lower() for text in t], s),
                "You lower-cased the words; here 'The' and 'the' are two.",
            ),
            Mistake(
                "characters",
                _vocabulary(lambda n, word, place: (-n, word), cut=list),
                "You counted characters: iterate over text.split(), not over the text.",
            ),
        ),
    ),
    Exercise(
        "05.2",
        "The most frequent pair",
        10,
        2,
        most_frequent_pair,
        _pair_cases,
        (
            Mistake(
                "types", _pairs(types=True), "You counted each word once; a pair counts as often as its word occurs."
            ),
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
        ),
        returns=("left", "right"),
    ),
)
