"""Slides: what is on them is chosen by tags, shortened by rule, and holds no solution."""

from __future__ import annotations

import functools
import json
import re
import textwrap

import pytest

pytest.importorskip("nbconvert", reason="nbconvert is not installed")
pytest.importorskip("bs4", reason="nbconvert is not installed")

from transformer_lib.course import notebooks as course
from transformer_lib.course.cells import tags_of
from transformer_lib.course.teaching import notebook_files
from transformer_lib.course.teaching.slides import (
    build as slides,
)
from transformer_lib.course.teaching.slides import (
    outputs as slides_outputs,
)
from transformer_lib.course.teaching.slides import (
    plan as slides_plan,
)
from transformer_lib.course.teaching.slides import (
    text as slides_text,
)
from transformer_lib.course.teaching.slides.long_lines import WIDTH, broken
from transformer_lib.course.teaching.slides.markdown import Section, sections
from transformer_lib.course.teaching.slides.plan import Piece, Slide
from transformer_lib.course.teaching.slides.room import divided, height
from transformer_lib.course.teaching.slides.symbols import KEPT, typeset

PICTURE = '<p><b>says</b> <strong>0.5</strong></p><img alt="A &lt;bar&gt;" src="data:,x"><details>data</details>'
QUIZ = (
    "<div><p><b>04.q1</b> How large?</p><ol><li>Small.</li><li>Large.</li></ol><details><summary>Answers</summary><ol>"
    "<li>✗ Not quite. No.</li><li>✓ Right. Yes.</li></ol></details></div>"
)
NUMBER = (
    "<div><p><b>04.q2</b> How many?</p><details><summary>Answers</summary><ol><li>7: ✓ Right. Yes.</li>"
    "<li>8: ✗ Not quite. No.</li></ol></details></div>"
)


def cell(kind: str, source: str, *tags: str, html: str = "", stream: str = "", name: str = "c") -> dict:
    outputs = [{"output_type": "display_data", "data": {"text/html": html, "text/plain": "plain"}}] if html else []
    outputs += [{"output_type": "stream", "text": stream}] if stream else []
    return {"cell_type": kind, "id": name, "source": source, "metadata": {"tags": list(tags)}, "outputs": outputs}


def markdown(source: str, *tags: str, name: str = "m") -> dict:
    return cell("markdown", source, *tags, name=name)


def code(source: str, *tags: str, **more: str) -> dict:
    return cell("code", source, *tags, **more)


def shown(found: list[Slide]) -> list[tuple[str, list[str]]]:
    return [(slide.title, [("> " if piece.step else "") + piece.text for piece in slide.pieces]) for slide in found]


# The course's own notebooks.


LESSONS = course.NOTEBOOKS


@functools.cache
def deck(entry: course.Notebook) -> list[Slide]:
    return slides.deck_of(entry)


@pytest.mark.parametrize("entry", LESSONS, ids=lambda entry: entry.id)
def test_every_notebook_has_a_deck(entry):
    found = deck(entry)
    titles = [slide.title for slide in found]
    assert 12 <= len(slides_plan.plan(slides_plan.read(course.path_of(entry)))) <= 25 and len(found) <= 31
    assert found[0].level == 1 and titles[0].endswith("?")
    assert titles[1] == ("Goals" if entry.id != "00" else titles[0]), "00 begins with its panel"
    assert titles[-2:] == ["Summary", "Common misconceptions"]
    assert not any("Further reading" in piece.text for slide in found for piece in slide.pieces)
    assert all(slide.title and slide.cells for slide in found)
    pictures = [image for slide in found for piece in slide.pieces for image in re.findall("<img[^>]*", piece.text)]
    assert len(pictures) >= 2 and all(re.search('alt="[^"]+', image) for image in pictures)


@pytest.mark.parametrize("entry", LESSONS, ids=lambda entry: entry.id)
def test_no_slide_holds_a_solution_or_a_hint(entry):
    cells = slides_plan.read(course.path_of(entry))
    page = "\n".join(piece.text for slide in deck(entry) for piece in slide.pieces)
    assert not re.search(r"def \w+_solution\(", page) and "Hint 1" not in page
    solutions = {line for one in cells if "solution" in tags_of(one) for line in one["source"].splitlines()}
    assert [line for line in solutions if "def " in line and line in page] == []


@pytest.mark.parametrize("entry", LESSONS, ids=lambda entry: entry.id)
def test_code_on_slides_is_short(entry):
    pieces = [piece.text for slide in deck(entry) for piece in slide.pieces]
    fenced = [text for text in pieces if "```python" in text]
    assert all(text.count("\n") - 1 <= slides_outputs.CODE_LINES for text in fenced)


