"""The reading site: built without a warning, complete, each link leads somewhere, and nothing comes from a network."""

from __future__ import annotations

import base64
import copy
import functools
import html
import json
import pkgutil
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from urllib.parse import unquote, urlsplit

import build_site
import pytest
import site_docstrings
import site_pages
import site_panels
import site_register
import site_services

import built_site
import studies
import transformer_lib as tl
from transformer_lib.course.cells import for_readers, source_of, tags_of, text_of
from transformer_lib.course.notebooks import NOTEBOOKS, notebook
from transformer_lib.course.reading import entries, literature
from transformer_lib.course.teaching import notebook_files

ROOT = built_site.ROOT
GUIDE = sorted((ROOT / "docs" / "teaching").glob("*.md"))
TAG = re.compile(r"<(a|img|script|link|iframe|source|object|video|audio|embed)\b([^>]*)>")
ATTRIBUTE = re.compile(r"([\w-]+)=\"([^\"]*)\"")
LOADS = {"link": "href", "object": "data"}


class Page:
    """What a page holds that others can name, what it links to, and what it loads. Sphinx writes each quote as one."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_text("utf-8")
        self.ids = set(re.findall(r"\sid=\"([^\"]+)\"", self.text))
        self.links, self.loads, self.unnamed = [], [], []
        for tag, attributes in TAG.findall(self.text):
            given = {name: html.unescape(value) for name, value in ATTRIBUTE.findall(attributes)}
            if tag == "a":
                self.links += [given["href"]] if "href" in given else []
                continue
            target = given.get(LOADS.get(tag, "src"))
            self.loads += [target] if target else []
            self.unnamed += [target] if tag == "img" and not given.get("alt") else []


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    return built_site.built(tmp_path_factory)


@functools.cache
def pages(site: Path) -> dict[Path, Page]:
    found = (path.resolve() for path in sorted(site.rglob("*.html")) if "_static" not in path.parts)
    return {path: Page(path) for path in found}


def raw(entry) -> dict:
    return notebook_files.read(ROOT / "notebooks" / entry.filename)


def tagged(entry, tag: str) -> int:
    return sum(tag in tags_of(cell) for cell in raw(entry)["cells"])


@functools.cache
def file_at(folder: Path, name: str) -> Path | None:
    """Return the file of the site that a link in this folder names, if there is one."""
    file = (folder / unquote(name)).resolve()
    return file if file.is_file() else None


def broken(site: Path, page: Page, target: str) -> bool:
    """True when a link leads to no file of the site, or to no place in it."""
    parts = urlsplit(target)
    file = file_at(page.path.parent, parts.path) if parts.path else page.path
    if file is None or not file.is_relative_to(site.resolve()):
        return True
    return bool(parts.fragment) and file in pages(site) and unquote(parts.fragment) not in pages(site)[file].ids


# The site ------------------------------------------------------------------------------------------------


def test_everything_has_its_page(site):
    expected = {f"notebooks/{entry.stem}.html" for entry in NOTEBOOKS} | {"index.html", "search.html"}
    expected |= {f"docs/teaching/{page.stem}.html" for page in GUIDE}
    expected |= {f"docs/api/{page.stem}.html" for page in (ROOT / "docs" / "api").glob("*.md")}
    expected |= {"data/README.html", "docs/editors.html", "docs/multi30k.html", "docs/scale.html", "docs/speed.html"}
    expected |= {"docs/glossary.html", "docs/references.html"}
    assert {name for name in expected if not (site / name).is_file()} == set()
    for entry in NOTEBOOKS:
        assert (site / "notebooks" / entry.filename).read_bytes() == (ROOT / "notebooks" / entry.filename).read_bytes()


def test_every_link_leads_somewhere(site):
    inside = [(page, link) for page in pages(site).values() for link in set(page.links) if not urlsplit(link).scheme]
    written = [link for page, link in inside if page.path.parent.name in ("notebooks", "teaching")]
    assert len(written) > 3000  # without those of the pages that Sphinx makes: sources, index
    assert [(page.path.name, link) for page, link in inside if broken(site, page, link)] == []


def test_links_to_other_machines_are_links_to_jupyterlab_and_to_papers(site):
    outside = {(page, link) for page in pages(site).values() for link in page.links if urlsplit(link).scheme}
    repository = built_site.setting("SITE_REPOSITORY_URL").rstrip("/")
    ours = tuple(filter(None, (repository, built_site.setting("SITE_URL"))))  # its buttons, and the page for lost ones
    outside = {(page, link) for page, link in outside if not link.startswith(ours)}
    papers = {(page, link) for page, link in outside if page.path.name == "references.html"}
    assert {link for _, link in papers} == {paper.url for paper in literature.load().values()}
    in_lab = {f"http://localhost:8888/lab/tree/notebooks/{entry.filename}" for entry in NOTEBOOKS}
    services = run_buttons() if repository else set()  # an address that nobody has set is on no page
    further = {link for page, link in outside if page.path.parent.name == "notebooks"}  # a notebook's further reading
    assert {link for _, link in outside - papers} == in_lab | services | further
    assert further - in_lab - services <= {paper.url for paper in literature.load().values()}


def run_buttons() -> set[str]:
    return {to for entry in NOTEBOOKS for to in site_services.addresses(f"notebooks/{entry.filename}").values()}


def test_without_a_repository_no_page_names_a_service_to_run_it(monkeypatch):
    monkeypatch.delenv("SITE_REPOSITORY_URL", raising=False)
    assert site_services.addresses("notebooks/a.ipynb") == {} and site_services.buttons("a.ipynb", "b.html") == ""
    assert site_services.filled_in("x/<owner>/<repository>") == "x/<owner>/<repository>"


@pytest.mark.parametrize("address", ["https://github.com/ann/course", "https://github.com/ann/course.git"])
def test_a_repository_on_github_gives_each_notebook_its_run_buttons(monkeypatch, address):
    monkeypatch.setenv("SITE_REPOSITORY_URL", address)
    monkeypatch.setenv("SITE_REPOSITORY_BRANCH", "next")
    links = re.findall(r'href="([^"]*)" class="run"', site_pages.top_links(notebook("04")))
    name = notebook("04").filename
    assert links == [
        f"https://colab.research.google.com/github/ann/course/blob/next/notebooks/{name}",
        f"https://mybinder.org/v2/gh/ann/course/next?urlpath=lab/tree/notebooks/{name}",
        "https://codespaces.new/ann/course/tree/next",
    ]
    page = site_services.filled_in((ROOT / "docs" / "editors.md").read_text("utf-8"))
    assert page.count("ann/course") >= 4 and page.count("<owner>") == 1  # the one that says what it stands for


@pytest.mark.parametrize(
    "address", ["https://example.org/ann/course", "https://github.com/ann", "http://github.com/a/b"]
)
def test_a_repository_elsewhere_has_none(monkeypatch, address):
    monkeypatch.setenv("SITE_REPOSITORY_URL", address)
    assert 'class="run"' not in site_pages.top_links(notebook("04"))


def test_pages_load_only_what_lies_beside_them(site):
    for page in pages(site).values():
        targets = [target for target in page.loads if not target.startswith(("data:", "#"))]
        assert [target for target in targets if urlsplit(target).netloc or broken(site, page, target)] == []
    for sheet in site.rglob("*.css"):
        assert re.findall(r"url\(['\"]?(?:https?:)?//[^)]*|@import[^;]*//[^;]*", sheet.read_text("utf-8")) == []


def test_every_picture_has_words(site):
    assert [(page.path.name, unnamed) for page in pages(site).values() for unnamed in page.unnamed] == []


@pytest.mark.parametrize("entry", NOTEBOOKS, ids=lambda entry: entry.id)
def test_a_notebook_page_is_whole(site, entry):
    page = pages(site)[(site / "notebooks" / f"{entry.stem}.html").resolve()]
    cells = for_readers(raw(entry)["cells"])
    assert {f"cell-{cell['id']}" for cell in cells[1:]} <= page.ids
    folded = tagged(entry, "hide-input")
    assert page.text.count('<details class="admonition hide above-input">') == folded
    assert page.text.count("Show the solution") == page.text.count("Hide the solution") == folded
    assert page.text.count('class="in-lab"') == tagged(entry, "widget")
    assert page.text.count('class="course-strip"') == 1
    assert "tag_claim" not in page.text and "tag_nbval" not in page.text
    prose = "".join(source_of(cell) for cell in cells if cell["cell_type"] == "markdown")
    assert page.text.count('<span class="math') >= len(re.findall(r"(?<!\$)\$[^$\n]+\$(?!\$)", prose)) / 2


def test_what_is_predicted_opens_with_a_click():
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Title"},
        {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "Predict it."},
        code_cell("c", "print(5)"),
        code_cell("d", "assert 5", "guard"),
        {"cell_type": "markdown", "id": "e", "metadata": {"tags": ["telling"]}, "source": "It is $5$."},
        {"cell_type": "markdown", "id": "f", "metadata": {}, "source": "## Next"},
        code_cell("g", "print(7)"),
    ]
    page = site_pages.page_of({"cells": cells}, notebook("04"))["cells"]
    shown = {cell["source"]: cell["metadata"].get("tags") for cell in page if cell["cell_type"] == "code"}
    assert shown == {"print(5)": ["hide-output"], "print(7)": None}
    told = [cell["source"] for cell in page if "<details>" in cell["source"]]
    assert len(told) == 1 and "<summary><b>What happened</b></summary>\n\nIt is $5$.\n\n</details>" in told[0]


def code_cell(name: str, source: str, *tags: str) -> dict:
    outputs = [{"output_type": "stream", "name": "stdout", "text": "seen"}]
    return {"cell_type": "code", "id": name, "metadata": {"tags": [*tags]}, "source": source, "outputs": outputs}


def test_the_folds_of_a_page_say_what_opens(site):
    page = pages(site)[(site / "notebooks" / "09_residuals_norms_feed_forward.html").resolve()].text
    assert page.count("Show what comes out") == page.count("Hide what comes out") > 5
    assert page.count("<summary><b>What happened</b></summary>") > 5


def test_cells_named_in_the_guide_are_links(site):
    page = pages(site)[(site / "docs" / "teaching" / "04_scaled_dot_product_attention.html").resolve()]
    assert "../../notebooks/04_scaled_dot_product_attention.html#cell-04-034" in page.links
    assert "<h1>04 · Scaled dot-product attention, for teachers" in page.text


def test_the_register_has_every_row_and_leads_to_cells(site):
    page = pages(site)[(site / "docs" / "register.html").resolve()]
    whole, places = site_register.load(), site_register.places()
    rows = re.findall(r"<tr[^>]*>\s*<td[^>]*><p>([CR]\d+)</p></td>", page.text)  # first in its row
    assert sorted(rows) == [row["id"] for kind in ("claims", "errata") for row in whole[kind]]
    cells = {place.link for found in places.values() for place in found if place.link}
    assert len(cells) > 60 and len(cells & set(page.links)) > 60
    tests = {place.label.strip("`") for found in places.values() for place in found if not place.link}
    assert all(test in page.text for test in tests)


def test_the_reference_has_every_public_name(site):
    ids = {name for page in pages(site).values() if page.path.parent.name == "api" for name in page.ids}
    found = {name: getattr(tl, name) for name in (*tl.__all__, *tl.COURSE)}
    modules = {name: thing.__name__ for name, thing in found.items() if isinstance(thing, ModuleType)}
    assert {f"transformer_lib.{name}" for name in set(tl.__all__) - set(modules)} <= ids
    assert {f"module-{name}" for name in modules.values()} - {"module-transformer_lib.course.lab"} <= ids
    for package in (studies, tl.lab):
        assert {f"module-{package.__name__}.{found.name}" for found in pkgutil.iter_modules(package.__path__)} <= ids
    assert {f"transformer_lib.course.figures.widgets.{name}" for name in tl.widgets.__all__ if name != "Panel"} <= ids


def test_the_glossary_and_the_references_have_every_entry_and_no_mark_is_left(site):
    words, papers, *_ = (pages(site)[(site / "docs" / name).resolve()] for name in ("glossary.html", "references.html"))
    assert len([name for name in words.ids if name.startswith("term-")]) == len(entries())
    assert {f"ref-{key}" for key in literature.load()} <= papers.ids
    marks = [
        page.path.name for page in pages(site).values() if re.search("<!-- (?:glossary|references) -->", page.text)
    ]
    assert marks == []


def test_the_search_knows_the_words(site):
    index = (site / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(")
    assert all(f'"{word}"' in index for word in ("softmax", "causal", "bleu", "scaled_dot_product_attention"))
    scorer = (ROOT / "docs" / "search_scorer.js").read_text("utf-8")
    assert scorer in (site / "_static" / "language_data.js").read_text("utf-8"), "Sphinx's own order would hold"


@pytest.mark.slow
def test_students_find_no_page_for_teachers(tmp_path_factory, site):
    """Neither as a page, nor by a link, nor by the search: what only the guide says is not in the index."""
    students = built_site.built(tmp_path_factory, for_students=True)
    assert not list(students.rglob("*teaching/*"))
    links = {link for page in pages(students).values() for link in page.links}
    assert [link for link in links if "docs/teaching" in link] == []
    every, fewer = (search_index(each) for each in (site, students))
    left_out = set(every["docnames"]) - set(fewer["docnames"])
    assert left_out == {f"docs/teaching/{page.stem}" for page in GUIDE}
    guide = {number for number, name in enumerate(every["docnames"]) if name in left_out}
    for kind in ("terms", "titleterms"):
        only_there = {word for word, found in every[kind].items() if numbers(found) <= guide}
        assert len(only_there) > 10 and only_there & set(fewer[kind]) == set()


def search_index(site: Path) -> dict:
    return json.loads((site / "searchindex.js").read_text("utf-8").removeprefix("Search.setIndex(").removesuffix(")"))


def numbers(found: int | list[int]) -> set[int]:
    """Return the pages of a word; Sphinx writes a single one without a list."""
    return set(found) if isinstance(found, list) else {found}


# Its parts -----------------------------------------------------------------------------------------------


def test_links_to_cells():
    text = '<a href="10_encoder.ipynb">a</a> <a href="A_claims.ipynb#cell-id=a_-1">b</a> <a href="other.ipynb">c</a>'
    assert site_pages.linked_html(text) == (
        '<a href="10_encoder.html">a</a> <a href="A_claims.html#cell-a_-1">b</a> <a href="other.ipynb">c</a>'
    )


def test_what_students_read_has_no_page_for_teachers_and_no_way_to_one(tmp_path):
    build_site.prepare(tmp_path / "all")
    build_site.prepare(tmp_path / "students", for_students=True)
    every, fewer = (
        {path.relative_to(tmp_path / name) for path in (tmp_path / name).rglob("*") if path.is_file()}
        for name in ("all", "students")
    )
    left_out = every - fewer
    assert fewer < every and left_out and all(path.parts[:2] == ("docs", "teaching") for path in left_out)
    texts = {path: (tmp_path / "students" / path).read_text("utf-8") for path in fewer}
    assert [path for path, text in texts.items() if re.search(r"\bteaching/|>For teachers<", text)] == []
    assert "[The glossary](/docs/glossary.md)" in texts[Path("index.md")]


def test_a_page_for_students_loses_whole_items_rows_and_contents():
    page = "- [a](teaching/a.md) b\n  c\n- d\n\n| [e](teaching/e.md) |\n| f |\n/docs/teaching/index\n/docs/g\n"
    assert site_pages.without_guide(page) == "- d\n\n| f |\n/docs/g\n"
    with pytest.raises(ValueError, match="from an item, a row or the contents, got 'See .a.*teaching/'"):
        site_pages.without_guide("Text.\nSee [a](teaching/a.md).\n")


def test_formulas_in_blocks_of_html():
    text = "costs $x$\n\n<details>is $y_1$ or $2$</details>"
    marked = r'<span class="math">\(y_1\)</span> or <span class="math">\(2\)</span>'
    assert site_pages.in_html(text) == f"costs $x$\n\n<details>is {marked}</details>"


def test_names_of_cells_in_the_guide():
    page = site_pages.guide_page("# 04 · Title\n\n`04-054`, `a_-004`, `16-speed-1`, `04.1`, `99`")
    assert page.startswith("# 04 · Title, for teachers\n")
    assert '"../../notebooks/A_claims_and_corrections.html#cell-a_-004"><code>a_-004</code>' in page
    assert page.count("<a ") == 3 and page.endswith("`04.1`, `99`")


def joined(output: dict) -> str:
    """Return the text of an output, which a notebook's file may keep as lines, without what makes a question live."""
    shown = output.get("data", {"text": output.get("text", "")})
    text = "\0".join(text_of(value) for value in shown.values())
    return re.sub(r'<div class="asked"[^>]*>(.*?)</div>(?=\0|$)', r"\1", text, flags=re.DOTALL)


