"""The context corpus: its German, its splits, its balance, and that it can be made again byte for byte."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict

import pytest

from german_grammar import PLURALS, Grammar
from transformer_lib.data.context_generator import frames, generate, lexicon, pronouns
from transformer_lib.data.corpora import CONTEXT_SPLITS, DATA, load_corpus
from transformer_lib.data.tokenizers import WordTokenizer

pytestmark = pytest.mark.fast

CORPUS = load_corpus("context")
ALL = [pair for split in CONTEXT_SPLITS for pair in CORPUS[split]]
TRAIN = CORPUS["train"]
HELD = [pair for split in CONTEXT_SPLITS[1:] for pair in CORPUS[split]]
WORDS = sorted(lexicon.AMBIGUOUS)
tokenize = WordTokenizer.tokenize


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    listed = [s.noun for senses in lexicon.AMBIGUOUS.values() for s in senses] + list(lexicon.CUES.values())
    for family in pronouns.FAMILIES:
        listed += [*family.firsts, *family.seconds]
    people = {
        "Mann": "m",
        "Frau": "f",
        "Kind": "n",
        "Mädchen": "n",
        "Vater": "m",
        "Schwester": "f",
        "Bruder": "m",
        "Tante": "f",
        "Buch": "n",
    }
    everything = frozenset({"nom", "acc", "dat"})
    nouns: dict[str, set] = defaultdict(set)
    for noun in listed:
        nouns[noun.german].add((noun.gender, everything if noun.oblique in ("", noun.german) else frozenset({"nom"})))
        if noun.oblique not in ("", noun.german):
            nouns[noun.oblique].add((noun.gender, frozenset({"acc", "dat"})))
    for form, gender in people.items():
        nouns[form].add((gender, everything))
    for form, cases in PLURALS.items():
        nouns[form].add(("p", frozenset(cases)))
    stems = set(lexicon.ADJECTIVES.values())
    stems |= {german for sides in pronouns.ADJECTIVES.values() for side in sides for german in side.values()}
    return Grammar({form: sorted(readings, key=str) for form, readings in nouns.items()}, stems)


def test_every_german_sentence_is_grammatical(grammar):
    for pair in ALL:
        grammar.check(pair.tgt)


def test_every_contrast_is_grammatical(grammar):
    for pair in HELD:
        for contrast in pair.contrast:
            grammar.check(contrast)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("Der Mann sah den Ufer beim Fluss.", "agrees in no case"),
        ("Der Mann sah das altes Ufer beim Fluss.", "agrees in no case"),
        ("Der Mann sah ein alte Ufer beim Fluss.", "agrees in no case"),
        ("Der Mann sah das Ufer bei dem Fluss.", "must contract"),
        ("Der Mann sah das Ufer beim Kunde.", "agrees in no case"),
        ("Gestern der Mann sah das Ufer beim Fluss.", "no clause pattern"),
        ("Der Mann sah das Ufer, weil die Tante beschrieb den Fluss.", "no clause pattern"),
        ("Der Mann sahen das Ufer beim Fluss.", "do not fit"),
        ("Das Ufer, die der Mann beim Fluss sah, war alt.", "after Ufer"),
        ("Den Mann sah das Ufer beim Fluss.", "do not fit"),
        ("Der Mann hat das Ufer gesehen beim Fluss.", "."),
        ("Der Mann zeigte die Tante das Ufer.", "do not fit"),
    ],
)
def test_the_parser_rejects_wrong_german(grammar, wrong, reason):
    with pytest.raises(AssertionError, match=reason):
        grammar.check(wrong)


def test_the_parser_accepts_right_german(grammar):
    for right in (
        "Der Mann sah das alte Ufer beim Fluss an.",
        "Die Männer, die den Fluss beschrieben, sahen ein altes Ufer.",
        "Weil es zu müde war, überquerte das Pferd den Fluss nicht.",
    ):
        grammar.check(right)


def test_generation_repeats_byte_for_byte(tmp_path):
    generate.write(generate.generate(2017), tmp_path)
    for split in CONTEXT_SPLITS:
        assert (tmp_path / f"{split}.tsv").read_bytes() == (DATA / "context" / f"{split}.tsv").read_bytes()


def test_another_seed_gives_another_corpus():
    assert generate.draw_held_out(random.Random(3)) != generate.draw_held_out(random.Random(5))


def test_sizes():
    assert len({(p.src, p.tgt) for p in ALL}) >= 20_000
    assert len(TRAIN) >= 20_000
    assert all(len(CORPUS[split]) >= 900 for split in CONTEXT_SPLITS[1:])
    assert len(WORDS) >= 20
    assert all(2 <= len(senses) <= 3 for senses in lexicon.AMBIGUOUS.values())
    assert len(frames.FRAMES) >= 14


def test_each_source_occurs_once():
    assert max(Counter(pair.src for pair in ALL).values()) == 1


def test_nothing_held_out_is_trained():
    trained = {(p.word, p.frame) for p in TRAIN}, {(p.cue, p.frame) for p in TRAIN}, {(p.word, p.cue) for p in TRAIN}
    for pair in CORPUS["compositional"]:
        new = {
            "word×frame": (pair.word, pair.frame) not in trained[0],
            "cue×frame": (pair.cue, pair.frame) not in trained[1],
        }
        assert pair.held and all(new[kind] for kind in pair.held.split("+")), pair
    for pair in CORPUS["hard"]:
        assert (pair.word, pair.cue) not in trained[2], pair
    assert not {p.src for p in TRAIN} & {p.src for p in HELD}
    assert not {p.tgt for p in TRAIN if p.word} & {p.tgt for p in HELD}


def test_each_part_of_a_held_out_combination_is_trained():
    words, cues, used = (Counter(getattr(p, name) for p in TRAIN) for name in ("word", "cue", "frame"))
    for pair in HELD:
        assert min(words[pair.word], cues[pair.cue], used[pair.frame]) >= 20, pair


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_every_held_out_token_is_trained_often(side):
    counts = Counter(token for pair in TRAIN for token in tokenize(getattr(pair, side)))
    rare = {t: counts[t] for pair in HELD for t in tokenize(getattr(pair, side)) if counts[t] < 20}
    assert not rare


@pytest.mark.parametrize("split", CONTEXT_SPLITS)
def test_senses_are_balanced(split):
    counts = Counter((pair.word, pair.sense) for pair in CORPUS[split] if pair.word != "it")
    for word in WORDS:
        assert len({counts[word, sense.noun.lemma] for sense in lexicon.AMBIGUOUS[word]}) == 1, word


def test_pronouns_are_balanced():
    pronominal = [pair for pair in TRAIN if pair.word == "it"]
    counts = Counter(pair.expected for pair in pronominal)
    assert set(counts) == {"er", "sie", "es"} and max(counts.values()) == min(counts.values())
    assert 0.05 < len(pronominal) / len(TRAIN) < 0.2


def test_lengths():
    for pair in ALL:
        assert 5 <= len(tokenize(pair.src)) <= 18 and 5 <= len(tokenize(pair.tgt)) <= 20, pair


def test_cues_stand_at_varying_distance_on_either_side():
    for word in WORDS:
        gaps = {pair.gap for pair in TRAIN if pair.word == word}
        assert 0 not in gaps and min(gaps) < 0 < max(gaps) and len(gaps) >= 8, word


def test_the_tokenizer_keeps_every_sentence():
    for side in ("src", "tgt"):
        tokenizer = WordTokenizer.from_texts(getattr(pair, side) for pair in TRAIN)
        for pair in ALL:
            text = getattr(pair, side)
            assert tokenizer.decode(tokenizer.encode(text, bos=True, eos=True)) == text


def test_contrasts_differ_only_where_the_sense_shows():
    """Articles, adjective endings, relative pronouns, the noun itself, or er/sie/es: never anything else."""
    nouns = [sense.noun for senses in lexicon.AMBIGUOUS.values() for sense in senses]
    noun_forms = {form for noun in nouns for form in (noun.german, noun.oblique)}
    small = {"der", "die", "das", "den", "dem", "ein", "eine", "einen", "einem", "einer", "er", "sie", "es"}
    stems = "|".join(sorted(lexicon.ADJECTIVES.values()))
    for pair in ALL:
        others = len(lexicon.AMBIGUOUS[pair.word]) - 1 if pair.word != "it" else 1
        assert len(set(pair.contrast)) == others and pair.tgt not in pair.contrast
        for contrast in pair.contrast:
            for ours, theirs in zip(tokenize(pair.tgt), tokenize(contrast), strict=True):
                if ours != theirs:
                    assert {ours, theirs} <= small | noun_forms or re.fullmatch(rf"({stems})e[nrs]?", ours), pair


def test_no_position_gives_the_sense_away():
    """The cue is not at the source position of the first differing target token nor of the ambiguous word in the
    target, and its translation does not stand right before the first differing token."""
    for pair in ALL:
        tgt, src = tokenize(pair.tgt), tokenize(pair.src)
        cue = lexicon.CUES.get(pair.cue)
        german = {cue.german, cue.oblique} if cue else set()
        for contrast in pair.contrast:
            first = next(i for i, (a, b) in enumerate(zip(tgt, tokenize(contrast), strict=True)) if a != b)
            places = [i for i in (first, tgt.index(pair.expected)) if i < len(src)]
            assert pair.cue not in {src[i] for i in places}, pair
            assert first == 0 or tgt[first - 1] not in german, pair


def test_the_cue_is_in_the_sentence_and_decides_one_sense():
    for pair in ALL:
        tokens = tokenize(pair.src)
        assert tokens.index(pair.cue) - tokens.index(pair.word) == pair.gap
    for word, senses in lexicon.AMBIGUOUS.items():
        cues = [cue for sense in senses for cue in sense.cues]
        assert len(cues) == len(set(cues)), word


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["generate", "--out", str(tmp_path), "--seed", "2017"])
    monkeypatch.setattr(generate, "generate", lambda seed: {"train": [], "heldout": []})
    generate.main()
    assert "train: 0 pairs" in capsys.readouterr().out
    assert (tmp_path / "train.tsv").read_text(encoding="utf-8").startswith("src\ttgt\tcontrast\tword")
