"""The page of a certificate: one file without scripts, made to be printed, from what is stated and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .. import notebooks
from .statement import Statement, canonical, code_of

STYLE = """
body { color: #222; font: 16px/1.5 Georgia, serif; margin: 2em auto; max-width: 46em; padding: 0 1em; }
h1 { font-size: 1.9em; margin: 0; } h2 { font-size: 1.15em; margin: 1.8em 0 .4em; }
.name { border-bottom: 3px double #888; font-size: 1.5em; margin: .6em 0; padding-bottom: .4em; }
table { border-collapse: collapse; width: 100%; font-size: .9em; }
th, td { border-bottom: 1px solid #ccc; padding: .2em .8em .2em 0; text-align: left; vertical-align: top; }
td:last-child { white-space: nowrap; } thead { display: table-header-group; } tr { break-inside: avoid; }
.code { font: 1.1em monospace; letter-spacing: .05em; } li { margin: .3em 0; }
pre { font-size: .72em; overflow-wrap: anywhere; white-space: pre-wrap; } .functions { break-before: page; }
@page { margin: 18mm; }
"""
COUNTED = (("exercise", "exercises"), ("quiz", "questions"), ("case", "cases"))


def page(statement: Statement) -> str:
    """Return the page; the same statement gives the same page."""
    title = f"{escape(statement['name'])}: the Transformer, from a lookup to a translator"
    data = canonical(statement).decode().replace("<", "\\u003c")
    body = "\n".join([*_head(statement), *_table(statement), *_proofs(statement), *_functions(statement)])
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="application/json" id="statement">{data}</script>\n</body>\n</html>\n'
    )


def _head(statement: Statement) -> Iterator[str]:
    yield "<h1>The Transformer, from a lookup to a translator</h1>"
    yield f'<p class="name">{escape(statement["name"])}</p>'
    counts = [f"{len(statement[kind])} of {_all(kind)} {words}" for kind, words in COUNTED]
    yield f"<p>has passed {', '.join(counts[:-1])} and {counts[-1]} of the course{_predicted(statement)}.</p>"
    if statement["functions"]:
        number = _count(len(statement["functions"]), "function")
        yield f"<p>At the end of the page: {number} of the Transformer that is built in the course.</p>"
    yield f"<p>Written on {escape(statement['made'])}, by version {escape(statement['course'])} of the course.</p>"


def _predicted(statement: Statement) -> str:
    rights = [right for _, right in statement["prediction"].values()]
    return f", and {sum(rights)} of {len(rights)} predictions came true" if rights else ""


def _table(statement: Statement) -> Iterator[str]:
    """Yield a row for each notebook in which something was passed."""
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("notebook", "passed", "predictions that came true", "when")
    )
    yield f"<h2>Notebook by notebook</h2>\n<table><thead><tr>{head}</tr></thead><tbody>"
    for entry in notebooks.NOTEBOOKS:
        counts, dates = [], []
        for kind, words in COUNTED:
            known = [name for of, name in entry.parts if of == kind]
            own = [name for name in known if name in statement[kind]]
            counts += [f"{len(own)} of {len(known)} {words}"] if own else []
            dates += [statement[kind][name] for name in own]
        guesses = [each for name, each in statement["prediction"].items() if name.partition(".")[0] == entry.id]
        dates += [on for on, _ in guesses]
        if dates:
            came = f"{sum(right for _, right in guesses)} of {len(guesses)}" if guesses else ""
            when = min(dates) if min(dates) == max(dates) else f"{min(dates)} to {max(dates)}"
            cells = (f"{entry.id} · {entry.title}", ", ".join(counts), came, when)
            yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table>"


def _proofs(statement: Statement) -> Iterator[str]:
    """Yield what the page proves and what it does not."""
    yield "<h2>What this page proves, and what it does not</h2>\n<ul>"
    signed = statement.get("signed")
    if signed:
        confirmed = len(signed["confirmed"])
        yield (
            f"<li><b>Signed</b> by {escape(signed['by'])} on {escape(signed['on'])}. On that day the answers to "
            f"{_count(confirmed, 'exercise')} were computed again there, also in cases that nobody had seen, and were "
            f"right: {escape(', '.join(signed['confirmed'])) or 'none'}.</li>"
            "<li>The signature shows that nothing on the page has changed since. Only those who hold the secret of the "
            "class can check it, and they could also make one: ask them.</li>"
        )
    else:
        yield (
            "<li>This page is <b>not signed</b>. It repeats what a file on a learner's own machine says, and anybody "
            "can write such a file.</li>"
            f"<li>{_count(len(statement['functions']), 'function')} can be computed again: whoever teaches can run the "
            "functions at the end of the page through their checks, in cases that they have not seen.</li>"
        )
    yield (
        "<li>A right function does not say who wrote it: the solutions of the course are public. Nor is it known that "
        "the name is true. Dates, questions, cases and predictions are as the learner's machine kept them.</li></ul>"
    )
    yield f'<p>Code: <span class="code">{code_of(statement)}</span></p>'
    command = "python -m transformer_lib.course.teaching.certificates verify certificate.html"
    yield f"<p>To compute the functions again, in the repository of the course: <code>{command}</code></p>"


def _functions(statement: Statement) -> Iterator[str]:
    if statement["source"]:
        yield f'<h2 class="functions">The functions</h2>\n<pre>{escape(statement["source"])}</pre>'


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _all(kind: str) -> int:
    return sum(of == kind for entry in notebooks.NOTEBOOKS for of, _ in entry.parts)
