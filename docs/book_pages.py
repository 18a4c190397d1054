"""A page of the site as a chapter of the book: nothing to click, and what was folded stands at the chapter's end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree
from lxml import html as lxml_html

EXERCISE = re.compile(r"Exercise (?:\d\d|A)\.\d+")
SCREEN_ONLY = (
    "notebook-links",
    "course-strip",
    "tl-wake",
    "in-lab",
    "headerlink",
    "cell-anchor",
    "tag_check",
    "panel-controls",
)
CALLS = ("tag_quiz", "tag_predict")  # their code only asks the question that stands below it
DATA = "The data as a table"
ANSWERS = "Hints, answers and solutions"


def for_paper(article: lxml_html.HtmlElement) -> None:
    """Change an article in place: what a click opens is opened, or moved to a section at the end."""
    kept_names(article)
    remove(article, *SCREEN_ONLY)
    for name in CALLS:
        for code in of_class(article, name):
            remove(code, "cell_input")
    found = list(folded(article))
    if found and (top := article.find(".//h1")) is not None:
        top.getparent().append(answers(found))


def of_class(part: lxml_html.HtmlElement, name: str) -> list[lxml_html.HtmlElement]:
    """Return the elements with this class."""
    return part.xpath(f".//*[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]")


def remove(part: lxml_html.HtmlElement, *names: str) -> None:
    """Remove the elements with these classes; the text behind them stays."""
    for name in names:
        for gone in of_class(part, name):
            gone.drop_tree()


def kept_names(article: lxml_html.HtmlElement) -> None:
    """Give the place where a cell begins to what follows, since links name it."""
    for place in of_class(article, "cell-anchor"):
        after = place.getnext()
        if after is not None and not after.get("id"):
            after.set("id", place.get("id"))


def summary_of(fold: lxml_html.HtmlElement) -> str:
    """Return what a fold says of itself."""
    summary = fold.find("summary")
    return " ".join(summary.text_content().split()) if summary is not None else ""


def folded(article: lxml_html.HtmlElement) -> Iterator[tuple[str, list[lxml_html.HtmlElement]]]:
    """Open or take away every fold; yields for each exercise and question what goes to the chapter's end."""
    under = ""
    for part in list(article.iter("h3", "details")):
        if part.tag == "h3":
            under = " ".join(part.text_content().split()) if EXERCISE.match(part.text_content().strip()) else ""
        elif inside_a_fold(part):
            continue  # a hint within a hint goes with it
        elif summary_of(part) == DATA:
            part.drop_tree()
        elif of_class(part, "cell_input") and "above-input" in part.get("class", ""):
            yield under, [taken(code) for code in of_class(part, "cell_input")[:1]]
            part.drop_tree()
        elif summary_of(part).startswith("Hint "):
            yield under, hints(part)
            part.drop_tree()
        elif summary_of(part).startswith("Answers"):
            yield question_of(part) or under, [taken(inside) for inside in part if inside.tag != "summary"]
            part.drop_tree()
        else:
            opened(part)


def inside_a_fold(part: lxml_html.HtmlElement) -> bool:
    """True for a fold within one that is moved or taken away."""
    return any(summary_of(above).startswith(("Hint ", "Answers", DATA)) for above in part.iterancestors("details"))


def question_of(part: lxml_html.HtmlElement) -> str:
    """Return the id of the question that a fold answers."""
    box = part.getparent().find(".//b")
    return box.text_content().strip() if box is not None else ""


def taken(part: lxml_html.HtmlElement) -> lxml_html.HtmlElement:
    """Return a copy, without names that the page has already."""
    copy = lxml_html.fragment_fromstring(etree.tostring(part, encoding="unicode", with_tail=False, method="html"))
    for named in copy.xpath(".//*[@id]|self::*[@id]"):
        del named.attrib["id"]
    return copy


def hints(fold: lxml_html.HtmlElement) -> list[lxml_html.HtmlElement]:
    """Return a hint and those within it, each a paragraph."""
    own = taken(fold)
    further = [inner for inner in own if inner.tag == "details"]
    for inner in further:
        own.remove(inner)
    name = own.find("summary")
    said = name.text_content()
    tail = name.tail or ""
    own.remove(name)
    own.tag = "div"
    own.attrib.clear()
    bold = etree.Element("b")
    bold.text, bold.tail = f"{said}. ", tail + (own.text or "")
    own.text = None
    own.insert(0, bold)
    return [own, *(each for inner in further for each in hints(inner))]


def opened(fold: lxml_html.HtmlElement) -> None:
    """Turn a fold into what it holds; one with a name of its own keeps it as a first line."""
    summary = fold.find("summary")
    if "below-input" in fold.get("class", "") or summary is None:
        if summary is not None:
            summary.drop_tree()
    else:
        summary.tag = "p"
        summary.set("class", "was-folded")
    fold.tag = "div"
    fold.attrib.pop("open", None)
    fold.set("class", "opened")


def answers(found: list[tuple[str, list[lxml_html.HtmlElement]]]) -> lxml_html.HtmlElement:
    """Return the last section of a chapter."""
    section = lxml_html.fragment_fromstring(f'<section id="answers"><h2>{ANSWERS}</h2></section>')
    last = None
    for name, parts in found:
        if name != last:
            heading = etree.SubElement(section, "h3")
            heading.text, last = name, name
        section.extend(parts)
    return section