def test_a_page_changes_no_output_and_not_the_notebook():
    entry = notebook("04")
    original = raw(entry)
    page = site_pages.page_of(copy.deepcopy(original), entry)
    original["cells"] = for_readers(original["cells"])
    before, after = (
        [joined(output) for cell in each["cells"] for output in cell.get("outputs", [])] for each in (original, page)
    )
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert ["course-strip" in changed[0], "in-lab" in changed[1], len(changed)] == [True, True, 2]
    sources = [source_of(cell) for cell in original["cells"] if cell["cell_type"] == "code"]
    assert sources == [cell["source"] for cell in page["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("`x` and ``y``", "``x`` and ``y``"),
        ("a * b, |x|, width_", r"a \* b, \|x\|, width\_"),
        ("`*args` of d_model", "``*args`` of d_model"),
    ],
)
def test_docstrings_are_plain_text(line, safe):
    lines = [line, ">>> f(`x`)"]
    site_docstrings.as_restructuredtext(None, "", "", None, None, lines)
    assert lines == [safe, ">>> f(`x`)"]


@pytest.mark.parametrize("address", ["", "https://example.org/course/"])
def test_buttons_need_a_repository(monkeypatch, address):
    monkeypatch.setenv("SITE_REPOSITORY_URL", address)
    monkeypatch.setattr(sys, "path", [*sys.path])
    options = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "conf.py"))["html_theme_options"])
    assert options.repository_url == address.rstrip("/")
    buttons = {options.use_repository_button, options.use_issues_button, options.use_edit_page_button}
    assert buttons == {bool(address)}


