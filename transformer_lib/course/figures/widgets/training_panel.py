"""W11, the training replay: a stored run of the ablation study, or two, step by step, with what they translate."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right

from ...._validate import check_choice
from ...lab import ablations
from ..svg import run_curves
from ..svg.elements import Picture, text
from .controls import choice, number
from .panel import Panel

NOTHING, ANOTHER_SEED = "nothing", "another seed"
_HIGH = 7.0  # nats; the top of the chart


@functools.lru_cache(maxsize=1)
def stored_study() -> dict:
    """Return the stored ablation study; it is read once."""
    return ablations.load_results()


def other_runs() -> list[str]:
    """Return what the baseline can be compared with: nothing, each variant, and the baseline with another seed."""
    return [NOTHING, *(name for name in stored_study()["trained"] if name != "baseline"), ANOTHER_SEED]


def training_replay(beside: str = NOTHING, step: int = 256) -> Panel:
    """Show the baseline, alone or beside another run, with a step to move: loss, rate, four translations by then.

    Raises ValueError when ``beside`` is none of `other_runs` or ``step`` is not 1 to the last.
    """
    options = other_runs()
    last = stored_study()["trained"]["baseline"][0]["curve"]["steps"][-1]
    controls = {
        "step": number("step", step, 1, last, powers=True),
        "beside": choice("beside the baseline:", options, check_choice("beside", beside, options)),
    }
    return Panel(draw_replay, controls, widget_id="W11")


def run_called(name: str) -> dict:
    """Return the stored run of a variant, seed 0; of `ANOTHER_SEED`, the baseline's of seed 1."""
    runs = stored_study()["trained"]
    return runs["baseline"][1] if name == ANOTHER_SEED else runs[name][0]


def logged(run: dict, step: int) -> tuple[int, float, float]:
    """Return the last logged step up to ``step``, and the loss and learning rate there."""
    curve = run["curve"]
    i = bisect_right(curve["steps"], step) - 1
    return curve["steps"][i], curve["loss"][i], curve["rate"][i]


def translated(run: dict, step: int) -> tuple[int, list[str]]:
    """Return the last step up to ``step`` after which the samples were translated, and the translations."""
    at = max(int(done) for done in run["samples"] if int(done) <= step)
    return at, run["samples"][str(at)]


def draw_replay(step: int, beside: str) -> Picture:
    """Draw the runs' curves with rings at the step, and each run's translations of the four sentences."""
    stored = stored_study()
    runs = {name: run_called(name) for name in ("baseline", beside) if name != NOTHING}
    at, losses = logged(runs["baseline"], step)[0], [logged(run, step)[1] for run in runs.values()]
    when, _ = translated(runs["baseline"], step)
    said = [translated(run, step)[1] for run in runs.values()]
    right = [sum(map(str.__eq__, texts, stored["references"])) for texts in said]
    last = runs["baseline"]["curve"]["steps"][-1]
    curves = {name: (run["curve"]["steps"], run["curve"]["loss"]) for name, run in runs.items()}
    rates = {name: (run["curve"]["steps"], [1000 * r for r in run["curve"]["rate"]]) for name, run in runs.items()}
    body = text(50, 14, "training loss, every tenth step", "bold")
    body += run_curves.curve_chart(curves, (50, 26, 400, 140), high=_HIGH, step=at, last=last)
    body += text(510, 14, "learning rate × 1000", "bold")
    peak = float(math.ceil(max(rate for _, curve in rates.values() for rate in curve)))
    body += run_curves.curve_chart(rates, (510, 26, 185, 140), high=peak, step=at, last=last)
    body += run_curves.legend(list(runs), 50, 204)
    body += text(450, 204, f"translated after step {when:,}:", "soft")
    body += run_curves.sample_lines(stored["sentences"], stored["references"], said, 228, 720)
    shown = f"step {step:,}" if at == step else f"step {step:,}, logged after {at:,}"
    says = f"{shown}: loss " + ", ".join(f"{loss:.2f} ({name})" for name, loss in zip(runs, losses, strict=True))
    says += f"; right after step {when:,}: {' and '.join(map(str, right))} of {len(stored['sentences'])} sentences"
    alt = f"Loss and learning rate of {' and '.join(runs)} over {last:,} steps, four translations. {says}."
    return Picture(body, 712, 452, alt, says)