# Tags.


def test_places():
    found = slides_plan.plan(
        [
            markdown("# Why?\n\nYou will be able to\n\n- add\n\n**Time:** 5 minutes.", "slide", name="a"),
            markdown("## One\n\nFirst.", "slide"),
            code("x = 1\nprint(x)", "slide-part", stream="1\n"),
            markdown("Then.", "slide-step"),
            markdown("To say.", "slide-notes"),
            markdown("Not on any slide."),
            code("print(2)", "slide", "slide-output", stream="2\n"),
        ],
        "Notebook 99",
    )
    printed = '<div class="printed">\n\n```text\n{}\n```\n\n</div>'
    assert shown(found) == [
        ("Why?", ['<p class="subtitle">Notebook 99</p>']),
        ("Goals", ["You will be able to\n\n- add"]),
        ("One", ["First.", "```python\nx = 1\nprint(x)\n```", "> " + printed.format(1), "> Then."]),
        ("One", [printed.format(2)]),
    ]
    assert found[2].notes == ["First.", "Then.", "To say."] and "5 minutes" in found[0].notes[0]


def test_sections_of_a_cell_are_slides_but_exercises_and_terms_are_not():
    text = "To end.\n\n## Terms\n\n| a |\n|---|\n\n## Two\n\nNew.\n\n### Exercise 1.1 · Add\n\nDo."
    found = slides_plan.plan([markdown("## One\n\nText.", "slide"), markdown(text, "slide"), code("y", "slide")])
    assert shown(found) == [("One", ["Text."]), ("Two", ["New."]), ("Two", ["```python\ny\n```"])]
    assert found[0].notes == ["Text.", "To end."]


def test_a_picture_takes_its_caption_from_the_next_cell():
    cells = [
        markdown("## One", "slide"),
        code("plot()", "slide", html=PICTURE),
        markdown("*What to see: a* bar*.* It is high. **Very**.", "slide"),
    ]
    (figure, text) = slides_plan.plan(cells)
    assert figure.title == "One" and "<details" not in figure.pieces[0].text
    assert '<img alt="A &lt;bar&gt;" src="data:,x">' in figure.pieces[0].text
    assert "What to see: a bar." in figure.pieces[0].text and "high" not in figure.pieces[0].text
    assert re.search(r"<figcaption>.*What to see.*</figcaption>\s*</figure>", figure.pieces[0].text, re.DOTALL)
    assert shown([text]) == [("One", ["It is high. **Very**."])]


@pytest.mark.parametrize(
    ("html", "options", "answer"),
    [(QUIZ, '<ol type="A"><li>Small.</li><li>Large.</li></ol>', "B. ✓ Right. Yes."), (NUMBER, "", "7: ✓ Right. Yes.")],
)
def test_a_quiz_asks_the_class(html, options, answer):
    (found,) = slides_plan.plan([code("quiz()", "quiz", "slide", html=html)])
    asked, answered = found.pieces
    assert found.title == "Ask the class" and options in asked.text and "✓" not in asked.text
    assert answer in answered.text and answered.step and "✗" not in answered.text
    assert "✗ Not quite. No." in found.notes[0]


@pytest.mark.parametrize("html", ["", QUIZ.replace("details", "div"), QUIZ.replace("<b>04.q1</b>", "")])
def test_a_quiz_that_is_none_is_named(html):
    with pytest.raises(ValueError, match="cell c must have stored its quiz: run the notebook"):
        slides_outputs.question(code("quiz()", "quiz", "slide", html=html))


