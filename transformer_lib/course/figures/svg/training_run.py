"""A training run while it goes on: its loss so far, and what the model translates by now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .elements import Picture, fit, text
from .run_curves import curve_chart

_POINTS = 300  # of the curve at most


def draw_run(losses: Sequence[float], samples: Mapping[str, str], last: int | None = None) -> Picture:
    """Draw the loss of every step so far, and each sentence of ``samples`` with its translation.

    Args:
        losses: of the steps 1, 2, 3 …; at least one.
        samples: {sentence: its translation}.
        last: steps of the whole run, where that is known; the curve then grows towards the right edge.
    Raises:
        ValueError: there is no loss yet.
    """
    if not losses:
        raise ValueError("losses must hold at least one step, got none")
    now = len(losses)
    stride = math.ceil(now / _POINTS)
    steps = [*range(1, now, stride), now]
    high = max(1.0, math.ceil(max(losses)))
    values = [losses[step - 1] for step in steps]
    body = text(50, 14, "training loss", "bold")
    body += curve_chart({"loss": (steps, values)}, (50, 26, 640, 140), high=high, step=now, last=max(now, last or now))
    for row, (sentence, translation) in enumerate(samples.items()):
        body += text(10, 212 + 40 * row, sentence, "soft") + text(24, 230 + 40 * row, fit(f"→ {translation}", 680))
    says = f"step {now:,}" + (f" of {last:,}" if last else "") + f": loss {losses[-1]:.2f}"
    alt = f"The training loss of {now:,} steps, from {losses[0]:.2f} to {losses[-1]:.2f}."
    return Picture(body, 712, 200 + 40 * len(samples), alt, says)
