"""W25, the ablations: each part's worth, trained without it and taken out of the trained model."""

from __future__ import annotations

from collections.abc import Sequence

from ...._validate import check_choice
from ..svg import ablation_bars
from ..svg.elements import Picture, text
from .controls import choice
from .panel import Panel
from .training_panel import stored_study

# The part: the variant that is trained without it, and what is taken out of the trained baseline.
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "positions": ("no positions", ("positions",)),
    "causal mask": ("no causal mask", ("causal mask",)),
    "residual": ("no residual", ("residual",)),
    "scaling": ("no scaling", ("scaling",)),
    "layer norm": ("no layer norm", ("layer norm",)),
    "feed-forward": ("no feed-forward", ("feed-forward",)),
    "embedding scale": ("no embedding scale", ("embedding scale",)),
    "all heads but one": ("one head", tuple(f"all heads but {head}" for head in (1, 2, 3, 4))),
}
SCORES = {
    "exact match, held-out": ("heldout", "exact match"),
    "sense, held-out": ("heldout", "sense accuracy"),
    "exact match, compositional": ("compositional", "exact match"),
    "sense, compositional": ("compositional", "sense accuracy"),
}


def ablation_scores(part: str, score: str = "exact match, held-out") -> dict[str, list[float]]:
    """Return the scores by seed of the "baseline", "trained without" the part, and with it "off at test time".

    For the heads, "off at test time" has each seed with each of its four heads alone.

    Raises:
        ValueError: unknown part or score.
    """
    check_choice("part", part, PARTS)
    check_choice("score", score, SCORES)
    (split, metric), (variant, removed), stored = SCORES[score], PARTS[part], stored_study()
    trained = {name: [run["scores"][split][metric] for run in runs] for name, runs in stored["trained"].items()}
    off = [run["scores"][name][split][metric] for run in stored["off at test"]["baseline"] for name in removed]
    return {"baseline": trained["baseline"], "trained without": trained[variant], "off at test time": off}


def ablations(part: str = "positions", score: str = "exact match, held-out") -> Panel:
    """Choose a part and a score: the whole model's, trained without the part, and the part off at test time.

    Raises ValueError when there is no such part or score.
    """
    ablation_scores(part, score)
    controls = {"part": choice("part:", list(PARTS), part), "score": choice("score:", list(SCORES), score)}
    return Panel(draw_ablations, controls, widget_id="W25")


def draw_ablations(part: str, score: str) -> Picture:
    """Draw rows of dots, a dot per seed: left, trained without the part; right, the part taken out at test time."""
    table = {name: ablation_scores(name, score) for name in PARTS}
    chosen, whole = table[part], table[part]["baseline"]
    top, width = 34, 250
    body = ablation_bars.row_names(list(PARTS), part, top, 712)
    for kind, x in (("trained without", 150), ("off at test time", 445)):
        body += text(x, 18, kind, "bold")
        body += ablation_bars.dot_rows({name: row[kind] for name, row in table.items()}, whole, x, top, width)
    dots = "one seed (heads, on the right: one head of one seed)"
    body += ablation_bars.key(150, top + ablation_bars.ROW * len(PARTS) + 40, dots, "baseline, mean")
    says = f"{score}: baseline {_range(whole)}; {part}: trained without {_range(chosen['trained without'])}"
    says += f", off at test time {_range(chosen['off at test time'])}"
    rows = [["part", "trained without", "off at test time"]]
    rows += [[name, _range(row["trained without"]), _range(row["off at test time"])] for name, row in table.items()]
    alt = f"Dots per seed for {len(PARTS)} parts of the model, from 0 to 1. {says[0].upper()}{says[1:]}."
    return Picture(body, 712, top + ablation_bars.ROW * len(PARTS) + 52, alt, says, table=rows)


def _range(values: Sequence[float]) -> str:
    """Write the range of the values in words: "0.61 to 0.64", or "1.00"."""
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"
