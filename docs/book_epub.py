"""The book as an EPUB: an extension of Sphinx that turns each page into XHTML, its formulas into MathML.

Pictures become files of the book. Links lead to places in it; those to pages that it lacks are left as words.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zipfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import book_pages
from latex2mathml.converter import convert_to_element
from lxml import etree
from lxml import html as lxml_html

XHTML = "http://www.w3.org/1999/xhtml"
INLINE, DISPLAY = re.compile(r"^\s*\\\((.*)\\\)\s*$", re.DOTALL), re.compile(r"^\s*\\\[(.*)\\\]\s*$", re.DOTALL)
PICTURE = re.compile(r"data:image/(png|jpeg|svg\+xml)(;[^,]*)?,(.*)", re.DOTALL)
TEXT = re.compile(r"\\text\{[^{}]*\}")
STYLE = """
body { line-height: 1.5; } pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.8em; }
.cell_input pre { border-left: 3px solid #2a7f3f; background: #f3f4f5; padding: 0.5em; }
.cell_output { margin: 0.5em 0 1em; } img { max-width: 100%; height: auto; background: #fff; }
table { border-collapse: collapse; font-size: 0.85em; } td, th { border-bottom: 1px solid #ccc; padding: 0.2em 0.5em; }
.was-folded { font-weight: bold; margin-bottom: 0.2em; } math[display="block"] { margin: 0.8em 0; }
"""


def mathml(latex: str, *, display: bool) -> etree._Element:
    """Return a formula as MathML, with its source as the words for whoever cannot see it.

    Raises:
        ValueError: if it cannot be read, or has a command that is not known.
    """
    source = latex.strip()
    try:
        element = convert_to_element(known(source), display="block" if display else "inline")
    except Exception as error:  # it has many of its own
        raise ValueError(f"latex must be a formula, got {source!r}") from error
    made = etree.fromstring(ElementTree.tostring(element))
    for part in made.iter():
        part.text = part.text and html.unescape(part.text)  # it writes signs as &#x…;
    if "\\" in "".join(made.itertext()):
        raise ValueError(f"latex must be a formula that can be written as MathML, got {source!r}")
    made.set("alttext", " ".join(source.split()))
    return made


def known(source: str) -> str:
    """Return a formula without the two things that the converter does not know, said in ways that it does."""
    source = TEXT.sub(lambda found: found[0].replace(r"\_", "_"), source)
    return source.replace(r"\arg\max", r"\operatorname{arg\,max}").replace(r"\arg\min", r"\operatorname{arg\,min}")


def xhtml(body: str, name: str, pages: set[str], folder: Path) -> str:
    """Return the body of a page as XHTML.

    Args:
        body: HTML as Sphinx writes it for a browser. name: the page, such as "notebooks/04_….xhtml".
        pages: the names of all pages of the book. folder: where the book is put together; pictures are written there.
    """
    article = lxml_html.fragment_fromstring(body, create_parent="div")
    book_pages.for_paper(article)
    for script in list(article.iter("script", "style", "button", "form", "input")):
        script.drop_tree()
    for picture in article.iter("img"):
        put_beside(picture, name, folder)
    ids = set(article.xpath("//@id"))
    for link in list(article.iter("a")):
        lead(link, name, pages, ids)
    for part in article.iter():
        plain_attributes(part)
    set_formulas(article)
    text = etree.tostring(article, encoding="unicode", method="xml")
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text)


def plain_attributes(part: lxml_html.HtmlElement) -> None:
    """Leave out what only scripts and old browsers read."""
    for name in list(part.attrib):
        if name.startswith(("data-", "on")) or name in ("border", "align", "valign", "tabindex", "width", "height"):
            if name in ("width", "height") and part.tag == "img":
                continue
            del part.attrib[name]
    if part.get("role") in ("region", "img") and part.tag not in ("div", "section", "svg"):
        del part.attrib["role"]


def set_formulas(article: lxml_html.HtmlElement) -> None:
    """Replace the LaTeX of every formula by MathML."""
    for part in book_pages.of_class(article, "math"):
        text = part.text_content()
        found, display = INLINE.match(text), False
        if not found:
            found, display = DISPLAY.match(text), True
        if not found:
            continue
        made = mathml(found[1], display=display)
        for child in list(part):
            part.remove(child)
        part.text = None
        part.append(made)


def put_beside(picture: lxml_html.HtmlElement, name: str, folder: Path) -> None:
    """Write a picture that a page holds inside as a file of the book."""
    found = PICTURE.match(picture.get("src", ""))
    picture.attrib.pop("loading", None)
    if not found:
        return
    content = base64.b64decode(found[3]) if ";base64" in (found[2] or "") else unquote(found[3]).encode()
    file = f"_images/{hashlib.sha256(content).hexdigest()[:20]}.{found[1].partition('+')[0]}"
    (folder / "_images").mkdir(exist_ok=True)
    (folder / file).write_bytes(content)
    picture.set("src", "../" * name.count("/") + file)


def lead(link: lxml_html.HtmlElement, name: str, pages: set[str], ids: set[str]) -> None:
    """Lead a link to its page in the book, or leave its words."""
    parts = urlsplit(link.get("href", ""))
    if parts.scheme in ("http", "https") and parts.hostname != "localhost":
        return
    if not parts.scheme and not parts.path and parts.fragment in ids:
        return
    file = normpath((PurePosixPath(name).parent / parts.path.replace(".html", ".xhtml")).as_posix())
    if not parts.scheme and parts.path and file in pages:
        link.set("href", parts._replace(path=parts.path.replace(".html", ".xhtml")).geturl())
        return
    link.drop_tag()


def page_context(app, page: str, template: str, context: dict, doctree) -> None:
    """Rewrite the body of each page before Sphinx puts it into the book."""
    if "body" in context:
        pages = {f"{name}.xhtml" for name in app.env.found_docs}
        styles = context["css_files"]  # MyST's own is not written into a book
        context["css_files"] = [style for style in styles if "mystnb" not in str(getattr(style, "filename", style))]
        context["body"] = xhtml(context["body"], f"{page}.xhtml", pages, Path(app.outdir))


def write_style(app) -> None:
    """Put the book's style beside its pages."""
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "book.css").write_text(STYLE, encoding="utf-8")


def plain(app, config) -> None:
    """Leave out what belongs to the site: its styles and scripts."""
    config.html_css_files, config.html_js_files, config.html_static_path = [], [], []


def finish(made: Path, out: Path) -> None:
    """Write the book that Sphinx made, its table of files saying which pages have formulas, as EPUB 3 asks."""
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        pages = [name for name in source.namelist() if name.endswith(".xhtml")]
        formulas = [name for name in pages if b"<math" in source.read(name)]
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "content.opf":
                content = with_formulas(content.decode("utf-8"), formulas).encode("utf-8")
            kind = zipfile.ZIP_STORED if entry.filename == "mimetype" else zipfile.ZIP_DEFLATED
            target.writestr(entry, content, kind)


def with_formulas(table: str, pages: Collection[str]) -> str:
    """Return the table of files with the property that marks pages with formulas."""
    for page in pages:
        table = re.sub(rf'(<item [^>]*href="{re.escape(page)}")', r'\1 properties="mathml"', table)
    return table


def setup(app) -> None:
    """Make XHTML of pages."""
    app.connect("config-inited", plain, priority=1)
    app.connect("html-page-context", page_context, priority=900)
    app.connect("builder-inited", write_style)
    app.add_css_file("book.css")
