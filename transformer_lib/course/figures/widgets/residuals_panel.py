"""W13, residual and norm: what a deep stack does to activations and gradients before any training."""

from __future__ import annotations

import math

from ...._validate import check_choice
from ...lab import depth
from ..svg import signals
from ..svg.elements import Picture, text
from .controls import choice, number, switch
from .panel import Panel

_NAMES = {"none": "no norm", "post": "post-norm", "pre": "pre-norm"}


def residual_and_norm(
    *, residual: bool = True, norm: str = "post", n_blocks: int = 24, gain: float = 1.0, seed: int = 0
) -> Panel:
    """Switch the residual connection and the norm of an untrained stack of blocks; see what passes through it.

    ``gain`` is the size of the random weights: N(0, gain² / fan_in). Raises ValueError when norm is not "none",
    "post" or "pre", n_blocks not 1 to 24, gain not 0.5 to 1.5 or seed not 0 to 9.
    """
    controls = {
        "residual": switch("residual: x + f(x)", residual),
        "norm": choice("norm", depth.NORMS, check_choice("norm", norm, depth.NORMS)),
        "n_blocks": number("blocks", n_blocks, 1, 24),
        "gain": number("weights, times 1/√inputs", gain, 0.5, 1.5, 0.1),
        "seed": number("seed", seed, 0, 9),
    }
    few = {"n_blocks": (1, 2, 4, 6, 12, 24), "gain": (0.5, 0.8, 1.0, 1.2, 1.5), "seed": (0, 1, 2)}
    return Panel(draw_signals, controls, widget_id="W13", carried=few)


def draw_signals(residual: bool, norm: str, n_blocks: int, gain: float, seed: int) -> Picture:
    """Draw activation and gradient after each block on a logarithmic axis, and how different the rows are."""
    gain = round(gain, 6)
    measured = depth.signals(n_blocks, residual, norm, gain=gain, seed=seed)
    activation, gradient = measured.activation, measured.gradient
    sizes = {"activation": [*map(math.log10, activation)], "gradient": [*map(math.log10, gradient)]}
    top = signals.reach([exponent for values in sizes.values() for exponent in values])
    ticks = {k: signals.power(k) for k in (-top, 0, top)}
    body = text(60, 16, "size of x and of its gradient (before training)", "bold")
    body += signals.block_chart(sizes, (60, 30, 285, 130), ticks)
    body += text(420, 16, "are the rows still different?", "bold")
    body += signals.block_chart({"spread": measured.spread}, (420, 30, 270, 130), {0: "0", 0.5: ".5", 1: "1"})
    around = f"{'with' if residual else 'no'} residual, {_NAMES[norm]}"
    ratio = spoken(gradient[0] / gradient[-1])
    says = f"{n_blocks} blocks, {around}, weights {gain:g}/√inputs, untrained: gradient first/last {ratio}, "
    says += f"activation last/first {spoken(activation[-1] / activation[0])}, "
    says += f"spread of the rows {measured.spread[-1]:.2f}"
    columns = [map(spoken, activation), map(spoken, gradient), map("{:.2f}".format, measured.spread)]
    table = [["after block", "activation", "gradient", "spread"]]
    table += [[str(i), *row] for i, row in enumerate(zip(*columns, strict=True))]
    alt = f"Curves over the blocks: size of x and of its gradient, and how different the rows are. {says}."
    return Picture(body, signals.WIDTH, signals.HEIGHT, alt, says, table=table)


def spoken(value: float) -> str:
    """Write a size with two digits: 0.34, or 3.4e+08 where it is far from 1."""
    return f"{value:.2f}" if 0.01 <= value < 100 else f"{value:.1e}"
