"""What a number is, which ones are within a tolerance, and what is said of those that are not."""

from __future__ import annotations

import ast
import inspect
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbval.plugin import IPyNbCell, IPyNbFile

from approximate import HTML, Tolerance, numbers, settle, settle_outputs, tolerance_of

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]


def printed(text: str, kind: str = "text/plain") -> list[str]:
    return [number.text for number in numbers(text, kind)]


def within(stored: str, found: str, tag: str = "approx:0.02", kind: str = "text/plain") -> bool:
    return settle(stored, found, Tolerance.read(tag), kind)[0] == stored


ARE_NUMBERS = {
    "0.98 12 .98 -.5 007": "0.98 12 .98 -.5 007",
    "[1., 2.] [1. 2.\n 3.] (4.) 5.e-01 6.  ]": "1. 2. 1. 2. 3. 4. 5.e-01 6.",
    "It is 5. Then 6.5.": "5 6.5",
    "-3 −3 +3 (-3) [-1] =-5 ->6 ^-7 ±8": "-3 −3 +3 -3 -1 -5 6 -7 8",
    "3-5, 3–5, x−1, (a)-2, 1-2j, 2%-1%, [0]-1, {0}-1": "3 5 3 5 1 2 1 2 2 1 0 1 0 1",
    "1e-05 1.2e+03 1E5 2e−3 1e-": "1e-05 1.2e+03 1E5 2e−3 1",
    "37 % 37% 0.95±0.02 12ms 1.5x 5×3 k=4 [0.1,0.2] #3": "37 37 0.95 0.02 12 1.5 5 3 4 0.1 0.2 3",
    "1,234 -1,234,567.8 (1, 234) 12,34 1,2345 0,123": "1,234 -1,234,567.8 1 234 12 34 1 2345 0 123",
    "R² = 0.9, 10² and 10⁻³": "0.9 10 10",
    "2026-11-03 12:30 3/4 3-gram 1st": "2026 11 03 12 30 3 4 3 1",
}
ARE_TEXT = (
    "d2l bank_04 W_2 GPT-2 top-5 x-1 F1 h₁ _5 layers.0.weight v2.1 é2 x.5 "
    "0x7f3a5c 0xff 64x64 1_000 10_gram 4be1c2 4be1c2-77 2.13.0 2.13.0+cpu 10.0.0.1 1e2000 1.5x3 "
    "inf -inf nan ½ ² \x1b[31m \x1b[0;32m &#39; &#x27;"
)


@pytest.mark.parametrize(("text", "expected"), ARE_NUMBERS.items())
def test_what_is_a_number(text, expected):
    assert printed(text) == expected.split()
    assert all(text[number.start : number.end] == number.text for number in numbers(text))


@pytest.mark.parametrize("word", ARE_TEXT.split())
def test_what_is_text_although_it_has_digits(word):
    assert printed(word) == []
    assert printed(f"5 {word} 6") == ["5", "6"]
    assert not within(f"5 {word}", f"5 {word}1", "approx:100")


def test_values():
    values = [number.value for number in numbers("−1,234.5 1.e-05 +.5 1E3 2.,")]
    assert values == [Decimal("-1234.5"), Decimal("0.00001"), Decimal("0.5"), 1000, 2]


PAGE = """<table style="width:37%"><tr><td title="5.1">0.98</td><td>&#8722;7</td></tr></table><!-- it's 8 > 6
--><style>
a{width:9px}</style><script>x = 10</script><p>p < 0.05, q > 0.01</p>
<img src="data:image/svg+xml;base64,A+1/2=" alt="ends > 0.9, each&#39;s" width=11><b aria-label='12'>13</b>"""


def test_of_html_the_numbers_are_those_that_are_seen_or_read_aloud():
    assert printed(PAGE, HTML) == ["5.1", "0.98", "7", "0.05", "0.01", "0.9", "12", "13"]
    assert not within(PAGE, PAGE.replace("A+1/2", "A+1/3"), "approx:100", HTML)
    assert not within(PAGE, PAGE.replace("37%", "38%"), "approx:100", HTML)
    assert within(PAGE, PAGE.replace("0.98", "1.00").replace("0.9,", "0.91,"), kind=HTML)


