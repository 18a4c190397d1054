"""W14, calm training: label smoothing's target, and the learning rate of the warm-up schedule."""

from __future__ import annotations

import numpy as np

from ....training.schedules import paper_rate
from ..svg.charts import bar_strip, log_chart
from ..svg.colours import CIVIDIS, weight_levels
from ..svg.elements import Picture, text
from .controls import number
from .panel import Panel

VOCABULARY = 10  # tokens in the picture; the right one is the fourth
RIGHT = 3
STEPS = tuple(100 * 2**i for i in range(11))  # 100 … 102,400


def smoothed_target(smoothing: float, vocab_size: int = VOCABULARY, right: int = RIGHT) -> np.ndarray:
    """Return (1 − ε) on the right token plus ε / vocab_size on every token, [vocab_size]; it sums to one."""
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing must lie in [0, 1], got {smoothing}")
    target = np.full(vocab_size, smoothing / vocab_size)
    target[right] += 1 - smoothing
    return target


def training_choices(smoothing: float = 0.1, warmup_steps: int = 4000, d_model: int = 512) -> Panel:
    """Show what ε, the length of the warm-up and d_model do to the target distribution and to the learning rate."""
    controls = {
        "smoothing": number("ε of label smoothing", smoothing, 0.0, 0.5, 0.05),
        "warmup_steps": number("warm-up steps", warmup_steps, 100, 16000, 100),
        "d_model": number("d_model", d_model, 64, 1024, 64),
    }
    few = {"warmup_steps": (100, 500, 1000, 2000, 4000, 8000, 16000), "d_model": (64, 128, 256, 512, 1024)}
    return Panel(draw_choices, controls, widget_id="W14", carried=few)


def draw_choices(smoothing: float, warmup_steps: int, d_model: int) -> Picture:
    """Draw the target as bars on the left, and on the right the learning rate on a logarithmic axis of steps."""
    target = smoothed_target(smoothing)
    drawn = text(50, 14, f"target over {VOCABULARY} tokens, the fourth is right", "bold")
    drawn += bar_strip(target, [CIVIDIS[i] for i in weight_levels(target)], (50, 28, 270, 150), (0.0, 1.0))
    for token, share in enumerate(target):
        drawn += text(50 + 27 * token + 13, 196, f"{share:.2f}".removeprefix("0"), "mid soft", size=11)
    rates = [1000 * paper_rate(step, d_model, warmup_steps) for step in STEPS]
    peak = 1000 * paper_rate(warmup_steps, d_model, warmup_steps)
    high = next(limit for limit in (1.0, 2.0, 4.0, 8.0, 16.0) if peak <= limit)
    xs = sorted({*STEPS, warmup_steps})
    series = {"learning rate": [1000 * paper_rate(step, d_model, warmup_steps) for step in xs]}
    drawn += text(400, 14, "learning rate × 1000 over training steps", "bold")
    drawn += log_chart(xs, series, (400, 28, 290, 150), high=high, colours=("#0072b2",), marked=(warmup_steps, peak))
    says = f"target {target[RIGHT]:.2f} on the right token and {target[0]:.3f} on each other; "
    says += f"the rate peaks at step {warmup_steps:,} with {peak / 1000:.5f}"
    table = [["step", "learning rate"], *([f"{s:,}", f"{r / 1000:.6f}"] for s, r in zip(STEPS, rates, strict=True))]
    alt = f"Target distribution as bars, learning rate over steps as a curve. {says[0].upper()}{says[1:]}."
    return Picture(drawn, 710, 232, alt, says, table=table)
