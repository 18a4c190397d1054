"""The panels of the notebooks as the site carries them: controls as HTML, and the pictures of all their settings.

A panel is made by running its cell, and before it the cells that bind a name which it needs. What its controls can be
set to is the panel's own word (`Panel.carried`). The pictures of all settings are one file, which a page loads when a
reader comes near the panel. All this is kept in build/panels until the library or one of the cells changes.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import gzip
import hashlib
import html
import io
import itertools
import json
import multiprocessing
import os
import re
import symtable
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from site_links import linked_html

from transformer_lib.course.cells import source_of, tags_of
from transformer_lib.course.figures.svg.elements import Picture, escape
from transformer_lib.course.figures.widgets import Panel
from transformer_lib.course.notebooks import NOTEBOOKS, Notebook, file_of
from transformer_lib.course.teaching.notebook_files import read

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "panels"
PLACE = "_static/panels"  # in the site
MOST, LARGEST = 4500, 300_000  # states of a panel, and bytes of its file
PARTS = "\x1e"  # between what a state says, its alternative text, its picture and what stands below
SAYS, ALT = "\x01", "\x02"  # stand for what is repeated
PIECE = re.compile(r"(<[^>]*>)|(?<=[,;:.] )")  # tags, and what lies between them, or between commas
IMAGE = re.compile(r"<img\b[^>]*>")
SAID = re.compile(r"<p><strong>(.*?)</strong></p>\n?", re.DOTALL)
WAKE = re.compile(r'<p class="tl-wake">.*?</p>')
TABLE = re.compile(r"<details>.*?</details>", re.DOTALL)


@dataclass(frozen=True)
class Living:
    """A panel of a page.

    Args:
        cell: id of the cell that makes it. known: what its script must know. states: the file of its pictures.
    """

    cell: str
    known: Mapping[str, Any]
    states: bytes


# Making a panel from its cell


def names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell binds, and those that it needs from before."""
    bound, needed = set(), set()
    for statement in ast.parse(source).body:
        top = symtable.symtable(ast.unparse(statement), "cell", "exec")
        needed |= {name for table in tables(top) for name in _read(table)} - bound
        bound |= {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()}
    return bound, needed - set(dir(builtins))


def tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield a table of symbols and those of all functions, classes and comprehensions in it."""
    yield table
    for child in table.get_children():
        yield from tables(child)


def _read(table: symtable.SymbolTable) -> Iterator[str]:
    whole = table.get_type() == "module"
    return (each.get_name() for each in table.get_symbols() if each.is_referenced() and (whole or each.is_global()))


def needed_cells(cells: Sequence[dict], cell_id: str) -> list[dict]:
    """Return the cells that must run for a panel: its own, and each before it that binds a name needed later."""
    places = {cell["id"]: i for i, cell in enumerate(cells)}
    last = places[cell_id]
    taken, needed = [cells[last]], names(source_of(cells[last]))[1]
    for cell in reversed(cells[:last]):
        if cell["cell_type"] != "code" or "guard" in tags_of(cell):
            continue
        bound, wants = names(source_of(cell))
        if bound & needed:
            taken.append(cell)
            needed = (needed - bound) | wants
    return taken[::-1]


def made(cells: Iterable[dict]) -> Panel:
    """Run cells, and return the panel that the last of them shows.

    Raises:
        ValueError: it shows none.
    """
    space: dict[str, Any] = {"__name__": "notebook"}
    shown, name = None, ""
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in cells:
            name, tree = cell["id"], ast.parse(source_of(cell))
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), space)
            shown = eval(compile(ast.Expression(last.value), name, "eval"), space) if last else None
    if not isinstance(shown, Panel):
        raise ValueError(f"cell {name} must end with a panel, got {type(shown).__name__}")
    return shown


# Its states


def written(picture: Picture, foot: str) -> str:
    """Write all that a state shows as one text, in which nothing long stands twice."""
    alt = picture.alt.replace(picture.says, SAYS) if picture.says else picture.alt
    svg = picture.svg.replace(f'aria-label="{escape(picture.alt)}"', f'aria-label="{ALT}"', 1)
    return PARTS.join((picture.says, alt, svg, linked_html(foot)))


def packed(texts: Iterable[str], data: Mapping[str, Any] | None = None) -> bytes:
    """Return texts as a compressed table of their pieces, each text as the numbers of its own; and what else there is.

    "texts" among ``data`` come after the others; "first" is then the number of the first of them.
    """
    texts, data = list(texts), dict(data or {})
    if "texts" in data:
        data["first"] = len(texts)
        texts += data.pop("texts")
    pieces: dict[str, int] = {}
    rows: dict[tuple[int, ...], int] = {}
    at = []
    for text in texts:
        row = tuple(pieces.setdefault(piece, len(pieces)) for piece in PIECE.split(text) if piece)
        at.append(rows.setdefault(row, len(rows)))
    made = {"pieces": list(pieces), "rows": list(rows), "at": at, "data": data}
    return gzip.compress(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode(), 9, mtime=0)


def carried(cell_id: str, panel: Panel) -> Living:
    """Return a panel with all its states.

    Raises:
        ValueError: they are too many, or take too much room.
    """
    torch.manual_seed(0)  # a broken model of the clinic draws random numbers
    data = panel.script.data() if panel.script else {}
    longest, texts = max(panel.picture.says, data.get("longest", ""), key=len), []
    for _, picture, foot in panel.states(MOST):
        longest = max(longest, picture.says, key=len)
        texts.append(written(picture, foot))
    states = packed(texts, data)
    if len(states) > LARGEST:
        raise ValueError(f"{len(states):,} bytes of states are more than {LARGEST:,}")
    known = {"controls": panel.declared(), "longest": longest, "spots": list(_spots(panel))}
    known["script"] = panel.script.name if panel.script else ""
    return Living(cell_id, known, states)


def _spots(panel: Panel) -> Iterator[dict[str, Any]]:
    """Yield the parts of the picture that set a control, their places in per cent of the picture."""
    values, (width, height) = panel.carried, (panel.picture.width, panel.picture.height)
    for spot in panel.spots:
        place = (spot.x / width, spot.y / height, spot.width / width, spot.height / height)
        where = [round(100 * share, 3) for share in place]
        at = values[spot.control].index(spot.value)
        yield {"label": spot.label, "control": list(values).index(spot.control), "at": at, "place": where}


# All of a course, kept from build to build


def panel_cells(here: Notebook) -> list[list[dict]]:
    """Return for each panel of a notebook the cells that must run; the last makes it."""
    cells = read(file_of(here))["cells"]
    return [needed_cells(cells, cell["id"]) for cell in cells if "widget" in tags_of(cell)]


@cache
def library() -> str:
    """Return what changes when the library, its stored models and results, or this file does."""
    files = [Path(__file__), *(ROOT / "transformer_lib").rglob("*")]
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def living(cells: Sequence[dict], kept: Path = KEPT) -> Living:
    """Return the panel that the last of these cells makes, with all its states: from the last build, or made anew."""
    cell = cells[-1]["id"]
    key = hashlib.sha256("\0".join([library(), *map(source_of, cells)]).encode()).hexdigest()
    known, states = kept / f"{cell}.json", kept / f"{cell}.bin"
    if known.is_file() and states.is_file():
        before = json.loads(known.read_text("utf-8"))
        if before["key"] == key:
            return Living(cell, before["known"], states.read_bytes())
    try:
        found = carried(cell, made(cells))
    except ValueError as error:
        raise ValueError(f"{cell}: {error}") from error
    kept.mkdir(parents=True, exist_ok=True)
    states.write_bytes(found.states)
    known.write_text(json.dumps({"key": key, "known": found.known}, ensure_ascii=False), encoding="utf-8")
    return found


def needs_the_real_model(cells: Sequence[dict]) -> bool:
    """Return whether a panel speaks with the real model, which is not carried to a page."""
    return any("real.load(" in source_of(cell) for cell in cells)


def all_living(kept: Path = KEPT) -> dict[str, Living]:
    """Return every panel of the course by the id of its cell; every processor works."""
    every = itertools.chain.from_iterable(map(panel_cells, NOTEBOOKS))
    cells = [each for each in every if not needs_the_real_model(each)]
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with torch's threads may wait for ever
    with ProcessPoolExecutor(os.cpu_count(), spawn, torch.set_num_threads, (1,)) as workers:
        found = list(workers.map(partial(living, kept=kept), cells))
    return {each.cell: each for each in found}


def lay(panels: Iterable[Living], pages: Path) -> None:
    """Write the files of states into a built site."""
    (pages / PLACE).mkdir(parents=True, exist_ok=True)
    for panel in panels:
        (pages / PLACE / f"{panel.cell}.bin").write_bytes(panel.states)


# Its HTML


def alive(page: str, panel: Living, above: str = "..") -> str:
    """Return the HTML that a panel's cell has stored, with controls and with what the page's script needs.

    Args:
        page: the stored HTML. panel: which it is. above: the way from the page's folder to the site's.

    Raises:
        ValueError: the cell has stored no picture.
    """
    image = IMAGE.search(page)
    if not image:
        raise ValueError(f"{panel.cell}: page must hold the stored picture of a panel, got none")
    said = SAID.search(page)
    table = TABLE.search(page, image.end())
    foot = page[table.end() if table else image.end() :].strip()
    known = {**panel.known, "file": f"{above}/{PLACE}/{panel.cell}.bin"}
    data = html.escape(json.dumps(known, ensure_ascii=False), quote=True)
    controls = "".join(control(i, each) for i, each in enumerate(known["controls"]))
    return (
        f'<div class="panel" data-panel="{data}">'
        f'<fieldset class="panel-controls" disabled aria-label="controls of the panel">{controls}</fieldset>'
        '<div class="panel-says"><b role="status" aria-live="polite">'
        f'{said[1] if said else ""}</b><b class="longest" aria-hidden="true">{html.escape(known["longest"])}</b></div>'
        f'<div class="panel-picture">{image[0]}</div>{table[0] if table else ""}'
        f'<div class="panel-foot">{foot}</div></div>'
    )


def control(number: int, known: Mapping[str, Any]) -> str:
    """Return a control as HTML, which the page's script wires."""
    label, values, at = html.escape(known["label"]), known["values"], known["at"]
    made = KINDS[known["kind"] if known["kind"] != "choice" or len(values) <= 9 else "slider"](label, values, at)
    return f'<span class="panel-control" data-control="{number}">{made}</span>' if len(values) > 1 else ""


