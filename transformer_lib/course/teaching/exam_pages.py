"""Examination papers and their key as pages to print: one HTML file each, which loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..quiz.model import Choice
from ..quiz.view import rich
from .slides.symbols import typeset

if TYPE_CHECKING:
    from .exam import Item

STYLE = """
body { color: #000; font: 12pt/1.45 Georgia, serif; margin: 2em auto; max-width: 42em; padding: 0 1em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.15em; }
.head { border-bottom: 1px solid; display: flex; justify-content: space-between; gap: 2em; padding-bottom: 1.2em; }
.line { border-bottom: 1px solid; display: inline-block; min-width: 12em; }
ol.questions { list-style: none; padding: 0; }
ol.questions > li { break-inside: avoid; margin: 1.6em 0; }
ol.options { list-style: none; margin: .5em 0 0; padding: 0 0 0 1.4em; }
ol.options > li { margin: .3em 0; } .letter { border: 1px solid; margin-right: .6em; padding: 0 .4em; }
code { font-size: .9em; } .root { border-top: 1px solid; }
table { border-collapse: collapse; } .why { font-style: italic; }
th, td { border: 1px solid #777; padding: .15em .8em; text-align: left; } li { break-inside: avoid; margin: .5em 0; }
@page { margin: 20mm 18mm; } @media print { body { margin: 0; max-width: none; padding: 0; } }
"""


def shown(text: str) -> str:
    """Return text as HTML, with letters and their indices, such as d_k, as symbols."""
    return typeset(rich(text))


def _page(title: str, body: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def sheet_page(items: Sequence[Item], variant: str) -> str:
    """Return the page for students: it does not name the quizzes."""
    title = f"Examination, variant {variant}"
    blank = '<span class="line">&nbsp;</span>'
    questions = "\n".join(_question(number, item) for number, item in enumerate(items, 1))
    head = f'<p class="head"><span>Name: {blank}</span><span>Points: {blank}</span></p>'
    return _page(title, f'<h1>{title}</h1>\n{head}\n<ol class="questions">\n{questions}\n</ol>')


def _question(number: int, item: Item) -> str:
    asked = f"<li><b>{number}.</b> {shown(item.question.prompt)}"
    if not isinstance(item.question, Choice):
        return f'{asked}\n<p>Answer: <span class="line">&nbsp;</span></p></li>'
    options = "\n".join(
        f'<li><span class="letter">{letter}</span>{shown(option.text)}</li>'
        for letter, option in zip(item.letters, item.options, strict=True)
    )
    return f'{asked}\n<ol class="options">\n{options}\n</ol></li>'


def key_page(papers: Mapping[str, Sequence[Item]], reasons: Sequence[tuple[str, str, str, str]]) -> str:
    """Return the key to all variants.

    Args:
        papers: {variant: its questions}.
        reasons: of each question its quiz, what is asked, the right answer, and why it is right.
    """
    return _page("Key", "<h1>Key</h1>\n" + "\n".join([*_answers(papers), *_reasons(reasons)]))


def _answers(papers: Mapping[str, Sequence[Item]]) -> Iterator[str]:
    for variant, items in papers.items():
        rows = "\n".join(
            f"<tr><td>{number}</td><td>{escape(item.answer)}</td><td>{escape(item.question.id)}</td></tr>"
            for number, item in enumerate(items, 1)
        )
        yield f"<h2>Variant {escape(variant)}</h2>\n<table><tr><th>question</th><th>answer</th><th>quiz</th></tr>"
        yield f"{rows}\n</table>"


def _reasons(reasons: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    yield "<h2>Why</h2>\n<ul>"
    for quiz, prompt, right, why in reasons:
        yield f'<li><b>{quiz}</b> {shown(prompt)}<br><span class="why">{shown(right)}</span> {shown(why)}</li>'
    yield "</ul>"
