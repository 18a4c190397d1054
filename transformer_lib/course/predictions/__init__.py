"""Predictions to commit to before a cell is run, and how they compare with what came out.

`predict("00.p1")` as the last expression of a cell shows a line to type into, or buttons; `predict("00.p1", 9)` does
the same by text. `outcome("00.p1", count)` in the cell of the experiment says how the two compare. Nothing is scored,
and a cell runs just as well without a prediction. What was said is remembered on this machine only (`progress`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsFloat

from .. import progress
from ..quiz.view import AskedView
from .bank import PREDICTIONS
from .model import Choice, Comparison, Number, Prediction, Said
from .view import build, compared, html, plain

if TYPE_CHECKING:
    import ipywidgets

__all__ = ["Choice", "Comparison", "Number", "PredictionView", "outcome", "predict", "prediction"]

_said: dict[str, str] = {}  # in this kernel, whether or not it could be kept on disk
_seen: set[str] = set()  # what has come out in this kernel before anything was said


def prediction(prediction_id: str) -> Prediction:
    """Return what is asked under this id, such as "00.p1".

    Raises:
        ValueError: if there is no such prediction.
    """
    for entry in PREDICTIONS:
        if entry.id == prediction_id:
            return entry
    ids = ", ".join(entry.id for entry in PREDICTIONS)
    raise ValueError(f"prediction_id must be one of {ids}, got {prediction_id!r}")


def commit(prediction_id: str, said: Said) -> str:
    """Note what is expected, until the outcome is known; return a line about it.

    Raises:
        ValueError: if there is no such prediction, or `said` cannot be read.
    """
    asked = prediction(prediction_id)
    words = asked.read(said)
    kept = progress.said(prediction_id)
    if kept and kept.right is not None:
        return f"You committed to {kept.said} on {kept.date}, and that one counts. Run on."
    if prediction_id in _seen:
        return "You have seen what comes out, so this one is not counted. The next one is yours."
    _said[prediction_id] = words
    progress.say(prediction_id, words)
    return f"Noted: {words}. Now run the cell below."


def outcome(prediction_id: str, came: SupportsFloat | None = None) -> None:
    """Say what came out, beside what was predicted, and remember whether it came true.

    Args:
        prediction_id: such as "00.p1".
        came: the number that came out; left out where an option was asked for.

    Raises:
        ValueError: if there is no such prediction. TypeError: if a number is missing, or not asked for.
    """
    asked, kept = prediction(prediction_id), progress.said(prediction_id)
    said = _said.get(prediction_id) or (kept.said if kept else "")
    comparison = asked.compare("" if progress.static() else said, came)
    if comparison.right is None:
        _seen.add(prediction_id)
    elif not kept or kept.right is None:
        progress.say(prediction_id, said, comparison.right)
    text, page = comparison.text, compared(comparison.text, comparison.right)
    progress.show(progress.View(lambda: (page, text)))


class PredictionView(AskedView):
    """A question that shows itself: as a widget, or as HTML, or as plain text."""

    def __init__(self, asked: Prediction) -> None:
        """Show `asked`."""
        super().__init__(html(asked), plain(asked))
        self.asked = asked

    def build(self) -> ipywidgets.VBox:
        """Return a new ipywidgets box."""
        kept = progress.said(self.asked.id)
        before = f"You said {kept.said} on {kept.date}." if kept else ""
        return build(self.asked, lambda said: commit(self.asked.id, said), before)


def predict(prediction_id: str, said: Said | None = None) -> PredictionView | None:
    """Ask for a prediction, as the last expression of a cell; or commit to one by text.

    Raises:
        ValueError: if there is no such prediction, or `said` cannot be read.
    """
    if said is None:
        return PredictionView(prediction(prediction_id))
    print(commit(prediction_id, said))
    return None
