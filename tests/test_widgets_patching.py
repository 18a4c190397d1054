"""W37, patching: what it shows is what the study has stored."""

from __future__ import annotations

import pytest

from small_panels import panel
from transformer_lib.course.figures.widgets.patching_panel import said_after
from transformer_lib.course.lab import capitals

pytestmark = pytest.mark.fast

SHOWN = capitals.load_results()["shown"]


@pytest.mark.parametrize("pair", SHOWN)
def test_each_place_says_what_was_measured_there(pair):
    record, shown = SHOWN[pair], panel("patching").set(pair=pair)
    giver, taker = pair.split("/")
    for position, name in ((3, "country"), (4, "last")):
        for layer in (0, 22, 23, 24, 30):
            word, p = record[name][layer][0]
            says = shown.set(position=position, layer=layer).picture.says
            assert f"says{word} ({p:.2f}); without the patch{record['own'][1][0][0]} " in says and giver in says
    assert taker in shown.picture.body


@pytest.mark.parametrize("position", [0, 1, 2])
def test_before_the_words_differ_a_patch_changes_nothing(position):
    record = SHOWN["France/Germany"]
    assert all(said_after(record, position, layer) == [tuple(one) for one in record["own"][1]] for layer in (0, 13, 30))
