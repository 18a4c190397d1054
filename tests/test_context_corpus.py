"""The context corpus: that only the deciding word tells the sense, its German, its splits, and how it is made."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from dataclasses import asdict

import pytest

from sense_rules import (
    IT_FEATURES,
    NOUN_FEATURES,
    Sheet,
    answer,
    beyond_chance,
    families,
    features,
    guess_first,
    guess_last,
    guess_nearest,
    halves,
    is_it,
    learn_rules,
    score_rules,
    without_twins,
)
from transformer_lib.course.lab.german_grammar import ARTICLE_WORDS, ENDING_OF, PRONOUNS, check_german
from transformer_lib.course.lab.german_nouns import NOUNS
from transformer_lib.course.lab.questions import blanked
from transformer_lib.data.context_generator import generate, lexicon, pronouns, sample
from transformer_lib.data.corpora import CONTEXT_SPLITS, DATA, Pair, load_corpus
from transformer_lib.data.tokenizers import WordTokenizer

pytestmark = pytest.mark.fast

CORPUS = load_corpus("context")
ALL = [pair for split in CONTEXT_SPLITS for pair in CORPUS[split]]
TRAIN = CORPUS["train"]
HELD = [pair for split in CONTEXT_SPLITS[1:] for pair in CORPUS[split]]
SENSES = {word: sorted({pair.sense for pair in TRAIN if pair.word == word}) for word in {pair.word for pair in TRAIN}}
WORDS = sorted(SENSES.keys() - {"it"})
KINDS = {"nouns": NOUN_FEATURES, "it": IT_FEATURES}  # what a rule may look at
LEMMAS = {form: noun.lemma for noun in NOUNS.values() for form in noun.cases}
tokenize = WordTokenizer.tokenize


# Only the deciding word tells the sense.


@functools.cache
def pairs_of(kind, split):
    return [pair for pair in CORPUS[split] if is_it(pair) == (kind == "it")]


def splits_with(kind):
    """Return the splits that have such pairs: no adjective of "it" is new to it, so it has no hard ones."""
    return [split for split in CONTEXT_SPLITS if pairs_of(kind, split)]


def suspicious_rules(rules, pairs):
    """Return the rules that are not at chance on these pairs, with their accuracies."""
    sheet = Sheet(pairs)
    return beyond_chance(score_rules(rules, sheet), sheet)


def rules_across_halves(kind, pairs):
    """Learn the rules on one half of the pairs, and return those that are not at chance on the other half."""
    learned_on, applied_to = halves(pairs)
    return suspicious_rules(learn_rules(Sheet(learned_on), KINDS[kind]), applied_to)


@pytest.mark.parametrize("split", CONTEXT_SPLITS)
def test_every_sentence_has_a_twin_for_each_other_sense(split):
    """Among sentences equal but for the deciding word every sense is equally frequent: no other feature can help."""
    assert without_twins(CORPUS[split]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_of_two_features_beats_chance_where_it_was_not_learned(kind):
    rules = learn_rules(Sheet(pairs_of(kind, "train")), KINDS[kind])
    for split in splits_with(kind)[1:]:
        assert suspicious_rules(rules, pairs_of(kind, split)) == {}, split


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_of_two_features_beats_chance_in_one_half_of_a_split(kind):
    """Not even a rule that holds in one split alone, learned on its other half."""
    for split in splits_with(kind):
        assert rules_across_halves(kind, pairs_of(kind, split)) == {}, split


@pytest.mark.parametrize("guess", [guess_first, guess_last, guess_nearest])
@pytest.mark.parametrize("split", CONTEXT_SPLITS[:-1])
def test_it_means_no_noun_by_its_place(split, guess):
    pairs = pairs_of("it", split)
    assert 2 * sum(guess(pair) == answer(pair) for pair in pairs) == len(pairs)


def first_sense(pair):
    return pair.sense == SENSES[pair.word][0]


@pytest.mark.parametrize(
    ("kind", "kept", "telling"),
    [
        ("it", lambda pair: pair.frame != "it-first" or answer(pair) == "first", ("frame",)),
        ("nouns", lambda pair: features(pair)["determiner"] == "the" or first_sense(pair), ("determiner",)),
        ("nouns", lambda pair: pair.gap < 0 or first_sense(pair), ("gap",)),
        (
            "nouns",  # only together do determiner and adjective tell the sense
            lambda pair: (
                first_sense(pair) == ((features(pair)["determiner"] == "the") == (features(pair)["adjective"] == ""))
            ),
            ("determiner", "adjective"),
        ),
    ],
    ids=["it by the order", "nouns by the determiner", "nouns by the gap", "nouns by two features"],
)
def test_a_skewed_corpus_is_found_out(kind, kept, telling):
    pairs = [pair for family in families(pairs_of(kind, "train"))[:1000] for pair in family]
    skewed = [pair for pair in pairs if kept(pair)]
    assert telling not in rules_across_halves(kind, pairs)
    assert telling in rules_across_halves(kind, skewed)
    assert without_twins(pairs) == [] and len(without_twins(skewed)) > 100


def test_the_deciding_word_occurs_once_and_decides_one_sense():
    """For a noun the cue alone decides; for "it" an adjective may be said of either noun, as the verb wants."""
    decided = defaultdict(set)
    for pair in ALL:
        assert blanked(pair).count(pair.cue) == 0, pair
        decided[pair.word, pair.cue, features(pair)["first verb"] if is_it(pair) else ""].add(answer(pair))
    assert not {known: senses for known, senses in decided.items() if len(senses) > 1}


def test_cues_stand_at_varying_distance_on_either_side():
    for word in WORDS:
        gaps = {pair.gap for pair in TRAIN if pair.word == word}
        assert 0 not in gaps and min(gaps) < 0 < max(gaps) and len(gaps) >= 8, word


def test_no_position_gives_the_sense_away():
    """The cue is not at the source position of the first differing target token nor of the ambiguous word in the
    target, and its translation does not stand right before the first differing token."""
    for pair in ALL:
        tgt, src = tokenize(pair.tgt), tokenize(pair.src)
        german = lexicon.CUES[pair.cue].forms if pair.cue in lexicon.CUES else ()
        for contrast in pair.contrast:
            first = next(i for i, (a, b) in enumerate(zip(tgt, tokenize(contrast), strict=True)) if a != b)
            places = [i for i in (first, tgt.index(pair.expected)) if i < len(src)]
            assert pair.cue not in {src[i] for i in places}, pair
            assert first == 0 or tgt[first - 1] not in german, pair


# The German.


def test_every_german_sentence_is_grammatical():
    for sentence in {text for pair in ALL for text in (pair.tgt, *pair.contrast)}:
        check_german(sentence)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("Der Mann sah den Ufer beim Fluss.", "den .* Ufer agrees in no case"),
        ("Der Mann sah das altes Ufer beim Fluss.", "agrees in no case"),
        ("Der Mann sah ein alte Ufer beim Fluss.", "agrees in no case"),
        ("Der Mann sah das Organ neben dem Herz.", "dem .* Herz agrees in no case"),
        ("Der Mann sah das Organ beim Herz.", "dem .* Herz agrees in no case"),
        ("Der Mann sah das Gericht neben dem Zeuge.", "dem .* Zeuge agrees in no case"),
        ("Der Mann sah das Gericht neben den Zeugen.", "den .* Zeugen agrees in no case"),
        ("Der Buchstaben war alt.", "der .* Buchstaben agrees in no case"),
        ("Die Frau sah den Brief neben dem Kunde.", "'Kunde' is not a noun I know"),
        ("Der Mann sah das ufer beim Fluss.", "'ufer' is not a noun I know"),
        ("Der Mann sah das Ufer bei dem Fluss.", "bei dem must contract"),
        ("Der Ball passte nicht in das Auto, weil es zu klein war.", "in das must contract"),
        ("In dem Buch über den Fluss sah der Mann das Ufer.", "in dem must contract"),
        ("Der Ball passte nicht im Koffer, weil er zu klein war.", "agrees in no case"),
        ("Der Mann sah das Ufer neben dem Fluss.", "Fluss is a place"),
        ("Der Mann sah das Gericht beim Richter.", "Richter is no place"),
        ("der Mann sah das Ufer beim Fluss.", "begins with a capital"),
        ("Der Hund überquerte die Straße nicht: er war zu müde.", "begins with a capital"),
        ("Der Hund überquerte die Straße nicht: Er zu müde war.", "no clause pattern"),
        ("Gestern der Mann sah das Ufer beim Fluss.", "no clause pattern"),
        ("Beim Fluss, sah der Mann das Ufer.", "no clause pattern"),
        ("Der Mann sah das Ufer, weil die Tante beschrieb den Fluss.", "no clause pattern"),
        ("Der Mann ansah das Ufer beim Fluss.", "no clause pattern"),
        ("Der Mann hat das Ufer gesehen beim Fluss.", "'gesehen' is no word I know"),
        ("Der Mann hat das Ufer beim Fluss sehen.", "'sehen' is no word I know"),
        ("Der Mann fand das Ufer beim Fluss an.", "stray prefix"),
        ("Der Mann sahen das Ufer beim Fluss.", "do not fit"),
        ("Die Männer, die den Fluss beschrieb, sahen das Ufer.", "do not fit"),
        ("Das Ufer, die der Mann beim Fluss sah, war alt.", "die after Ufer"),
        ("Den Mann sah das Ufer beim Fluss.", "do not fit"),
        ("Der Mann zeigte die Tante das Ufer.", "do not fit"),
        ("Der Mann sah.", "sah wants"),
    ],
)
def test_the_parser_rejects_wrong_german(wrong, reason):
    with pytest.raises(AssertionError, match=reason):
        check_german(wrong)


@pytest.mark.parametrize(
    "right",
    [
        "Der Mann sah das alte Ufer beim Fluss an.",
        "Die Männer, die den Fluss beschrieben, sahen ein altes Ufer.",
        "Weil es zu müde war, überquerte das Pferd den Fluss nicht.",
        "Der Ball passte nicht ins Auto: Er war zu groß.",
        "Im Buch über den Zeugen sah die Frau das Gericht an.",
        "Das Organ, das der Chirurg neben dem Herzen fand, war ungewöhnlich.",
    ],
)
def test_the_parser_accepts_right_german(right):
    check_german(right)


def test_the_lexicon_has_the_genders_and_forms_of_the_hand_written_table():
    listed = [sense.noun for senses in lexicon.AMBIGUOUS.values() for sense in senses] + list(lexicon.CUES.values())
    listed += [noun for family in pronouns.FAMILIES for side in family.sides for noun in side]
    ours = {noun.nominative: (noun.gender, noun.nominative, noun.accusative, noun.dative) for noun in NOUNS.values()}
    cases = ("nominative", "accusative", "dative")
    theirs = {noun.german: (noun.gender, *map(noun.form, cases)) for noun in listed}
    people = {person.nominative.split()[1] for person in lexicon.PEOPLE if not person.plural}
    assert {name: (ours.get(name), forms) for name, forms in theirs.items() if ours.get(name) != forms} == {}
    assert ours.keys() - theirs.keys() == people  # and no noun is in the table in vain


def test_the_expected_form_and_the_pronoun_agree_with_the_sense():
    for pair in ALL:
        noun = NOUNS[pair.sense.split()[1]]
        assert noun.lemma == pair.sense and tokenize(pair.tgt).count(pair.expected) == 1, pair
        forms = {form for form, gender in PRONOUNS.items() if gender == noun.gender} if is_it(pair) else noun.cases
        assert (pair.expected.lower() if is_it(pair) else pair.expected) in forms, pair


def test_near_is_translated():
    """As "bei" or "neben", and these translate nothing else; the grammar knows which of the two."""
    for pair in ALL:
        assert ("near" in tokenize(pair.src)) == bool({"bei", "beim", "neben"} & set(tokenize(pair.tgt))), pair


def differing(pair, contrast):
    """Return the tokens in which a translation and its contrast differ."""
    return [(a, b) for a, b in zip(tokenize(pair.tgt), tokenize(contrast), strict=True) if a != b]


def test_contrasts_of_nouns_differ_only_where_the_sense_shows():
    """In the noun, which has each other sense in turn, and in articles, adjective endings and relative pronouns."""
    for pair in (pair for pair in ALL if not is_it(pair)):
        shown = [pair.sense]
        for contrast in pair.contrast:
            tokens = differing(pair, contrast)
            shown += [LEMMAS[theirs] for ours, theirs in tokens if ours == pair.expected]
            rest = {token for ours, theirs in tokens if ours != pair.expected for token in (ours, theirs)}
            assert rest <= ARTICLE_WORDS | set(ENDING_OF), pair
        assert sorted(shown) == SENSES[pair.word], pair


def test_contrasts_of_it_differ_only_in_the_pronoun():
    for pair in (pair for pair in ALL if is_it(pair)):
        assert len(pair.contrast) == 1
        [(ours, theirs)] = differing(pair, pair.contrast[0])
        meant = [LEMMAS[token] for token in tokenize(pair.tgt) if token in LEMMAS]
        [other] = [NOUNS[lemma.split()[1]].gender for lemma in meant if lemma != pair.sense]
        assert ours == pair.expected and PRONOUNS[theirs.lower()] == other, pair
        assert theirs.islower() == ours.islower(), pair


# The English.


@pytest.mark.parametrize(
    ("odd", "example"),
    [
        (r"\b(wanted to|had to) (recognize|notice)\b", "The man wanted to notice the bank near the river."),
        (r"\b(bow|club|match|nail|trunk) (that .*|was \w+ )?near\b", "The man saw the trunk near the elephant."),
        (r"^Near .* (bow|club|match|nail|trunk)\b", "Near the elephant, the man saw the trunk."),
        (r"^In the book .* (drew|photographed|noticed)\b", "In the book about the river the man drew the bank."),
        (r"\b(drew|draw|drawn) (the|an?) (\w+ )?bow\b", "The men drew the big bow."),
        (r"\b(found|find) (the|an?) (\w+ )?(pen|ruler|trunk|club)\b", "The man wanted to find the trunk."),
        (r"\bbig bank\b", "The aunt described the river and the big bank."),
        (r"\bcould (?!not pull)", "The man could see the bank near the river."),
        (r"\ba [aeiou]|\ban [^aeiou]", "The man saw a old bank near the river."),
    ],
)
def test_nothing_odd_is_said(odd, example):
    assert re.search(odd, example)
    assert [pair.src for pair in ALL if re.search(odd, pair.src)] == []


def test_no_predicate_repeats_or_contradicts_the_attribute():
    alike = [
        {"old"},
        {"big", "small"},
        {"beautiful", "wonderful", "ugly"},
        {"strange", "unusual", "ordinary", "interesting"},
    ]
    found = [features(pair) for pair in ALL if not is_it(pair) and pair.frame != "but-not"]  # there of the cue
    said = {(row["adjective"], row["predicate"]) for row in found}
    assert ("old", "big") in said and ("big", "old") in said
    assert not {(a, b) for a, b in said for kind in alike if {a, b} <= kind}


def test_lengths():
    for pair in ALL:
        assert 7 <= len(tokenize(pair.src)) <= 18 and 7 <= len(tokenize(pair.tgt)) <= 18, pair


# The splits.


def test_sizes():
    assert len(TRAIN) >= 20_000 and all(len(CORPUS[split]) >= 900 for split in CONTEXT_SPLITS[1:])
    assert len(WORDS) >= 20 and {len(SENSES[word]) for word in WORDS} == {2, 3}
    assert len({pair.frame for pair in TRAIN}) >= 24
    assert 0.05 < len(pairs_of("it", "train")) / len(TRAIN) < 0.2


def test_each_sentence_occurs_once_in_all_splits():
    assert max(Counter(pair.src for pair in ALL).values()) == 1
    assert max(Counter(pair.tgt for pair in ALL).values()) == 1


COMBINATIONS = {
    "word×frame": lambda pair: (pair.word, pair.frame),
    "cue×frame": lambda pair: (pair.cue, pair.frame),
    "word×cue": lambda pair: (pair.word, pair.cue),
}


def wrongly_held(corpus):
    """Return the pairs whose column `held` does not name exactly what training lacks, or that are in a wrong split."""
    trained = {kind: {combine(pair) for pair in corpus["train"]} for kind, combine in COMBINATIONS.items()}
    frames_only = {"word×frame", "cue×frame", "word×frame+cue×frame"}
    allowed = {"compositional": frames_only, "hard": {"word×cue"}}
    wrong = []
    for split in CONTEXT_SPLITS:
        for pair in corpus[split]:
            new = "+".join(kind for kind, combine in COMBINATIONS.items() if combine(pair) not in trained[kind])
            if pair.held != new or new not in allowed.get(split, {""}):
                wrong.append(pair)
    return wrong


def test_held_names_all_that_training_lacks():
    assert wrongly_held(CORPUS) == []
    assert {pair.held for pair in CORPUS["compositional"]} == {"word×frame", "cue×frame", "word×frame+cue×frame"}


def test_every_frame_held_out_for_a_word_is_tried():
    for word in WORDS:
        trained = {pair.frame for pair in TRAIN if pair.word == word}
        tried = {p.frame for p in CORPUS["compositional"] if p.word == word and "word×frame" in p.held}
        assert tried == set(generate.frames_for(word)) - trained, word


def test_each_part_of_a_held_out_combination_is_trained():
    words, cues, used = (Counter(getattr(p, name) for p in TRAIN) for name in ("word", "cue", "frame"))
    for pair in HELD:
        assert min(words[pair.word], cues[pair.cue], used[pair.frame]) >= 20, pair


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_every_held_out_token_is_trained_often(side):
    counts = Counter(token for pair in TRAIN for token in tokenize(getattr(pair, side)))
    rare = {t: counts[t] for pair in HELD for t in tokenize(getattr(pair, side)) if counts[t] < 12}
    assert not rare


def test_the_plainest_cues_are_trained():
    trained = {(pair.word, pair.sense, pair.cue) for pair in TRAIN}
    assert {("trunk", "der Rüssel", "elephant"), ("trunk", "der Stamm", "tree")} <= trained
    plainest = {(word, s.noun.lemma, s.cues[0]) for word, senses in lexicon.AMBIGUOUS.items() for s in senses}
    assert plainest <= trained


@pytest.mark.parametrize("split", CONTEXT_SPLITS)
def test_senses_are_balanced(split):
    """As are the words, but for those with three senses."""
    counts = Counter((pair.word, pair.sense) for pair in pairs_of("nouns", split))
    assert counts.keys() == {(word, sense) for word in WORDS for sense in SENSES[word]}
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("split", CONTEXT_SPLITS[:-1])
def test_pronouns_are_balanced(split):
    counts = Counter(pair.expected.lower() for pair in pairs_of("it", split))
    assert counts.keys() == {"er", "sie", "es"} and len(set(counts.values())) == 1


# How it is made.


def test_generation_repeats_byte_for_byte(tmp_path):
    generate.write(generate.generate(2017), tmp_path)
    for split in CONTEXT_SPLITS:
        assert (tmp_path / f"{split}.tsv").read_bytes() == (DATA / "context" / f"{split}.tsv").read_bytes()


def read_row(row):
    return Pair(**{**asdict(row), "contrast": tuple(row.contrast.split("|"))})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_seed_gives_another_corpus(seed):
    other = {split: [read_row(row) for row in rows] for split, rows in generate.generate(seed).items()}
    assert {split: len(pairs) for split, pairs in other.items()} == {split: len(CORPUS[split]) for split in other}
    assert wrongly_held(other) == []
    sources = [pair.src for pairs in other.values() for pair in pairs]
    assert len(set(sources)) == len(sources)
    assert len(set(sources) & {pair.src for pair in ALL}) < len(sources) / 2
    for split in CONTEXT_SPLITS[1:]:
        assert without_twins(other[split]) == []
    for pair in other["compositional"]:
        check_german(pair.tgt)


def run_command(module, *arguments, monkeypatch, capsys):
    """Run a command line, and return what it prints."""
    monkeypatch.setattr("sys.argv", [module.__name__, *arguments])
    module.main()
    return capsys.readouterr().out


def test_the_command_writes_the_splits(tmp_path, monkeypatch, capsys):
    row = generate.Row("Yes.", "Ja.", "Nein.", "yes", "das Ja", "Ja", "so", "short", 0)
    monkeypatch.setattr(generate, "generate", {7: {"train": [row], "heldout": []}}.__getitem__)
    printed = run_command(generate, "--out", str(tmp_path), "--seed", "7", monkeypatch=monkeypatch, capsys=capsys)
    assert printed.splitlines() == ["train: 1 pairs", "heldout: 0 pairs"]
    header, line = (tmp_path / "train.tsv").read_text(encoding="utf-8").splitlines()
    assert header.startswith("src\ttgt\tcontrast\tword") and line.startswith("Yes.\tJa.\tNein.\tyes")
    assert (tmp_path / "heldout.tsv").read_text(encoding="utf-8").splitlines() == [header]


def test_the_sample_shows_each_sense_as_often(monkeypatch, capsys):
    monkeypatch.setattr(sample, "load_corpus", {"context": CORPUS}.__getitem__)
    show = functools.partial(run_command, sample, monkeypatch=monkeypatch, capsys=capsys)
    printed = show("--pairs", "200", "--seed", "3")
    shown = re.findall(r"^(\d+)  (\w+) → (.*?)  by (\w+)  \(([\w-]+)\)\n   (.*)\n   (.*)$", printed, re.MULTILINE)
    assert [int(number) for number, *_ in shown] == list(range(1, 201))
    assert printed.count("\n") == 600
    assert {tuple(row[1:]) for row in shown} <= {(p.word, p.sense, p.cue, p.frame, p.src, p.tgt) for p in ALL}
    counts = Counter((word, sense) for _, word, sense, *_ in shown if word != "it")
    assert counts.keys() == {(word, sense) for word in WORDS for sense in SENSES[word]}
    assert max(counts.values()) - min(counts.values()) <= 1
    assert show("--pairs", "200", "--seed", "3") == printed
    assert show("--pairs", "200", "--seed", "4") != printed
