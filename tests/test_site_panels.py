"""Panels on the site: which live, what is carried of them, and that it is what the panels draw."""

from __future__ import annotations

import gzip
import json
import random
import re

import numpy as np
import pytest
import site_panels

from transformer_lib.course.cells import source_of, tags_of, text_of
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.widgets.script import Script
from transformer_lib.course.notebooks import NOTEBOOKS, file_of, notebook
from transformer_lib.course.teaching.notebook_files import html_of, read

STILL = {"23-074": "the real model answers, which no page carries"}
"""The cells whose panels do not live on the site, and why."""

RECOMPUTED = {"05-072", "08-052", "19-054", "20-042", "21-026", "23-074", "24-015"}
"""The cells whose stored pictures a test of the notebook does not compare, such as those of a model trained above."""


def states(panel: site_panels.Living) -> list[str]:
    """Return what a file of states holds, each as one text."""
    held = json.loads(gzip.decompress(panel.states))
    return ["".join(held["pieces"][piece] for piece in held["rows"][at]) for at in held["at"]]


def small(**more) -> widgets.Panel:
    """A panel of a few states."""
    controls = {
        "n": widgets.number("n", 3, 1, 7),
        "x": widgets.number("x", 4.0, 1.0, 8.0, powers=True),
        "c": widgets.choice("c:", ["a", "b"], "b", names=["one", "two"]),
        "on": widgets.switch("on"),
    }
    return widgets.Panel(drawing, controls, **more)


def drawing(n, x, c, on):
    says = f"n {n}, x {x:g}, c {c}, on {on}"
    return widgets.panel.Picture(f"<text>{n} < {x}</text>", 100 + n, 50, f"A < drawing. {says}", says)


@pytest.fixture(scope="module")
def cells() -> dict[str, list[dict]]:
    """{id of a panel's cell: the cells that must run for it}."""
    return {each[-1]["id"]: each for entry in NOTEBOOKS for each in site_panels.panel_cells(entry)}


@pytest.fixture(scope="module")
def living() -> dict[str, site_panels.Living]:
    """Every panel of the course, from build/panels or made anew."""
    return site_panels.all_living()


# Files of states


@pytest.mark.fast
def test_each_state_can_be_read_back():
    shown = small(carried={"n": (1, 3, 5)})
    found = states(site_panels.carried("x", shown))
    expected = list(shown.states())
    assert len(found) == len(expected) == 3 * 4 * 2 * 2
    assert [values["on"] for values, *_ in expected[:3]] == [False, True, False]  # the last changes fastest
    for text, (values, picture, foot) in zip(found, expected, strict=True):
        says, alt, svg, below = text.split(site_panels.PARTS)
        assert (says, below) == (picture.says, foot)
        assert alt.replace(site_panels.SAYS, says) == picture.alt
        assert svg.replace(site_panels.ALT, site_panels.escape(picture.alt)) == picture.svg == drawing(**values).svg


@pytest.mark.fast
def test_what_a_script_works_out_is_not_multiplied(monkeypatch):
    script = Script("any", ("n", "on"), lambda: {"texts": ["<b>part</b>"], "more": 1})
    panel = site_panels.carried("x", small(script=script))
    assert len(states(panel)) == 4 * 2 + 1
    assert states(panel)[-1] == "<b>part</b>"
    assert json.loads(gzip.decompress(panel.states))["data"] == {"more": 1, "first": 8}
    assert (panel.known["script"], [each["scripted"] for each in panel.known["controls"]]) == ("any", [1, 0, 0, 1])


@pytest.mark.fast
def test_too_many_states_are_refused(monkeypatch):
    monkeypatch.setattr(site_panels, "MOST", 10)
    with pytest.raises(ValueError, match="112 states are more than 10; name fewer values"):
        site_panels.carried("x", small())
    monkeypatch.setattr(site_panels, "MOST", 1000)
    monkeypatch.setattr(site_panels, "LARGEST", 100)
    with pytest.raises(ValueError, match=r"[\d,]+ bytes of states are more than 100"):
        site_panels.carried("x", small())


# From the notebooks


@pytest.mark.fast
@pytest.mark.parametrize(
    ("source", "bound", "needed"),
    [
        ("a = 1\nb = a + c", {"a", "b"}, {"c"}),
        ("import x.y as z\nf = lambda q: q + w", {"z", "f"}, {"w"}),
        ("def f(a):\n    return a + g + len(a)", {"f"}, {"g"}),
        ("n = n + 1", {"n"}, {"n"}),
        ("s = [i * k for i in xs]", {"s"}, {"k", "xs"}),
    ],
)
def test_names_of_a_cell(source, bound, needed):
    assert site_panels.names(source) == (bound, needed)


@pytest.mark.fast
def test_only_the_cells_run_that_a_panel_needs(cells):
    assert [cell["id"] for cell in cells["03-020"]] == ["03-002", "03-004", "03-010", "03-020"]
    assert [cell["id"] for cell in cells["19-054"]][-2:] == ["19-018", "19-054"]
    made = [{"id": "1", "source": "a = 2"}, {"id": "2", "source": "a"}]
    with pytest.raises(ValueError, match="cell 2 must end with a panel, got int"):
        site_panels.made(made)


def test_every_panel_lives_or_it_is_said_why(living, cells):
    assert set(living) | set(STILL) == set(cells) and not set(living) & set(STILL)
    tagged = [cell for entry in NOTEBOOKS for cell in read(file_of(entry))["cells"] if "widget" in tags_of(cell)]
    assert {cell["id"] for cell in tagged} == set(cells)
    compared = {cell["id"] for cell in tagged if "nbval-ignore-output" not in tags_of(cell)}
    assert compared == set(cells) - RECOMPUTED


