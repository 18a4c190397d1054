"""W37, patching: a vector of one prompt's run put into another prompt's, and what a real model says then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...lab import capitals
from ..svg import patching as drawing
from ..svg.elements import Picture
from .controls import choice, number
from .panel import Panel

Likely = list[tuple[str, float]]
SHORT = {"country": -2, "last": -1}  # where the two words are at which the runs differ


def patching(pair: str = "France/Germany", *, position: int = 0, layer: int = 0) -> Panel:
    """Put a vector of "The capital of France is" into the run on "The capital of Germany is", and see what is said.

    The states were measured with the real model and are stored; nothing is computed here.

    Args:
        pair: which countries, the one that gives first. position: from 0. layer: in front of which, from 0; 30 is
            behind the last.

    Raises:
        ValueError: there is no such pair, position or layer.
    """
    shown = capitals.load_results()["shown"]
    if pair not in shown:
        raise ValueError(f"pair must be one of {', '.join(shown)}, got {pair!r}")
    tokens, n_layers = shown[pair]["tokens"], len(shown[pair]["last"]) - 1
    if position not in range(len(tokens)):
        raise ValueError(f"position must lie between 0 and {len(tokens) - 1}, got {position}")

    def draw(pair: str, position: int, layer: int) -> Picture:
        return draw_patch(shown[pair], pair.split("/"), position, layer)

    names = [f"{giver} into {taker}" for giver, taker in (each.split("/") for each in shown)]
    words = [token.strip() for token in tokens]
    words[-2] = "country"
    controls = {
        "pair": choice("patch", list(shown), pair, names=names),
        "position": choice("at", list(range(len(tokens))), position, names=words),
        "layer": number("in front of layer", layer, 0, n_layers),
    }
    return Panel(draw, controls, widget_id="W37", says_lines=2)


def said_after(record: dict[str, Any], position: int, layer: int) -> Likely:
    """Return the likeliest words after a patch; where both runs have the same vector, those without it."""
    behind = position - len(record["tokens"])
    name = next((name for name, place in SHORT.items() if place == behind), None)
    found = record["own"][1] if name is None else record[name][layer]
    return [(word, p) for word, p in found]


def draw_patch(record: dict[str, Any], countries: Sequence[str], position: int, layer: int) -> Picture:
    """Draw the run with its patch, and what is said with and without it and in the run that gives."""
    giver, taker = countries
    tokens, n_layers = [token.strip() for token in record["tokens"]], len(record["last"]) - 1
    tokens[-2] = taker
    likely, own = said_after(record, position, layer), record["own"]
    body = drawing.streams(tokens, n_layers) + drawing.patched(position, layer, n_layers, giver)
    body += drawing.said(0, "says with the patch", likely, drawing.OWN)
    body += drawing.said(1, f"without, {taker}", own[1], drawing.GREY)
    body += drawing.said(2, f"the run that gives, {giver}", own[0], drawing.GREY)
    where = f"in front of layer {layer}" if layer < n_layers else "behind the last layer"
    says = (
        f"{giver}'s vector at “{tokens[position] if position != len(tokens) - 2 else 'country'}”, {where}: the model "
        f"says{likely[0][0]} ({likely[0][1]:.2f}); without the patch{own[1][0][0]} ({own[1][0][1]:.2f})"
    )
    table = [["next word", "probability"], *([word.strip(), f"{p:.2f}"] for word, p in likely)]
    alt = f"Five words as columns with layers from below, one place marked, and bars of the next words. {says}"
    return Picture(body, drawing.WIDTH, drawing.HEIGHT, alt, says, table=table)
