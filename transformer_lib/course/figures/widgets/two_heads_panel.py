"""W31, two heads: a string shown twice, read position by position by a model of two attention layers, one head each."""

from __future__ import annotations

import string as alphabet
from contextlib import nullcontext
from functools import cache

import numpy as np
import torch

from ....model import circuits
from ..plotting.base import likeliest
from ..svg import two_heads as drawing
from ..svg.elements import Picture
from .controls import number, word
from .panel import Panel

LETTERS = alphabet.ascii_lowercase
SHORTEST, LONGEST = 3, drawing.MOST // 2
OTHERS = ("abcdefgh", "transformer", "xylophone", "banana")  # what a page offers where nothing can be typed
Run = tuple[np.ndarray, np.ndarray]  # both heads' weights [2, n, n]; p [3, n, 26]: with both, without either


def two_heads(model: circuits.AttentionOnly, string: str, *, position: int = 12) -> Panel:
    """Show a string twice to a model of two layers with one head each, and follow both heads from one position.

    Args:
        model: of 26 letters. string: 3 to 16 letters from a to z; the model reads it twice.
        position: which is looked at, from 0.

    Raises:
        ValueError: the model or the string is another one, or position lies outside of the string shown twice.
    """
    if [layer.n_heads for layer in model.layers] != [1, 1]:
        raise ValueError(f"model must have two layers of one head, got {[layer.n_heads for layer in model.layers]}")
    if letters_of(string) != string or not SHORTEST <= len(string) <= LONGEST:
        raise ValueError(f"string must have {SHORTEST} to {LONGEST} letters from a to z, got {string!r}")
    if not 0 <= position < 2 * len(string):
        raise ValueError(f"position must be from 0 to {2 * len(string) - 1}, got {position}")
    run = cache(lambda shown: both_heads(model, shown))

    def draw(string: str, position: int) -> Picture:
        typed = letters_of(string)[:LONGEST]
        shown = typed if len(typed) >= SHORTEST else (typed + "abc")[:SHORTEST]
        return draw_heads(run(shown), shown, min(position, 2 * len(shown) - 1))

    controls = {"string": word("string, shown twice", string), "position": number("position", position, 0, 31)}
    few = {"string": (string, *(other for other in OTHERS if other != string))}
    return Panel(draw, controls, widget_id="W31", says_lines=3, carried=few)


def letters_of(typed: str) -> str:
    """Return the letters from a to z among what was typed, in lower case."""
    return "".join(letter for letter in typed.lower() if letter in LETTERS)


@torch.no_grad()
def both_heads(model: circuits.AttentionOnly, shown: str) -> Run:
    """Return the heads' weights on the string shown twice, and the next letter's probabilities with and without them.

    A head that is taken away is replaced by its mean over the string.
    """
    ids = torch.tensor([[LETTERS.index(letter) for letter in shown * 2]])
    weights = torch.stack([layer[0, 0] for layer in circuits.trace(model, ids).weights])
    predicted = []
    for gone in (None, 0, 1):
        with nullcontext() if gone is None else circuits.ablate_head(model, gone, 0, how="mean"):
            predicted.append(model(ids)[0].softmax(dim=-1))
    return weights.double().numpy(), torch.stack(predicted).double().numpy()


def draw_heads(run: Run, shown: str, position: int) -> Picture:
    """Draw where the second head looks from a position, where the first looked from there, and what is said."""
    (first, second), said = run
    both, n = shown * 2, 2 * len(shown)
    source = int(second[position].argmax())
    before = int(first[source].argmax())
    likely = [likeliest(row, LETTERS) for row in said[:, position]]
    body = drawing.letters(both, position, len(shown), source)
    body += drawing.bars(second[position, :n], 0, f"second head, from position {position}", drawing.SECOND, position)
    title = f"first head, from position {source}, where the second looks most"
    body += drawing.bars(first[source, :n], 1, title, drawing.FIRST, source)
    titles = ("says with both heads", "without the first", "without the second")
    colours = (drawing.ALL, drawing.SECOND, drawing.FIRST)
    for column, (name, letters, colour) in enumerate(zip(titles, likely, colours, strict=True)):
        body += drawing.said(column, name, letters, colour)
    says = describe(both, position, (source, second[position, source]), (before, first[source, before]), likely)
    table = [["position", "letter", "weight of the second head", f"of the first, from position {source}"]]
    table += [[i, both[i], f"{second[position, i]:.2f}", f"{first[source, i]:.2f}"] for i in range(n)]
    alt = f"A string of letters, the weights of two heads above it as bars, and the letters that are said. {says}"
    return Picture(body, drawing.WIDTH, drawing.HEIGHT, alt, says, table=table)


def describe(
    both: str,
    position: int,
    second: tuple[int, float],
    first: tuple[int, float],
    likely: list[list[tuple[str, float]]],
) -> str:
    """Say where both heads look, and which letter is said with and without each."""
    (source, strength), (before, weight) = second, first
    said = [f"{letters[0][0]} {letters[0][1]:.2f}" for letters in likely]
    return (
        f"position {position}, {both[position]}: the second head looks most at {source}, {both[source]} "
        f"({strength:.2f}); from there the first looked most at {before}, {both[before]} ({weight:.2f}). "
        f"Said next: {said[0]}; without the first head {said[1]}, without the second {said[2]}"
    )