def test_the_front_page_is_edited_where_it_lies(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    front_page = runpy.run_path(str(ROOT / "docs" / "conf.py"))["front_page"]
    for page, expected in [("index", "docs"), ("docs/api/index", "")]:
        context = {"doc_path": ""}
        front_page(None, page, "page.html", context, None)
        assert context == {"doc_path": expected}


def test_the_picture_of_a_cell():
    stored = "data:image/svg+xml;base64," + base64.b64encode(b"<svg/>").decode()
    cells = [{"id": "a", "outputs": [{"data": {"text/html": [f'<img src="{stored}"', " alt=x>"]}}]}, {"id": "b"}]
    assert site_pages.picture_of({"cells": cells}, "a") == "<svg/>"
    for cell_id in ("b", "c"):
        with pytest.raises(ValueError, match=f"cell_id must name a cell with a stored SVG picture, got '{cell_id}'"):
            site_pages.picture_of({"cells": cells}, cell_id)


# The command ---------------------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch):
    """The command, with a Sphinx that writes one file and ends with the status in `result`."""
    cmd = pytest.importorskip("sphinx.cmd.build", reason='the site needs pip install -e ".[site]"')
    result = {"status": 0}

    def sphinx(options: list[str]) -> int:
        page = Path(options[-1]) / ".buildinfo"
        page.parent.mkdir(parents=True)
        page.touch()
        for folder in ("_static", "notebooks"):
            (page.parent / folder).mkdir()
        return result["status"]

    monkeypatch.setattr(cmd, "build_main", sphinx)
    monkeypatch.setattr(build_site, "prepare", lambda source, *, for_students, panels: None)
    monkeypatch.setattr(site_panels, "all_living", dict)
    return lambda out, status=0: result.update(status=status) or build_site.main(["--out", str(out)])


def test_the_command_replaces_a_site_and_nothing_else(command, tmp_path, capsys):
    site, own = tmp_path / "site", tmp_path / "own"
    assert command(site) == 0 and (site / "_static" / "mathjax.js").stat().st_size > 10**6
    (site / "old.html").touch()
    assert command(site, status=2) == 2 and (site / "old.html").exists(), "a failure leaves the site that is there"
    assert "not built" in capsys.readouterr().out
    assert command(site) == 0 and not (site / "old.html").exists()
    own.mkdir()
    (own / "thesis.tex").touch()
    for place in (own, own / "thesis.tex"):
        with pytest.raises(SystemExit):
            command(place)
        assert "--out must be a new folder or an earlier build of the site, got" in capsys.readouterr().err
    assert (own / "thesis.tex").exists()


def test_a_missing_package_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(build_site, "MATHJAX", ("no-such-package-here", "x.js"))
    with pytest.raises(SystemExit):
        build_site.main(["--out", str(tmp_path / "site")])
    assert 'no-such-package-here is not installed: pip install -e ".[site]"' in capsys.readouterr().err
