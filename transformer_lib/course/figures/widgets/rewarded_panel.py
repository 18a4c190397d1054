"""W38, a writer that is rewarded: what stored steps of reinforcement did to it, by the price of leaving what it was."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...lab import rewards
from ..svg.charts import Axes, Box
from ..svg.elements import SOFT, Picture, fit, line, ring, text
from .controls import choice
from .panel import Panel

STEPS = (0, 20, 40, 60, 90, 120, 150)
PRICES = (0.0, 0.05)
SEEDS = (0, 1, 2)
SHOWN = {  # what is drawn: its title, the top of its axis, its colour
    "grammatical": ("grammatical", 1.0, "#0072b2"),
    "distinct": ("distinct sentences", 1.0, "#d55e00"),
    "perplexity": ("perplexity, held out", 45.0, "#cc79a7"),
}


def rewarded(price: float = 0.0, step: int = 0, seed: int = 0) -> Panel:
    """Show three measures of the writer over stored steps, and the sentence that it says most often.

    Raises:
        ValueError: there is no such stored price, step or seed.
    """
    for name, value, known in (("price", price, PRICES), ("step", step, STEPS), ("seed", seed, SEEDS)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {value!r}")
    controls = {
        "price": choice("KL weight β", PRICES, price),
        "step": choice("after step", STEPS, step),
        "seed": choice("seed", SEEDS, seed),
    }
    return Panel(draw_rewarded, controls, widget_id="W38")


@cache
def measured(price: float, seed: int) -> dict[int, dict[str, Any]]:
    """Return {step: what is stored} of one run, with the writer before it as step 0."""
    runs = {run["arm"]: run["steps"] for run in rewards.load_results()["runs"] if run["seed"] == seed}
    stored = {"0": runs["temperature 1"]["0"], **runs[f"KL {price:g}"]}
    return {int(step): found for step, found in stored.items()}


def draw_rewarded(price: float, step: int, seed: int) -> Picture:
    """Draw the measures up to the step, a chart for each, and below them what the writer says most often by then."""
    run = measured(price, seed)
    seen = [at for at in STEPS if at <= step]
    drawn = "".join(
        _chart(name, {at: run[at][name] for at in seen}, (50 + 240 * place, 30, 170, 120))
        for place, name in enumerate(SHOWN)
    )
    now = run[step]
    times = round(400 * now["commonest"])
    drawn += text(50, 204, f"most often among 400 texts, {times} times:" if times > 1 else "one of 400 texts:", "soft")
    drawn += text(50, 224, fit(now["text"], 650))
    measures = f"{now['grammatical']:.2f} grammatical, {round(400 * now['distinct'])} of 400 distinct"
    says = f"β {price:g}, seed {seed}, after {step} steps: {measures}, perplexity {now['perplexity']:.1f}"
    rows = [[at, *(f"{run[at][name]:.2f}" for name in SHOWN)] for at in seen]
    table = [["step", *(title for title, _, _ in SHOWN.values())], *rows]
    alt = f"Three charts over the steps of reinforcement: share grammatical, share distinct, perplexity. {says}."
    return Picture(drawn, 714, 236, alt, says, table=table)


def _chart(name: str, values: dict[int, float], box: Box) -> str:
    title, high, colour = SHOWN[name]
    axes = Axes(box, (0, STEPS[-1]), (0.0, high))
    last = max(values)
    parts = [text(box[0], 16, title, "bold"), axes.frame(), axes.levels({0.0: "0", high: f"{high:g}"})]
    parts.append(axes.ticks({0: "0", 60: "60", 150: "150"}))
    parts.append(line(*axes.place(last, high), *axes.place(last, 0), SOFT, 'stroke-dasharray="2 3"'))
    parts.append(axes.curve(values, values.values(), f'stroke="{colour}" fill="none" stroke-width="2"'))
    parts.append(ring(*axes.place(last, values[last])))
    return "".join(parts)
