"""What is added to the pages that Sphinx made: one viewport, a description, a face, fewer bytes; and the lost page."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import build_site
import pytest
import site_finish

import built_site
import test_site

PAGE = """<html><head>
<meta name="viewport" content="width=device-width, initial-scale=1.0" /><meta name="viewport" content="b" />
<title>Why {} divide &#8212; The Transformer</title>
<!-- So that users can add custom icons -->
<script defer src="../_static/scripts/fontawesome.js?digest=9"></script>
<script src="kept.js"></script></head><body>
<p>A long paragraph outside of the article, which nobody asked for at all.</p>
<article><p>Short.</p>
<p>A formula <span class="math notranslate">\\(x\\)</span> and words, words, words, words, words.</p>
<p>The <em>first</em> sentence &amp; the one
that says &lt;what&gt; this page is about, at some length.</p></article></body></html>"""
HEAVIEST = 1_500_000  # bytes, compressed as a web server sends them


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("index.html", "notebooks/04.html"):
        build_site.write(tmp_path / name, PAGE.replace("{}", name))
    for name in ("scripts/fontawesome.js", "scripts/fontawesome.js.map", "theme.css", "theme.css.map"):
        build_site.write(tmp_path / "_static" / name, "x")
    return tmp_path


def test_a_page_gets_one_viewport_and_says_what_it_is(folder):
    site_finish.finish(folder)
    page = (folder / "notebooks" / "04.html").read_text("utf-8")
    assert page.count('name="viewport"') == 1
    assert "fontawesome" not in page and '<script src="kept.js">' in page
    about = "The first sentence &amp; the one that says &lt;what&gt; this page is about, at some length."
    assert f'<meta name="description" content="{about}">' in page
    assert '<meta property="og:title" content="Why notebooks/04.html divide">' in page
    assert "og:image" not in page  # nobody knows its address
    assert {path.name for path in (folder / "_static").rglob("*.*")} == {"theme.css"}
    assert 'href="index.html"' in (folder / "404.html").read_text("utf-8")
    assert not (folder / "sitemap.xml").exists()


@pytest.mark.parametrize("address", ["https://example.org/course", "https://example.org/course/"])
def test_a_known_address_gives_full_ones(folder, address):
    site_finish.finish(folder, address)
    page = (folder / "notebooks" / "04.html").read_text("utf-8")
    assert '<meta property="og:url" content="https://example.org/course/notebooks/04.html">' in page
    assert '<meta property="og:image" content="https://example.org/course/_static/card.png">' in page
    places = (folder / "sitemap.xml").read_text("utf-8")
    assert [name in places for name in ("course/index.html<", "course/notebooks/04.html<", "_static", "404")] == [
        True,
        True,
        False,
        False,
    ]
    assert 'href="https://example.org/course/index.html"' in (folder / "404.html").read_text("utf-8")


def test_a_picture_becomes_a_file_that_loads_when_it_is_seen(folder):
    content = bytes(range(97))
    data = base64.b64encode(content).decode()
    picture = f'<img alt="a > b" src="data:image/png;base64,{data}" width="720">'
    drawing = '<img alt="c" src="data:image/svg+xml,%3Csvg%3E">'
    build_site.write(folder / "notebooks" / "04.html", PAGE + picture + drawing + picture)
    site_finish.finish(folder)
    page = (folder / "notebooks" / "04.html").read_text("utf-8")
    (file,) = (folder / "_images").iterdir()
    assert file.read_bytes() == content
    assert page.count(f'<img alt="a > b" src="../_images/{file.name}" loading="lazy" width="720">') == 2
    assert drawing in page


def test_the_search_shows_the_number_of_a_notebook():
    index = {
        "docnames": ["docs/a", "notebooks/04_x", "notebooks/A_y"],
        "titles": ["One", "Why divide?", "One"],
        "alltitles": {"One": [[0, None], [2, None]], "Why divide?": [[1, None], [0, "why"]]},
        "terms": {"größe": 1},
    }
    made = site_finish.numbered(f"Search.setIndex({json.dumps(index)})")
    assert made.startswith("Search.setIndex({") and made.endswith("})")
    read = json.loads(made[len("Search.setIndex(") : -1])
    assert read["titles"] == ["One", "04 · Why divide?", "A · One"]
    assert read["alltitles"] == {
        "One": [[0, None]],
        "A · One": [[2, None]],
        "04 · Why divide?": [[1, None]],
        "Why divide?": [[0, "why"]],
    }
    assert (read["docnames"], read["terms"]) == (index["docnames"], index["terms"])


def test_a_description_is_cut_between_words():
    page = f"<article><p>{'seven77 ' * 60}</p></article>"
    said = site_finish.description(page)
    assert said.endswith("seven77 …") and len(said) <= site_finish.LONGEST + 2
    assert site_finish.description("<article><p>Short.</p></article>") == ""


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    return built_site.built(tmp_path_factory)


def weight(site: Path, page: test_site.Page) -> int:
    """Bytes of a page and of all that it loads at first, compressed; what scripts fetch later is the search's index."""
    files = {page.path} | {
        (page.path.parent / unquote(urlsplit(name).path)).resolve() for name in page.loads if ":" not in name
    }
    return sum(len(gzip.compress(file.read_bytes(), 6)) for file in files if file.is_file())


def test_no_page_is_heavy(site):
    weights = {
        page.path.relative_to(site.resolve()).as_posix(): weight(site, page) for page in test_site.pages(site).values()
    }
    heavy = {name: bytes_ for name, bytes_ in weights.items() if bytes_ > HEAVIEST}
    assert heavy == {}
    assert weights["index.html"] + (site / "_static/web/weights.safetensors").stat().st_size < HEAVIEST
    del weights["404.html"]  # which may be shown for any address, and so loads nothing
    assert min(weights.values()) > 50_000  # the theme is counted
