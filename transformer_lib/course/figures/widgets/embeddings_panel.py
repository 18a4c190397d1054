"""W19, the embedding plane: the rows of a table as points, before, during and after training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..plotting.base import as_array, signed_text
from ..svg import Picture, scatter
from .controls import number
from .panel import Panel

MOST_WORDS = 40


def final_plane(tables: np.ndarray) -> tuple[np.ndarray, float]:
    """Return points [n_tables, n_words, 2] in the plane where the last table spreads most, and the share it keeps.

    The plane is that of the first two principal components of the last of ``tables`` [n_tables, n_words, d_model],
    so the axes are the same for all tables.
    """
    middle = tables[-1].mean(axis=0)
    _, sizes, axes = np.linalg.svd(tables[-1] - middle, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2, np.abs(axes[:2]).argmax(axis=1)].diagonal())[:, None]  # no sign left to chance
    return (tables - middle) @ axes.T, float((sizes[:2] ** 2).sum() / (sizes**2).sum())


def class_cosines(table: np.ndarray, kinds: Sequence[int]) -> tuple[float, float, int]:
    """Return the mean cosine within and between classes, and how many nearest rows share the class."""
    kinds = np.asarray(kinds)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosines, same, other = unit @ unit.T, kinds[:, None] == kinds, ~np.eye(len(kinds), dtype=bool)
    nearest = np.where(other, cosines, -2).argmax(axis=1)
    within, between = cosines[same & other].mean(), cosines[~same].mean()
    return float(within), float(between), int((kinds[nearest] == kinds).sum())


def embedding_plane(snapshots: Mapping[int, Any], classes: Mapping[str, Sequence[str]], *, shown: int = 0) -> Panel:
    """Watch the rows of an embedding table move during training.

    snapshots: {training steps: table [n_words, d_model]}; classes: {name of a class: its words}, 2 to 6 classes, the
    words in the order of the rows. ``shown`` is the index of the snapshot that is shown first.
    Raises ValueError when words and rows do not fit together.
    """
    words = [word for group in classes.values() for word in group]
    kinds = [kind for kind, group in enumerate(classes.values()) for _ in group]
    tables = np.stack([as_array("snapshots", table, 2) for table in snapshots.values()])
    if not 2 <= len(classes) <= len(scatter.COLOURS):
        raise ValueError(f"classes must be 2 to {len(scatter.COLOURS)}, got {len(classes)}")
    if len(words) != tables.shape[1] or len(words) > MOST_WORDS:
        size = tables.shape[1]
        raise ValueError(f"classes must name one word per row, {size}, and at most {MOST_WORDS}, got {len(words)}")
    points, kept = final_plane(tables)
    steps = list(snapshots)

    def draw(snapshot: int) -> Picture:
        here = points[snapshot]
        return draw_plane(here, tables[snapshot], words, kinds, list(classes), steps[snapshot], points, kept)

    return Panel(draw, {"snapshot": number("snapshot", shown, 0, len(steps) - 1)}, widget_id="W19")


def draw_plane(
    here: np.ndarray,
    table: np.ndarray,
    words: Sequence[str],
    kinds: Sequence[int],
    names: Sequence[str],
    step: int,
    points: np.ndarray,
    kept: float,
) -> Picture:
    """Draw one snapshot; ``points`` are those of all snapshots, which set the scale."""
    within, between, nearest = class_cosines(table, kinds)
    says = f"After {step} training steps: cosine within a class {signed_text(within)}, "
    says += f"between classes {signed_text(between)}; {nearest} of {len(words)} nearest rows share the class"
    facts = [
        f"after {step} training steps",
        f"cosine in class: {signed_text(within)}",
        f"between classes: {signed_text(between)}",
        f"nearest in class: {nearest} of {len(words)}",
        f"plane keeps {kept:.0%} of the",
        "last table's spread",
    ]
    body = scatter.points_part(here, words, kinds, float(np.abs(points).max())) + scatter.legend_part(names, facts)
    alt = f"Words as points in a plane, marked by class. {says}."
    rows = [[w, names[k], *map(signed_text, xy)] for w, k, xy in zip(words, kinds, here.tolist(), strict=True)]
    table_rows = [["word", "class", "first axis", "second axis"], *rows]
    return Picture(body, scatter.SIDE + scatter.SIDEBAR, scatter.SIDE, alt, says, table=table_rows)
