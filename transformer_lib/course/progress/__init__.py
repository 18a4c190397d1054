"""Remembers on this machine what a learner has passed, and shows it as a strip or a map.

One small JSON file in the user's data folder:

- Linux: `$XDG_DATA_HOME/transformer-course/progress.json`, by default below `~/.local/share`
- macOS: `~/Library/Application Support/transformer-course/progress.json`, or below `$XDG_DATA_HOME` where that is set
- Windows: `%APPDATA%\\transformer-course\\progress.json`

The environment variable TRANSFORMER_COURSE_PROGRESS names another file. With TRANSFORMER_COURSE_STATIC
set, nothing is written and every display shows the neutral state: stored outputs must not depend on who
made them. Nothing here uses the network.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

from .. import notebooks, routes
from . import store
from .guesses import Guess, guesses_view
from .live import Live, in_kernel, show
from .places import Place, place_to_continue
from .route_view import above_map, routes_view
from .store import KINDS, State, empty, path, read, update
from .view import View, closing_view, finished, map_view, strip_view

__all__ = [
    "banner",
    "course_map",
    "in_kernel",
    "last",
    "mark",
    "passed",
    "path",
    "predictions",
    "reset",
    "route",
    "said",
    "say",
    "show",
    "state",
    "take",
    "static",
]

_strips: dict[str, Live] = {}  # those that this kernel shows


def static() -> bool:
    """Return True while outputs are made to be stored or compared: show and write nothing personal."""
    return os.environ.get("TRANSFORMER_COURSE_STATIC", "") not in ("", "0")


def state() -> State:
    """Return what has been passed, {kind: {id: date}}. A missing or damaged file counts as nothing passed."""
    return empty() if static() else read(path()) or empty()


def mark(kind: str, name: str) -> bool:
    """Remember that something was passed or tried.

    Args:
        kind: "exercise", "quiz", "case" (a diagnosis), "widget" or "notebook".
        name: its id, such as "04.1".

    Returns:
        True when it is on disk; False when it could not be written, or must not be.

    Raises:
        ValueError: if `kind` is not one of the five.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if static() or os.environ.get("NBGRADER_EXECUTION"):
        return False

    def add(current: State) -> State:
        current[kind].setdefault(name, date.today().isoformat())
        return current

    done = update(path(), add, here="" if kind == "widget" else name.split(".")[0])
    for strip in _strips.values():
        strip.redraw()
    return done


def passed(kind: str, name: str) -> View | None:
    """Remember as `mark` does; return what to show when this was the last task of its notebook, else None.

    Raises:
        ValueError: as for `mark`, or if the id is not one of a task of a notebook.
    """
    entry = notebooks.notebook(name.split(".")[0])
    before = finished(entry, state())
    mark(kind, name)
    if before or not finished(entry, state()):
        return None
    return View(lambda: closing_view(entry, notebooks.following(entry)))


def said(prediction_id: str) -> Guess | None:
    """Return what was predicted under this id and how it came out; None for nothing."""
    return Guess.read(state()["prediction"].get(prediction_id, ""))


def say(prediction_id: str, words: str, right: bool | None = None) -> bool:
    """Remember a prediction, and whether it came true once that is known. True when that is on disk."""
    if static() or os.environ.get("NBGRADER_EXECUTION"):
        return False
    kept = str(Guess(date.today().isoformat(), right, words))

    def add(current: State) -> State:
        return {**current, "prediction": {**current["prediction"], prediction_id: kept}}

    return update(path(), add, here=prediction_id.split(".")[0])


def predictions() -> View:
    """Show how often a prediction came true, by notebook."""
    return View(lambda: guesses_view(state()["prediction"], notebooks.NOTEBOOKS))


def take(file: str | os.PathLike[str]) -> None:
    """Add what another progress file holds, such as the one that the course's pages give; what is here stays.

    Raises:
        ValueError: if there is no such file, or it is not one of progress.
    """
    theirs = read(Path(file))
    if theirs is None:
        raise ValueError(f"file must be a progress file, as the course's pages give it, got {os.fspath(file)!r}")
    known = {
        kind: {name for entry in notebooks.NOTEBOOKS for part, name in entry.parts if part == kind} for kind in KINDS
    }
    new = {kind: {name: on for name, on in theirs[kind].items() if name in known[kind]} for kind in known}
    new["prediction"] = {name: kept for name, kept in theirs["prediction"].items() if Guess.read(kept)}
    before = state()
    added = sum(name not in before[kind] for kind, names in new.items() for name in names)
    kept = update(path(), lambda ours: {kind: {**new.get(kind, {}), **mine} for kind, mine in ours.items()})
    print(f"{added} added to what you had." if kept else f"{path()} could not be written; nothing was added.")


def last() -> tuple[str, ...]:
    """Return the number of the notebook last worked in; nothing when there is none."""
    found = "" if static() else store.last(path())
    return (found,) if found in [entry.id for entry in notebooks.NOTEBOOKS] else ()


def reset() -> bool:
    """Forget everything that was passed. True when that is on disk."""
    return not static() and update(path(), lambda current: empty())


def banner(notebook_id: str) -> View:
    """Show the strip on top of a notebook: where it stands in the course, and what is done in it.

    Raises:
        ValueError: if there is no such notebook.
    """
    entry, before = notebooks.notebook(notebook_id), last()
    mark("notebook", notebook_id)
    strip = Live(lambda: strip_view(entry, state(), notebooks.NOTEBOOKS, _continue(entry, before)), static)
    _strips[notebook_id] = strip
    return strip


def _continue(here: notebooks.Notebook, before: tuple[str, ...]) -> Place | None:
    """Return where to go on: in this notebook if something is passed in it, else in the one before; or None."""
    now = state()
    candidates = [here, *(notebooks.notebook(name) for name in before)]
    return next((place for entry in candidates if (place := place_to_continue(entry, now))), None)


def course_map() -> View:
    """Show the table of all notebooks with what is done; above it the route, if one is chosen."""

    def draw() -> tuple[str, str]:
        now = state()
        return above_map(_chosen_route(now), now, map_view(now, notebooks.NOTEBOOKS, notebooks.written))

    return View(draw)


def route(name: str | None = None) -> View:
    """Choose a route through the course, and show what is next on it; without a name, show the routes there are.

    The map shows the chosen route too. A route chosen later takes its place.

    Args:
        name: "evening", "spine" or "everything".

    Raises:
        ValueError: if there is no such route.
    """
    if name is not None:
        chosen = routes.route(name)
        if not static():
            update(path(), lambda current: {**current, "route": {chosen.id: date.today().isoformat()}})

    def draw() -> tuple[str, str]:
        now = state()
        return routes_view(routes.ROUTES, _chosen_route(now), now)

    return View(draw)


def _chosen_route(now: State) -> routes.Route | None:
    """Return the chosen route; None where none is chosen, or one that there is no longer."""
    return next((each for each in routes.ROUTES if each.id in now["route"]), None)
