"""W18 and W19: byte-pair encoding step by step, and an embedding table as points."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from small_panels import CLASSES, normal, panel
from transformer_lib.course.figures.svg import scatter, tokens
from transformer_lib.course.figures.widgets.embeddings_panel import class_cosines, final_plane
from transformer_lib.course.figures.widgets.tokens_panel import WORDS, bpe_moments


@pytest.mark.parametrize("counts", [WORDS, {"papa": 3, "paper": 5, "apt": 2}, {"aaaaa": 2, "aab": 7}])
def test_the_merges_are_those_of_the_tokenizers_library(counts):
    moments = bpe_moments(counts)
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    texts = [word for word, count in counts.items() for _ in range(count)]
    trainer = trainers.BpeTrainer(vocab_size=1000, show_progress=False, min_frequency=0)
    library.train_from_iterator(texts, trainer)
    vocabulary = library.get_vocab()
    assert list(moments[-1].vocabulary) == sorted(vocabulary, key=vocabulary.get)
    for (word, _), (split, _) in zip(counts.items(), moments[-1].words, strict=True):
        assert library.encode(word).tokens == list(split)


def test_each_merge_joins_the_first_pair_and_adds_one_token():
    moments = bpe_moments(WORDS)
    for before, after in zip(moments[:-1], moments[1:], strict=True):
        assert after.merged == before.pairs[0][0]
        assert after.vocabulary == (*before.vocabulary, "".join(after.merged))
        lost = sum(len(a) * n for a, n in before.words) - sum(len(b) * n for b, n in after.words)
        assert lost == before.pairs[0][1]  # no letter repeats in these words, so each occurrence saves one token
    assert not moments[-1].pairs
    assert all(len(split) == 1 for split, _ in moments[-1].words)


def test_learning_stops_when_asked():
    assert len(bpe_moments(WORDS, most=3)) == 4


def test_the_picture_shows_words_pairs_and_vocabulary():
    bpe = panel("bpe_stepper")
    assert bpe.picture.says == "After 0 merges: 10 tokens in the vocabulary, 79 in the text; next e + s, 9 times."
    second = bpe.set(merges=2).picture
    assert "last es + t" in second.says and ">est<" in second.body
    assert second.body.count("stroke-width") == 3  # the new token: twice in words, once in the vocabulary
    assert "no pair is left" in bpe.set(merges=bpe.controls["merges"].slider.max).picture.says


def test_the_largest_list_fits_the_picture():
    words = {f"{letter}bcdefghijkl": 1 for letter in "mnopqrst"}
    width = sum(tokens.token_width(letter) + 3 for letter in "mbcdefghijkl")
    assert 52 + width < tokens._PAIRS_X
    assert len(panel("bpe_stepper", counts=words, step=5).picture.saved_html) < 50_000


# W19 ------------------------------------------------------------------------------------------------------


def test_the_plane_keeps_what_the_last_table_spreads_most():
    tables = normal(3, 7, 5)
    points, kept = final_plane(tables)
    centred = tables[-1] - tables[-1].mean(axis=0)
    spread = np.sort(np.linalg.eigvalsh(centred.T @ centred))[::-1]
    np.testing.assert_allclose((points[-1] ** 2).sum(axis=0), spread[:2], atol=1e-12)
    assert kept == pytest.approx(spread[:2].sum() / spread.sum())
    assert points.shape == (3, 7, 2)


def test_cosines_are_taken_in_all_dimensions():
    table = np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 5.0]])
    assert class_cosines(table, [0, 0, 1, 1, 2]) == pytest.approx((1.0, 0.0, 4))
    assert class_cosines(table, [0, 1, 0, 1, 2])[0] == pytest.approx(0.0)


def test_a_snapshot_says_its_step_and_moves_the_points():
    plane = panel("embedding_plane")
    first = plane.picture
    assert first.says.startswith("After 0 training steps: cosine within a class ")
    assert plane.set(snapshot=2).picture.says.startswith("After 23 training steps")
    assert [row[0] for row in first.table[1:]] == [word for group in CLASSES.values() for word in group]
    for name in CLASSES:
        assert f">{name}<" in first.body


def test_points_stay_inside_and_up_is_up():
    at = scatter.places(np.array([[0.0, 1.0], [-1.0, 0.0]]), 1.0)
    assert at[0].tolist() == [scatter.SIDE / 2, scatter.MARGIN]
    assert at[1].tolist() == [scatter.MARGIN, scatter.SIDE / 2]


def test_names_of_close_points_keep_apart():
    draw = np.random.default_rng(1)
    at = 250 + 9 * draw.standard_normal((13, 2))
    words = [f"word{i}" for i in range(13)]
    left = scatter.label_places(at, words)
    boxes = [(x, y - 11, x + scatter.text_width(w, 11), y + 3) for (x, y), w in zip(left, words, strict=True)]
    meeting = [(i, j) for i in range(13) for j in range(i) if scatter._meet(boxes[i], boxes[j])]
    assert meeting == []


def test_each_class_has_its_own_shape():
    shapes = {scatter.mark(kind, 0, 0).replace(scatter.COLOURS[kind], "") for kind in range(6)}
    assert len(shapes) == len(set(scatter.COLOURS)) == 6