WITHIN = [
    ("0.98", "1.00", "approx:0.02"),  # exactly as much, where floating point would say more
    ("accuracy −0.01, loss 1.2e+03", "accuracy 0.01, loss 1.2e+03", "approx:0.02"),
    ("37 %, 1,001 words", "38 %, 998 words", "approx:5%"),
    ("1e-05 and -2.0e-05", "1.04e-05 and -2.1e-05", "approx:5%"),
    ("-100", "-105", "approx:5%"),
    ("0.0 and 1", "-0.000 and 1.01", "approx:5%"),
    ("0.95±0.02 in [0.9,1.0]", "0.96±0.01 in [0.91,0.99]", "approx:0.02"),
    ("| a |  9.98 |\n| b | 20.00 |", "| a | 10.01 |\n| b |  19.99|", "approx:5%"),
    ("[ 9.98 1.  ]\n", "[10.01 0.98]\n", "approx:0.03"),
    ("   epoch  loss\n0      1  9.98\n", "   epoch   loss\n0      1  10.01\n", "approx:0.03"),
    ("loss\n9.98", " loss\n10.01", "approx:0.03"),
    ("10.01 loss\nname ", "9.98  loss\nname", "approx:0.03"),
    ("5" * 60 + ".5", "5" * 60 + ".6", "approx:0.1"),
    ("1e999 1e-999", "1e999 2e-999", "approx:1e-998"),
]
OUTSIDE = [
    ("0.98", "1.0000001", "approx:0.02"),
    ("100", "105.01", "approx:5%"),
    ("0", "0.0000001", "approx:5%"),
    ("1e-05", "1e-04", "approx:5%"),
    ("1,234", "1,334", "approx:5%"),
    ("−0.5", "0.5", "approx:0.02"),
    ("12", "13", "approx:0.5"),  # an integer is a number, too
    ("5" * 60 + ".5", "5" * 60 + ".6", "approx:0.09"),
    ("0.98 good", "0.98 bad", "approx:0.02"),
    ("0.98 good", "0.98 good 1", "approx:100"),
    ("0.98, 0.99", "0.98", "approx:100"),
    ("0.98 W_2", "0.98 W_3", "approx:100"),
    ("0.98", "nan", "approx:100"),
    ("inf 1", "-inf 1", "approx:100"),
    ("37 %", "37", "approx:1"),
    ("12ms", "12s", "approx:1"),
    ("a  b 9.98", "a b 9.99", "approx:0.02"),  # nothing was padded: spaces count
    ("a  9.98", "a 9.99", "approx:0.02"),
    ("a b 9.98", "ab 10.00", "approx:0.02"),
    ("a\nb 9.98", "a b 10.00", "approx:0.02"),
    ("9.98\n", "10.00", "approx:0.02"),
    ("ends at 5.", "ends at 5", "approx:0.02"),
]


@pytest.mark.parametrize(("stored", "found", "tag"), WITHIN)
def test_within(stored, found, tag):
    assert settle(stored, found, Tolerance.read(tag)) == (stored, [])


@pytest.mark.parametrize(("stored", "found", "tag"), OUTSIDE)
def test_outside(stored, found, tag):
    assert not within(stored, found, tag)


def test_the_number_that_left_is_named_with_its_line():
    stored, found = "seed 1\nmean 0.91 of 40\nbest  9.98", "seed 1\nmean 0.87 of 40\nbest 10.01"
    settled, reports = settle(stored, found, Tolerance.read("approx:0.03"))
    assert settled == stored.replace("0.91", "0.87")  # what is tolerated no longer differs
    assert reports == [
        "number 2 of 4, in the line 'mean 0.91 of 40':\n"
        "    stored 0.91, found 0.87, difference 0.04, allowed 0.03"
    ]  # fmt: skip
    _, (report,) = settle("100 −1,000", "101 −900", Tolerance.read("approx:2.5%"))
    assert report.endswith("stored −1,000, found −900, difference 100, allowed 25.0 (2.5% of −1,000)")


def test_of_a_long_line_the_report_shows_what_is_around_the_number():
    text = "a" * 100 + " 0.5 " + "b" * 100
    _, (report,) = settle(text, text.replace("0.5", "0.9"), Tolerance.read("approx:0.02"))
    assert f"'…{'a' * 49} 0.5 {'b' * 49}…'" in report


