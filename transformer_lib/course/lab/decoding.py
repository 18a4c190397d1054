"""What a wider beam finds, and what label smoothing does to samples, over several trainings (notebook 14).

`load_results()["runs"]` has a record for each training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ..._validate import check_choice
from ...decoding.sampling import greedy_decode
from ...model.base import TranslationModel
from . import stored

load_results = stored.loader("decoding.json")
MOST_PROBABLE = "most probable"
FILTERS: dict[str, dict[str, Any]] = {"all words": {}, "top-k 10": {"top_k": 10}, "top-p 0.9": {"top_p": 0.9}}


def runs(content: dict[str, Any], *, smoothing: float, passes: int) -> list[dict[str, Any]]:
    """Return the stored records of these trainings, one for each seed."""
    wanted = {"smoothing": smoothing, "passes": passes}
    return [record for record in content["runs"] if {key: record[key] for key in wanted} == wanted]


def ways(names: Sequence[str]) -> dict[str, list[float]]:
    """Return the share of held-out translations that are right, a value for each training of the course's recipe.

    Args:
        names: "greedy", "T = 0.7" and other stored temperatures, or names of FILTERS, at temperature 1.

    Raises:
        ValueError: a name is none of these.
    """
    content = load_results()
    records = runs(content, smoothing=0.1, passes=4)
    columns = {f"T = {temperature}": i for i, temperature in enumerate(content["temperatures"])}

    def share(record: dict[str, Any], name: str) -> float:
        if name == "greedy":
            return float(record["greedy"])
        way, column = (name, columns["T = 1.0"]) if name in FILTERS else ("all words", columns[name])
        return float(record["sampled"][way][column])

    for name in names:
        check_choice("name", name, ("greedy", *columns, *FILTERS))
    return {name: [share(record, name) for record in records] for name in names}


def searched(passes: int) -> dict[str, dict[str, list[int]]]:
    """Return how many hard translations are right, and how many are not the most probable, for each width of the beam.

    Each number is a list, with a value for each training of that many passes. The row of the most probable sentence of
    all has no value in the second panel, where it would be 0.
    """
    content = load_results()
    records = [run["search"] for run in runs(content, smoothing=0.1, passes=passes)]
    names = ["1 beam", *(f"{beams} beams" for beams in content["beams"][1:])]
    right, missed = (
        {name: [record[what][i] for record in records] for i, name in enumerate(names)}
        for what in ("right", "search errors")
    )
    best = [record["exhaustive"]["right"] for record in records]
    return {"right": right | {MOST_PROBABLE: best}, "not the most probable": missed | {MOST_PROBABLE: []}}


def rows_computed(model: TranslationModel, src: Tensor, steps: int, *, use_cache: bool) -> list[int]:
    """Return how many rows the decoder computes at each step of a greedy translation that never ends."""
    rows: list[int] = []
    decoder: nn.Module = model.decoder  # type: ignore[attr-defined]
    with decoder.register_forward_hook(lambda module, inputs, output: rows.append(inputs[0].shape[1])):
        greedy_decode(model, src, max_new_tokens=steps, stop_at_eos=False, use_cache=use_cache)
    return rows