def _actions(label: str, values: Sequence[str], at: int) -> str:
    return "".join(f'<button type="button" data-do="{name}">{name}</button>' for name in values)


def _number(label: str, values: Sequence[float], at: int) -> str:
    box = f'<input type="number" step="any" min="{values[0]:g}" max="{values[-1]:g}" value="{values[at]:g}">'
    return f'<label>{label} {box}</label>{_range(label, values, at)}<i class="note" role="status"></i>'


def _range(label: str, values: Sequence[Any], at: int) -> str:
    ends = f'min="0" max="{len(values) - 1}" value="{at}"'
    return f'<input type="range" {ends} aria-label="{label}, slider" aria-valuetext="{html.escape(str(values[at]))}">'


def _steps(label: str, values: Sequence[float], at: int) -> str:
    buttons = "".join(f'<button type="button" data-go="{name}">{name}</button>' for name in ("back", "next", "reset"))
    return _number(label, values, at) + buttons


def _buttons(label: str, values: Sequence[Any], at: int) -> str:
    each = [
        f'<button type="button" data-at="{i}" aria-pressed="{str(i == at).lower()}">{html.escape(str(value))}</button>'
        for i, value in enumerate(values)
    ]
    return f'<span role="group" aria-label="{label}"><span aria-hidden="true">{label}</span> {"".join(each)}</span>'


def _slider(label: str, values: Sequence[Any], at: int) -> str:
    shown = html.escape(str(values[at]))
    return f'<span aria-hidden="true">{label}</span> {_range(label, values, at)}<output>{shown}</output>'


def _switch(label: str, values: Sequence[bool], at: int) -> str:
    return f'<label><input type="checkbox"{" checked" if values[at] else ""}> {label}</label>'


def _text(label: str, values: Sequence[str], at: int) -> str:
    each = [
        f'<option value="{i}"{" selected" if i == at else ""}>{html.escape(value)}</option>'
        for i, value in enumerate(values)
    ]
    return f"<label>{label.removesuffix(', then Enter')} <select>{''.join(each)}</select></label>"


KINDS = {
    "number": _number,
    "steps": _steps,
    "choice": _buttons,
    "slider": _slider,
    "switch": _switch,
    "text": _text,
    "actions": _actions,
}