def test_a_folded_answer_is_a_step_and_hints_are_left_out():
    text = "**Predict**: what?\n\n<details><summary>Answer</summary>\n\nThis.\n\n</details>\n\n"
    text += "<details><summary>Hint 1</summary>Think.</details>"
    (found,) = slides_plan.plan([markdown(f"## One\n\n{text}", "slide")])
    assert found.pieces[0] == Piece("**Predict**: what?")
    assert found.pieces[1].step and "This." in found.pieces[1].text and len(found.pieces) == 2


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        (["slide-big"], "cell m: tags must be among slide, slide-part"),
        (["slide", "slide-step"], "must have one of slide, slide-part, slide-step, slide-notes, got slide, slide-step"),
        (["slide-output"], "must have one of"),
        (["slide", "solution"], "must not put a cell tagged 'solution' on a slide"),
    ],
)
def test_wrong_tags_are_refused(tmp_path, tags, message):
    path = tmp_path / "07_toy.ipynb"
    path.write_text(json.dumps({"cells": [markdown("x", *tags)]}), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        slides_plan.read(path)


# What of a text is shown.

FILLER = "It goes on with many words that a class need not read while it listens to a teacher. " * 4


@pytest.mark.parametrize(
    ("text", "condensed"),
    [
        ("Short. Prose stays. Whole.", "Short. Prose stays. Whole."),
        (f"So why? Because. {FILLER}{FILLER}", f"So why? Because. {' '.join([FILLER.split('. ')[0] + '.'] * 2)}"),
        (f"{FILLER}\n\nAnd so:\n\n$$ a = b . $$", f"{FILLER.split('. ')[0]}.\n\nAnd so:\n\n$$ a = b . $$"),
        (f"{FILLER}\n\n**Bold.** Text. No. End.\n\n- a", f"{FILLER.split('. ')[0]}.\n\n**Bold.** Text. End.\n\n- a"),
        (f"{FILLER}\n\nNow. **Predict**: which? Why? Hm.\n\n| a |\n|---|", None),
        (f"- **Label.** First. {FILLER}\n- b", "- **Label.** First.\n- b"),
        (f"1. *Label.* See Su et al. (2021) first. {FILLER}", "1. *Label.* See Su et al. (2021) first."),
        (f"See. (A. B.) {FILLER}{FILLER}", f"See. (A. B.) {' '.join([FILLER.split('. ')[0] + '.'] * 2)}"),
        ("$$\na\n\nb\n$$\nText\n- a\n- b", "$$\na\n\nb\n$$\n\nText\n\n- a\n- b"),
    ],
)
def test_condense(text, condensed):
    if condensed is None:
        assert "**Predict**: which? Why?" in slides_text.condense(text)
        assert "Now." not in slides_text.condense(text)
    else:
        assert slides_text.condense(text) == condensed


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("One. Two:", "One."),
        ("One.\n\nTwo:", "One."),
        ("**Predict first.**", ""),
        ("One.\n\n- a:", "One.\n\n- a:"),
    ],
)
def test_an_announcement_of_nothing_is_dropped(text, kept):
    assert slides_text.without_lead_in(text) == kept


def test_misconceptions_get_a_slide():
    text = '- Sum.\n\n**Common misconceptions.** "A": b. "C", and "d": e.\n\nNext.'
    assert slides_text.split_misconceptions(Section("Summary", 2, text)) == [
        Section("Summary", 2, "- Sum."),
        Section("Common misconceptions", 2, '- "A": b.\n- "C", and "d": e.\n\nNext.'),
    ]


def test_headings_inside_code_are_none():
    assert sections("```\n# no\n```\n## Yes\ntext") == [
        Section("", 0, "```\n# no\n```"),
        Section("Yes", 2, "text"),
    ]


def test_long_code_loses_assertions_then_its_end():
    lines = [f"x{number} = {number}" for number in range(10)]
    asserting = [*lines[:5], "assert (x1 ==\n    1)", *lines[5:], "np.testing.assert_allclose(x1, 1)"]
    assert slides_outputs.source_lines("\n".join(asserting)) == "\n".join(lines)
    assert slides_outputs.source_lines("\n".join(asserting), full=True) == "\n".join(asserting)
    cut = slides_outputs.source_lines("\n".join(lines * 2)).splitlines()
    assert len(cut) == slides_outputs.CODE_LINES and cut[-1] == "# … goes on in the notebook"
    printed = slides_outputs.printed(code("", stream="a\n" * 30)).splitlines()
    assert len(printed) == slides_outputs.OUTPUT_LINES and printed[-1] == "…"


LIST, SUM = "a, " * 20, "b + " * 9


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (f"f({LIST}{LIST}b)", [f"f({29 * 'a, '}a,", f"        {10 * 'a, '}b)"]),
        (f"    f('{LIST}', g({SUM}b), 2)", [f"    f('{LIST}',", f"            g({SUM}b), 2)"]),
        (f"x = '{LIST}{LIST}'", [f"x = '{LIST}{LIST}'"]),
        (f"f({LIST}{LIST}", [f"f({29 * 'a, '}a,", f"        {9 * 'a, '}a,"]),  # cut off, as on a slide
        (f"f(f'{{g(1, 2)}}{LIST}', {SUM}b)", [f"f(f'{{g(1, 2)}}{LIST}',", f"        {SUM}b)"]),
    ],
)
def test_long_lines_of_code_are_broken_inside_brackets_alone(line, lines):
    assert [part.rstrip() for part in broken(f"y = 1\n{line}")] == ["y = 1", *lines]