def test_no_file_of_states_is_large(living):
    sizes = {name: len(panel.states) for name, panel in living.items()}
    assert max(sizes.values()) <= site_panels.LARGEST
    assert sum(sizes.values()) < 3_000_000
    assert max(len(json.dumps(panel.known)) for panel in living.values()) < 6_000


def test_a_page_begins_with_the_picture_that_its_notebook_stores(living):
    for entry in NOTEBOOKS:
        for cell in read(file_of(entry))["cells"]:
            if cell["id"] in living and cell["id"] not in RECOMPUTED and not living[cell["id"]].known["script"]:
                at, controls = 0, living[cell["id"]].known["controls"]
                for control in controls:
                    at = at * len(control["values"]) + control["at"]
                says = states(living[cell["id"]])[at].split(site_panels.PARTS)[0]
                assert f"<strong>{site_panels.escape(says)}</strong>" in html_of(cell) or not says, cell["id"]


def test_states_are_those_of_the_panel_that_the_cell_makes(living, cells):
    """Panels that are quickly made: ten states of each, drawn again."""
    for name in ("01-033", "02-020", "04-034", "06-087", "08-014", "13-072", "16-034", "20-042"):
        panel = site_panels.made(cells[name])
        every, found = list(panel.states(site_panels.MOST)), states(living[name])
        assert len(every) == len(found)
        for i in random.Random(name).sample(range(len(every)), 10):
            assert found[i] == site_panels.written(*every[i][1:])


def test_what_was_kept_is_used_until_a_cell_changes(tmp_path, cells, monkeypatch):
    mine = [{**cells["08-014"][0]}, {**cells["08-014"][1]}]
    first = site_panels.living(mine, tmp_path)
    monkeypatch.setattr(site_panels, "made", lambda cells: pytest.fail("made anew"))
    assert site_panels.living(mine, tmp_path) == first
    mine[1]["source"] = source_of(mine[1]) + "\n"
    with pytest.raises(pytest.fail.Exception, match="made anew"):
        site_panels.living(mine, tmp_path)


# HTML


@pytest.mark.fast
def test_the_page_of_a_panel_has_its_controls_and_its_picture():
    panel = site_panels.carried("x", small(carried={"n": (1, 3)}))
    stored = small()._repr_mimebundle_()["text/html"]
    page = site_panels.alive(stored, panel)
    known = json.loads(site_panels.html.unescape(re.search(r'data-panel="([^"]*)"', page)[1]))
    assert known["file"] == "../_static/panels/x.bin"
    assert page.count("<img ") == 1 and "tl-wake" not in page
    assert page.count('data-control="') == 4
    for part in ('type="number"', 'type="range"', 'type="checkbox"', 'aria-pressed="true">two</button>', "disabled"):
        assert part in page
    assert '<b role="status" aria-live="polite">n 3, x 4, c b, on False</b>' in page
    with pytest.raises(ValueError, match="x: page must hold the stored picture of a panel, got none"):
        site_panels.alive("<p>nothing</p>", panel)


def test_parts_of_the_mask_laboratory_make_its_picture():
    """The script's parts, put together as the script does, are the picture that Python draws."""
    scores = np.round(np.random.default_rng(1).normal(size=(3, 3)), 1)
    shown = widgets.mask_lab(scores, ["a", "b", "<pad>"])
    data = shown.script.data()
    texts, n = data["texts"], 3
    masks = 4 * n * n
    assert len(texts) == masks + n * 2**n + n + n * n
    mask = np.tril(np.ones((n, n), dtype=bool))
    for flips in ((), ((0, 0),), ((0, 2), (1, 2))):
        mine = mask.copy()
        for cell in flips:
            mine[cell] = not mine[cell]
        body = texts[1 * n + 2]
        body += "".join(texts[2 * n * n + 2 * (i * n + j) + mine[i, j]] for i, j in np.ndindex(n, n))
        body += "".join(texts[masks + i * 2**n + int(mine[i] @ [1, 2, 4])] for i in range(n))
        body += "".join(texts[masks + n * 2**n + i] for i in range(n) if not mine[i].any())
        body += "".join(texts[masks + n * 2**n + n + i * n + j] for i, j in np.argwhere(np.triu(mine, 1)))
        body += texts[n * n + 1 * n + 2]
        assert shown.set(preset="causal", row=1, column=2, flips=flips).picture.body == body
    assert (data["labels"], data["pad"]) == (["a", "b", "<pad>"], [False, False, True])


def test_what_the_explorer_tells_its_script():
    sentence = "The man saw the bank near the money."
    told = widgets.attention_explorer(sentences=[sentence]).script.data()["sentences"][0]
    assert told["writes"][-1] == "<eos>" and len(told["writes"]) == len(told["target"])
    assert told["names"]["cross"][1][0] == "the₁" and len(told["names"]["cross"][0]) == len(told["target"])


def test_the_pages_of_a_notebook_hold_its_panels(living):
    import site_pages

    entry = notebook("01")
    page = site_pages.page_of(read(file_of(entry)), entry, panels=living)
    shown = "".join(text_of(output["data"].get("text/html", "")) for cell in page["cells"] for output in _out(cell))
    assert shown.count('<div class="panel" data-panel=') == 3
    still = site_pages.page_of(read(file_of(entry)), entry)
    assert "data-panel" not in json.dumps(still)


def _out(cell: dict) -> list[dict]:
    return [output for output in cell.get("outputs", []) if "data" in output]
