"""W25, the ablations: the numbers are the stored ones, and the two ways of leaving a part out stay apart."""

from __future__ import annotations

import pytest

from studies import ablations as study
from svg_parts import number, parts
from transformer_lib.course.figures.svg import ablation_bars
from transformer_lib.course.figures.widgets.ablations_panel import PARTS, SCORES, ablation_scores, draw_ablations
from transformer_lib.course.lab import ablations as study_lab


def test_the_numbers_are_the_stored_ones():
    stored = study_lab.load_results()
    row = ablation_scores("positions", "sense, compositional")
    assert row["trained without"] == [
        run["scores"]["compositional"]["sense accuracy"] for run in stored["trained"]["no positions"]
    ]
    assert row["off at test time"] == [
        run["scores"]["positions"]["compositional"]["sense accuracy"] for run in stored["off at test"]["baseline"]
    ]
    assert row["baseline"] == [
        run["scores"]["compositional"]["sense accuracy"] for run in stored["trained"]["baseline"]
    ]


CONTROLS = {"no scaling, small queries", "no embedding scale, unit tables", "no label smoothing"}  # have no part


def test_every_variant_has_its_row_and_heads_have_four_each_seed():
    assert {variant for variant, _ in PARTS.values()} == set(study.VARIANTS) - {"baseline", *CONTROLS}
    for part in PARTS:
        row = ablation_scores(part)
        assert len(row["baseline"]) == len(row["trained without"]) == 3
        assert len(row["off at test time"]) == (12 if part == "all heads but one" else 3)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("score", SCORES)
def test_every_choice_draws_all_dots_and_says_its_numbers(part, score):
    picture, row = draw_ablations(part, score), ablation_scores(part, score)
    dots = sum(len(ablation_scores(name, score)[kind]) for name in PARTS for kind in row if kind != "baseline")
    assert picture.body.count("<circle") == dots + 1  # one in the key
    assert f"{part}: trained without {min(row['trained without']):.2f}" in picture.says
    assert f", off at test time {min(row['off at test time']):.2f}" in picture.says
    assert f'class="bold">{part}<' in picture.body and picture.says[1:] in picture.alt


def test_dots_lie_where_their_values_say():
    body = ablation_bars.dot_rows({"a": [0.0, 1.0]}, [0.5, 0.7], 100, 10, 200)
    zero, one = (number(dot, "cx") for dot in parts(body, "circle"))
    assert (zero, one) == (100, 100 + 200)
    means = [number(line, "x1") for line in parts(body, "line") if line.get("stroke-dasharray")]
    assert means == [zero + 0.6 * (one - zero)]  # the mean of the whole model's