def test_long_lines_of_output_are_wrapped_unless_they_are_a_row_of_a_table():
    words, row = "a few words " * 9, "1.0   " * 18
    assert slides_outputs.printed(code("", stream=f"{words}\n{row}\n")).splitlines() == [
        *textwrap.wrap(words, WIDTH, subsequent_indent="    "),
        row.rstrip(),
    ]
    assert all(len(line) <= WIDTH for line in slides_outputs.printed(code("", stream=2 * row)).splitlines())


# Room.

FULL = "Many words that fill a slide. " * 20


def test_a_full_slide_is_divided_and_both_parts_keep_the_notes():
    pieces = [Piece("Look:"), Piece("```python\nx\n```"), Piece(FULL), Piece(FULL, step=True), Piece("End.", step=True)]
    slide = Slide("Ask the class", 2, pieces, ["Say."], ["01-001"], topic="One")
    first, second = divided([slide])
    assert (first.title, first.pieces) == ("Ask the class", pieces[:3])
    assert (second.title, second.pieces) == ("One", [Piece(FULL), pieces[4]]), "what begins a slide is no step"
    assert first.notes == second.notes == ["Say."] and first.cells == second.cells == ["01-001"]
    assert divided([Slide("One", 2, pieces[:2])]) == [Slide("One", 2, pieces[:2])]
    assert divided([Slide("One", 2, [Piece(3 * FULL)])]) == [Slide("One", 2, [Piece(3 * FULL)])], (
        "one piece stays whole"
    )


@pytest.mark.parametrize(
    "together",
    [
        ["**So:**", FULL],
        ["```python\n" + 8 * "x()\n" + "```", '<div class="printed">\n\n```text\n' + 8 * "x\n" + "```\n\n</div>"],
        [f'<div class="quiz"><p>{FULL}</p></div>', f'<div class="answer"><p>{FULL}</p></div>'],
    ],
)
def test_what_belongs_together_stays_on_one_slide(together):
    parts = divided([Slide("One", 2, [Piece(text) for text in [FULL, *together, FULL[:300]]])])
    assert any(set(together) <= {piece.text for piece in part.pieces} for part in parts)


def test_the_room_that_pieces_take():
    line = "x" * 70
    assert height(line) == 55 and height(f"{line}\n\n{line} {line}") == 150
    assert height("- a\n- b") == 110 and height("```\n1\n2\n```") == 86 and height("| a |\n|---|\n| b |") == 111
    assert height(f'<figure><img src="{line}"></figure>') < height(f"<figure><p>{line}</p><img></figure>")
    assert height("$$ a $$") < height(r"$$ a \\ b $$") and height('<div class="quiz"><p>a</p><li>b</li></div>') == 110


# Symbols.

D_K = "<i>d</i><sub>k</sub>"


@pytest.mark.parametrize(
    ("written", "set_"),
    [
        ("the square root of d_k?", f"the square root of {D_K}?"),
        ("× √d_k² ω_1", f'× √<span class="root">{D_K}</span>² <i>ω</i><sub>1</sub>'),
        ("<li>W_O&#x27;s d_model</li>", "<li><i>W</i><sub>O</sub>&#x27;s <i>d</i><sub>model</sub></li>"),
        ("10000^(−2/4)", "10000<sup>−2/4</sup>"),
        ("n_heads of tl.causal_mask.", "<code>n_heads</code> of <code>tl.causal_mask</code>."),
        ("[d_k](06_some_name.ipynb)", f"[{D_K}](06_some_name.ipynb)"),
    ],
)
def test_letters_with_an_index_are_symbols_and_names_are_code(written, set_):
    assert typeset(written) == set_


@pytest.mark.parametrize(
    "kept",
    ["`d_k`", "$d_k$", "$$\nd_k\n$$", "```py\nd_k = 1\n```", '<img alt="d_k">', "<code>d_k</code>", "a_-004"],
)
def test_code_formulas_and_tags_stay_as_they_are(kept):
    assert typeset(f"{kept} and d_k") == f"{kept} and {D_K}"
    assert typeset(typeset(f"{kept} and d_k")) == f"{kept} and {D_K}", "what has been set is left alone"


@pytest.mark.parametrize("entry", LESSONS, ids=lambda entry: entry.id)
def test_no_index_is_left_as_written_in_code(entry):
    texts = [KEPT.sub(" ", one.source) for one in slides.as_notebook(deck(entry), "t").cells]
    assert [found for text in texts for found in re.findall(r"[^\W\d]_[^\W_]+", text)] == []