def test_a_number_more_leaves_only_its_line_different():
    settled, reports = settle("a 0.50\nb 0.60\n", "a 0.51\nb 0.61 0.7\n", Tolerance.read("approx:0.02"))
    assert (settled, reports) == ("a 0.50\nb 0.61 0.7\n", ["numbers stored: 2, found: 3"])
    assert settle("1\n", "1 2\n3\n", Tolerance.read("approx:1"))[0] == "1 2\n3\n"
    assert settle("1\n1\n", "1 2\n3\n", Tolerance.read("approx:9"), HTML)[0] == "1 2\n3\n"


AMOUNTS = [("approx:0.02", "0.02", False), ("approx:.5", "0.5", False), ("approx:5%", "5", True)]
AMOUNTS += [("approx:1e-5", "1e-5", False), ("approx:12.5%", "12.5", True)]


@pytest.mark.parametrize(("tag", "amount", "relative"), AMOUNTS)
def test_a_tag_says_how_much(tag, amount, relative):
    assert tolerance_of(["slide", tag]) == Tolerance(Decimal(amount), relative)


BAD_TAGS = "approx approx: approx:0 approx:0.0% approx:-1 approx:+1 approx:five approx:5%% approx:5_0 approx:1e9999"
BAD_TAGS += " approx:nan approx:inf approx:5. approx=5 approximately:5 approx:0,02 approx:٥"


@pytest.mark.parametrize("tag", [*BAD_TAGS.split(), "approx: 5", "approx:5 %"])
def test_a_tag_of_another_form_is_refused(tag):
    with pytest.raises(ValueError, match=r"the tag must be approx:<number> or .* positive number, got 'approx"):
        tolerance_of([tag])


def test_a_cell_has_at_most_one_tolerance():
    assert tolerance_of(["check", "claim:C001"]) is None
    with pytest.raises(ValueError, match="a cell must have one tag approx, got approx:1, approx:5%"):
        tolerance_of(["approx:1", "approx:5%"])


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return NotebookNode(output_type="stream", name=name, text=text)


def data(**kinds: str) -> NotebookNode:
    bundle = {kind.replace("_", "/"): text for kind, text in kinds.items()}
    return NotebookNode(output_type="display_data", metadata={}, data=bundle)


def test_texts_are_compared_with_those_of_their_kind_and_the_others_left_alone():
    stored = [
        stream("a 1"),
        data(text_plain="b 1", image_png="1"),
        data(text_plain="c 1", text_html="<p>1</p>", text_markdown="1"),
    ]
    found = [
        data(text_plain="b 2", image_png="2"),
        stream("a 2"),
        data(text_plain="c 9", text_html="<p>2</p>", text_markdown="2"),
    ]
    settled, reports = settle_outputs(stored, found, Tolerance.read("approx:1"))
    assert settled == [
        data(text_plain="b 1", image_png="2"),
        stream("a 1"),
        data(text_plain="c 9", text_html="<p>1</p>", text_markdown="1"),
    ]
    assert [report.split(":")[0] for report in reports] == ["text/plain, number 1 of 1, in the line 'c 1'"]
    assert found[0] == data(text_plain="b 2", image_png="2")  # what came from the kernel is not changed


def test_outputs_may_be_more_or_fewer():
    tolerance = Tolerance.read("approx:1")
    assert settle_outputs([], [stream("1")], tolerance) == ([stream("1")], [])
    assert settle_outputs([stream("1")], [], tolerance) == ([], [])
    assert settle_outputs([stream("1")], [stream("2", "stderr")], tolerance) == ([stream("2", "stderr")], [])


# Texts of pieces that are likely to meet badly, and numbers in every form.
PIECES = ["5", "0", "1,234", "-", "−", "+", ".", ",", "e", "e-05", "x", "_", "d2l", "%", " ", "  ", "\n", "(", ")"]
PIECES += ["[", "]", "<b>", "</b>", '<i alt="', '">', "'", "&#39;", "nan", "±", "0x", "\x1b[31m"]
ANY_TEXT = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
SAME = st.sampled_from(PIECES).map(lambda piece: (piece, piece))
NEAR = st.sampled_from([("1.00", "0.98"), ("9.98", "10.01"), ("-0.01", "0.01"), ("100", "105"), (" ", "  ")])
PAIRS = st.lists(SAME | SAME | NEAR | st.tuples(*[st.sampled_from(PIECES)] * 2), min_size=1, max_size=10)
KINDS = st.sampled_from(["text/plain", HTML])
TAGS = st.sampled_from(["approx:0.02", "approx:3", "approx:5%"])


