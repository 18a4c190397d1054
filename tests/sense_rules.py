"""How well can one guess the sense in an English sentence whose deciding word is blanked out? (the corpus's tests)

A rule is a table: from what it looks at, one feature or two, to the answers most frequent with it where it was learned.
Among several it chooses by lot, so it is credited with its expected accuracy. An ambiguous noun's answer is its sense,
and every rule sees which noun it is; the answer to "it" is the first or the second noun of its sentence.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import NormalDist

from transformer_lib.course.lab.questions import BLANK, blanked
from transformer_lib.data.corpora import Pair
from transformer_lib.data.tokenizers import WordTokenizer

_VERBS = """
see saw seen find found describe described draw drew drawn photograph photographed mention mentioned notice noticed
recognize recognized look looked talked showed knew cross fit eat pull
"""
_PEOPLE = "man woman child girl father sister brother aunt men children"
_ASIDES = "wanted had yesterday today finally then suddenly morning evening Monday night"
VERBS, PEOPLE, ASIDES = (frozenset(text.split()) for text in (_VERBS, _PEOPLE, _ASIDES))
_SHARED = ("frame", "first verb", "position", "position of the blank", "gap", "length")
NOUN_FEATURES = (
    *_SHARED,
    "second verb",
    "first person",
    "second person",
    "aside",
    "determiner",
    "adjective",
    "predicate",
)
IT_FEATURES = (*_SHARED, "first noun", "second noun")
Rule = dict[tuple, set[str]]


def is_it(pair: Pair) -> bool:
    """Say whether "it" is the ambiguous word."""
    return pair.word == "it"


def features(pair: Pair) -> dict[str, object]:
    """Return what a rule may look at: the English sentence without the deciding word."""
    tokens = blanked(pair)
    position, blank = tokens.index(pair.word), tokens.index(BLANK)
    found: dict[str, object] = {"word": pair.word, "frame": pair.frame, "gap": blank - position}
    found |= {"position": position, "position of the blank": blank, "length": len(tokens)}
    found |= two("verb", [token for token in tokens if token in VERBS])
    if is_it(pair):
        return found | two("noun", nouns(tokens))
    adjective = tokens[position - 1] if tokens[position - 1] not in {"the", "a", "an"} else ""
    return found | {
        **two("person", [token for token in tokens if token in PEOPLE]),
        "aside": next((token for token in tokens if token in ASIDES), ""),
        "determiner": tokens[position - 1 - bool(adjective)],
        "adjective": adjective,
        "predicate": tokens[tokens.index("was") + 1] if "was" in tokens else "",
    }


def two(name: str, values: Sequence[str]) -> dict[str, object]:
    """Return the first two of `values` as features."""
    first, second = (*values, "", "")[:2]
    return {f"first {name}": first, f"second {name}": second}


def nouns(tokens: Sequence[str]) -> list[str]:
    """Return the nouns of an "it" sentence, each of which follows "the"."""
    return [after for before, after in itertools.pairwise(tokens) if before == "the"]


def answer(pair: Pair) -> str:
    """Return the sense of a noun; of "it", whether the first noun is meant or the second: German keeps their order."""
    if not is_it(pair):
        return pair.sense
    german = [token for token in WordTokenizer.tokenize(pair.tgt) if token[0].isupper()]
    return ("first", "second")[german.index(pair.sense.split()[1])]


def guess_first(_pair: Pair) -> str:
    """Take the first noun, a baseline for "it"."""
    return "first"


def guess_last(_pair: Pair) -> str:
    """Take the last noun, a baseline for "it"."""
    return "second"


def guess_nearest(pair: Pair) -> str:
    """Take the nearest noun, a baseline for "it"."""
    tokens = blanked(pair)
    distances = [abs(tokens.index(noun) - tokens.index("it")) for noun in nouns(tokens)]
    return ("first", "second")[distances.index(min(distances))]


class Sheet:
    """Sentences as columns: each feature of every sentence, what is right in it, and how many answers it has."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        rows = [features(pair) for pair in pairs]
        self.columns = {name: [row[name] for row in rows] for name in rows[0]}
        self.answers = [answer(pair) for pair in pairs]
        self.chances = [1 / (1 + len(pair.contrast)) for pair in pairs]

    @property
    def chance(self) -> float:
        """The accuracy of guessing by lot."""
        return sum(self.chances) / len(self.chances)

    @property
    def deviation(self) -> float:
        """The standard deviation of guessing by lot."""
        return sum(chance * (1 - chance) for chance in self.chances) ** 0.5 / len(self.chances)

    def count(self, names: Iterable[str]) -> Counter[tuple]:
        """Return how often the features have which values and which answer is right; the answer comes last."""
        return Counter(zip(*(self.columns[name] for name in names), self.answers, strict=True))


def learn(sheet: Sheet, names: Sequence[str]) -> Rule:
    """Return the most frequent answers for each combination of the features' values."""
    counts: dict[tuple, dict[str, int]] = defaultdict(dict)
    for (*key, right), count in sheet.count(names).items():
        counts[tuple(key)][right] = count
    rule: Rule = {}
    for key, count_of in counts.items():
        most = max(count_of.values())
        rule[key] = {right for right, count in count_of.items() if count == most}
    return rule


def accuracy(rule: Rule, sheet: Sheet, names: Sequence[str]) -> float:
    """Return the expected accuracy of a rule; for values that it has never met it knows the word alone."""
    right = 0.0
    for (*key, expected), count in sheet.count(names).items():
        guesses = rule.get(tuple(key)) or rule[tuple(key[:1])]
        right += count * (expected in guesses) / len(guesses)
    return right / len(sheet.answers)


def learn_rules(sheet: Sheet, names: Sequence[str]) -> dict[tuple[str, ...], Rule]:
    """Return every rule that looks at one or two of the features `names`, and at the ambiguous word."""
    looked_at = [*itertools.combinations(names, 1), *itertools.combinations(names, 2)]
    by_word = learn(sheet, ("word",))
    return {chosen: by_word | learn(sheet, ("word", *chosen)) for chosen in looked_at}


def score_rules(rules: dict[tuple[str, ...], Rule], sheet: Sheet) -> dict[tuple[str, ...], float]:
    """Return the accuracy of every rule."""
    return {chosen: accuracy(rule, sheet, ("word", *chosen)) for chosen, rule in rules.items()}


def beyond_chance(scores: dict[tuple[str, ...], float], sheet: Sheet) -> dict[tuple[str, ...], float]:
    """Return the rules so far from guessing by lot as, by chance, only one such list in twenty has any."""
    bound = NormalDist().inv_cdf(1 - 0.025 / len(scores)) * sheet.deviation
    return {chosen: score for chosen, score in scores.items() if abs(score - sheet.chance) > bound}


def families(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Return the sentences in groups equal but for the deciding word: twins are together."""
    found: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    for pair in pairs:
        found[blanked(pair)].append(pair)
    return list(found.values())


def halves(pairs: Iterable[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Return two random halves; twins stay together."""
    groups = families(pairs)
    random.Random(0).shuffle(groups)
    middle = len(groups) // 2
    return list(itertools.chain(*groups[:middle])), list(itertools.chain(*groups[middle:]))


def without_twins(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the sentences among whose like, equal but for the deciding word, the senses are not equally frequent."""
    alone = []
    for family in families(pairs):
        counts = Counter(pair.sense for pair in family)
        if len(counts) != 1 + len(family[0].contrast) or len(set(counts.values())) > 1:
            alone += family
    return alone