# The pages.


def test_a_page_names_no_address_and_keeps_its_notes():
    links = "[next](05_tokens_and_embeddings.ipynb), [06 §2](06_positional_encoding.ipynb#cell-id=06-015)"
    pieces = [Piece("$x_1 < 2$ and `y`"), Piece(links, step=True)]
    slide = Slide("A & B of d_k", 2, pieces, ["Say."])
    page = slides.render([Slide("Why?", 1, [Piece("p")]), slide], "99 · Toy")
    assert not re.search(r"https?://(?!www\.w3\.org)|require|unpkg", page)
    assert "<title>99 · Toy</title>" in page and "A &amp; B" in page and "$x_1 &lt; 2$" in page
    assert f"of {D_K}</h2>" in page
    assert '<a href="05_tokens_and_embeddings.html">' in page and '<a href="06_positional_encoding.html">' in page
    notes, fragment = page.index('<aside class="notes">', page.index("A &amp; B")), page.index('class="fragment"')
    assert page.index("Say.") > notes and fragment > notes


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """The packages that carry what decks load, with a line in each file."""
    for name, (package, place) in slides.VENDORED.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(f"{package} {name}", encoding="utf-8")
    monkeypatch.setattr(notebook_files, "distribution", lambda package: FakeDistribution(tmp_path))


class FakeDistribution:
    def __init__(self, root) -> None:
        self.root = root

    def locate_file(self, place: str):
        return self.root / place


def test_build_writes_decks_and_their_list(packages, tmp_path, capsys):
    out = tmp_path / "out"
    slides.main(["A", "--out", str(out)])
    assert f"1 deck; open {out / 'A_claims_and_corrections.html'}" in capsys.readouterr().out
    index = (out / "index.html").read_text(encoding="utf-8")
    assert '<a href="A_claims_and_corrections.html">Claims and corrections</a>' in index
    assert {path.name for path in (out / "deck").iterdir()} == {*slides.VENDORED, "deck.css", "deck.js"}
    deck = (out / "A_claims_and_corrections.html").read_text(encoding="utf-8")
    assert deck.count('<aside class="notes">') == len(slides.deck_of(course.notebook("A")))
    assert set(re.findall(r'(?:src|href)="deck/([^"]+)"', deck)) <= {path.name for path in (out / "deck").iterdir()}


def test_one_deck_leaves_the_others_and_the_list(packages, tmp_path, monkeypatch, capsys):
    toys = tuple(course.Notebook(name, "toy", f"Toy {name}", 1, "x", exercises=1) for name in ("01", "02", "03"))
    monkeypatch.setattr(course, "NOTEBOOKS", toys)
    monkeypatch.setattr(slides, "deck_of", lambda entry: [Slide(f"Why <{entry.id}> d_k?", 1)])
    listed = []
    for name in ("02", "01"):
        slides.main([name, "--out", str(tmp_path)])
        listed.append(re.findall(r'href="(\d\d)_toy.html"', (tmp_path / "index.html").read_text(encoding="utf-8")))
    assert listed == [["02"], ["01", "02"]]
    assert f"Why &lt;02&gt; {D_K}?" in (tmp_path / "index.html").read_text(encoding="utf-8")
    slides.main(["--out", str(tmp_path)])
    assert f"3 decks; open {tmp_path / 'index.html'}" in capsys.readouterr().out


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match=r"no-such-package-here is not installed: pip install -e \"\.\[slides\]\""):
        notebook_files.carried("no-such-package-here", "x.js", "slides")
    with pytest.raises(FileNotFoundError, match=r"98_none.ipynb is neither beside transformer_lib nor"):
        slides.deck_of(course.Notebook("98", "none", "None", 1, "nothing"))


@pytest.mark.parametrize(("name", "said"), [("4", "must be one of 00 to 25 or A, got '4'"), ("04", "no-such-package")])
def test_the_command_says_what_is_wrong_in_a_line(name, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(slides, "VENDORED", {"x.js": ("no-such-package-here", "x.js")})
    with pytest.raises(SystemExit):
        slides.main([name, "--out", str(tmp_path)])
    assert said in capsys.readouterr().err


def test_formulas_come_from_one_file_as_on_the_site():
    assert slides.VENDORED["mathjax.js"] == notebook_files.MATHJAX and notebook_files.MATHJAX[1].endswith(
        "tex-svg-full.js"
    )