@given(ANY_TEXT | st.text(), KINDS, TAGS)
def test_a_text_is_within_any_tolerance_of_itself(text, kind, tag):
    assert settle(text, text, Tolerance.read(tag), kind) == (text, [])


@given(ANY_TEXT, KINDS)
def test_numbers_never_touch_and_are_where_they_say(text, kind):
    found = numbers(text, kind)
    assert all(text[number.start : number.end] == number.text for number in found)
    assert all(one.end < other.start for one, other in zip(found, found[1:], strict=False))
    assert all(number.value.is_finite() for number in found)


def skeleton(text: str, kind: str) -> list[str]:
    """Return what is not number nor space, piece by piece, written without the functions under test."""
    starts, ends = [], []
    for number in numbers(text, kind):
        starts.append(number.start)
        ends.append(number.end)
    pieces = [text[start:end] for start, end in zip([0, *ends], [*starts, len(text)], strict=True)]
    return ["".join(piece.split(" ")) for piece in pieces]


@given(PAIRS, KINDS, TAGS)
def test_what_is_within_has_the_same_words_and_near_numbers(pairs, kind, tag):
    stored, found = ("".join(pieces) for pieces in zip(*pairs, strict=True))
    tolerance = Tolerance.read(tag)
    settled, reports = settle(stored, found, tolerance, kind)
    assert not (reports and settled == stored)
    if settled == stored:
        assert skeleton(stored, kind) == skeleton(found, kind)
        for old, new in zip(numbers(stored, kind), numbers(found, kind), strict=True):
            assert abs(new.value - old.value) <= tolerance.allowed(old.value)


@given(
    st.lists(st.decimals(-2000, 2000, places=2), min_size=1, max_size=6),
    st.lists(st.sampled_from([Decimal(-2), Decimal(0), Decimal(1), Decimal(2)]), min_size=6, max_size=6),
)
def test_an_aligned_table_may_be_padded_in_another_way(values, shifts):
    """Each column is as wide as what stands in it, so that the header moves, too."""

    def table(column: list[Decimal], style: str) -> str:
        cells = [format(value, style) for value in column]
        width = max(map(len, ["loss", *cells]))
        rows = [f"row {index}  {cell.rjust(width)} |" for index, cell in enumerate(cells)]
        return "\n".join([f"name   {'loss'.rjust(width)} |", *rows])

    moved = [value + shift / 100 for value, shift in zip(values, shifts, strict=False)]
    for style in [".2f", ",.2f"]:
        assert within(table(values, style), table(moved, style))
    moved[-1] += Decimal("0.05")
    assert not within(table(values, ".2f"), table(moved, ".2f"))


def test_what_is_relied_on_in_nbval_is_there():
    """A new release that compares in another way must be read before it is allowed."""
    assert list(inspect.signature(IPyNbCell.compare_outputs).parameters) == ["self", "test", "ref", "skip_compare"]
    compare, run = inspect.getsource(IPyNbCell.compare_outputs), inspect.getsource(IPyNbCell.runtest)
    assert "self.comparison_traceback = []" in compare
    assert "if not self.compare_outputs(outs, coalesce_streams(self.cell.outputs)):" in run
    assert r"'\n'.join(self.comparison_traceback)" in run and "if self.options['check'] and not unrun:" in run
    assert "self.cell = cell" in inspect.getsource(IPyNbCell.__init__)
    assert "self.nb = nbformat.read(" in inspect.getsource(IPyNbFile.collect)


def imports_nbval(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        if any(name.split(".")[0] == "nbval" for name in names):
            return True
    return False


def test_nbval_is_imported_in_one_place():
    files = [ROOT / "conftest.py", *(ROOT / "tests").glob("*.py")]
    assert sorted(path.name for path in files if imports_nbval(path)) == ["nbval_cells.py", "test_approximate.py"]
