"""Draws the routes as text and HTML: which there are, how far one is on the chosen one, and what is next on it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..routes import Route, Stop
from .store import State
from .view import SYMBOLS

HOW = "Run the top of each notebook, then these sections; they do without the others. Exercises not named can wait."


def stop_standing(stop: Stop, state: State) -> str:
    """Return "done", "started" or "not yet" for what a route takes from a notebook."""
    opened = stop.id in state["notebook"]
    passed = [name in state[kind] for kind, name in stop.parts]
    if all(passed) and (passed or opened):
        return "done"
    return "started" if opened or any(passed) else "not yet"


def next_stop(route: Route, state: State) -> Stop | None:
    """Return the first stop that is not done; None at the end of the route."""
    return next((stop for stop in route.stops if stop_standing(stop, state) != "done"), None)


def routes_view(routes: Sequence[Route], chosen: Route | None, state: State) -> tuple[str, str]:
    """Return HTML and text of the routes to choose from, and of the chosen one."""
    rows = [
        (route.title + " ✓" * (route is chosen), spoken(route.minutes), route.about, f'progress.route("{route.id}")')
        for route in routes
    ]
    lines = [f"{title:<13} {time:>11}  {about}: {call}" for title, time, about, call in rows]
    body = "".join(
        _row(title, time, escape(about), f"<code>{escape(call)}</code>") for title, time, about, call in rows
    )
    html = _table("The routes through the course", ("route", "time", "what it is", "choose it by"), body)
    if chosen is None:
        return html, "\n".join(lines)
    own_html, own_text = route_view(chosen, state)
    return html + own_html, "\n".join([*lines, "", own_text])


def route_view(route: Route, state: State) -> tuple[str, str]:
    """Return HTML and text of one route: how far, what is next, and its stops where they are parts of notebooks."""
    done = sum(stop_standing(stop, state) == "done" for stop in route.stops)
    following = next_stop(route, state)
    head = f"{route.title}, {spoken(route.minutes)}: {done} of {len(route.stops)} stops done"
    text = f"{head} · next: {_name(following)}" if following else f"{head}. You have arrived."
    html = f"{escape(head)} · next: {_link(following)}" if following else escape(text)
    html = f"<p><b>{html}</b></p>"
    listed = [stop for stop in route.stops if stop.sections]
    if not listed:
        return html, text
    rows = [(stop_standing(stop, state), stop) for stop in listed]
    body = "".join(
        _row(
            f"{SYMBOLS[word]} {word}",
            _link(stop),
            f"{stop.minutes}",
            escape(" · ".join(stop.sections)),
            escape(_exercises(stop)),
        )
        for word, stop in rows
    )
    titles = ("progress", "notebook", "minutes", "sections", "exercises")
    lines = [f"{SYMBOLS[word]} {word:<8} {_name(stop)}, {stop.minutes} min: {_sections(stop)}" for word, stop in rows]
    html += f"<p>{escape(HOW)}</p>" + _table(f"Your route: {route.title}", titles, body)
    return html, "\n".join([text, HOW, *lines])


def above_map(route: Route | None, state: State, course_map: tuple[str, str]) -> tuple[str, str]:
    """Return the map, HTML and text, with the chosen route above it."""
    if route is None:
        return course_map
    html, text = route_view(route, state)
    return html + course_map[0], f"{text}\n\n{course_map[1]}"


def spoken(minutes: int) -> str:
    """Write minutes as people do: hours from two on, to the half hour."""
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 30) / 2:g} hours"


def _name(stop: Stop) -> str:
    return f"{stop.id} · {stop.entry.title}"


def _sections(stop: Stop) -> str:
    exercises = _exercises(stop)
    return "; ".join(stop.sections) + (f" (exercises {exercises})" if exercises else "")


def _exercises(stop: Stop) -> str:
    return ", ".join(name for kind, name in stop.parts if kind == "exercise")


def _link(stop: Stop) -> str:
    return f'<a href="{escape(stop.entry.filename, quote=True)}">{escape(_name(stop))}</a>'


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def _table(caption: str, titles: Sequence[str], body: str) -> str:
    head = "".join(f'<th scope="col" style="text-align:left">{title}</th>' for title in titles)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
