"""Short questions with an explanation for every answer.

`quiz("04.q1")` as the last expression of a cell shows buttons; `answer("04.q1", "B")` does the same by
text. A right answer is remembered as progress, on this machine only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .. import progress
from .bank import QUESTIONS
from .model import Answer, Choice, Feedback, Number, Option, Question
from .view import AskedView, build, html, plain

if TYPE_CHECKING:
    import ipywidgets

__all__ = ["Choice", "Feedback", "Number", "Option", "QuizView", "answer", "question", "quiz"]


def question(question_id: str) -> Question:
    """Return the question with this id, such as "04.q1".

    Raises:
        ValueError: if there is none.
    """
    for entry in QUESTIONS:
        if entry.id == question_id:
            return entry
    ids = ", ".join(entry.id for entry in QUESTIONS)
    raise ValueError(f"question_id must be one of {ids}, got {question_id!r}")


def submit(question_id: str, given: Answer) -> Feedback:
    """Judge an answer, and remember it when it is right.

    Raises:
        ValueError: if there is no such question or option, or `given` is no number where one is asked for.
    """
    feedback = question(question_id).reply(given)
    closing = progress.passed("quiz", question_id) if feedback.right else None
    return replace(feedback, why=f"{feedback.why} {closing!r}") if closing else feedback


def answer(question_id: str, given: Answer) -> None:
    """Answer by text: print the verdict and its explanation.

    Raises:
        ValueError: as for `submit`.
    """
    print(submit(question_id, given).text)


class QuizView(AskedView):
    """A question that shows itself: as a widget, or folded HTML, or plain text."""

    def __init__(self, entry: Question) -> None:
        """Show `entry`."""
        super().__init__(html(entry), plain(entry))
        self.question = entry

    def build(self) -> ipywidgets.VBox:
        """Return a new ipywidgets box."""
        before = self.question.id in progress.state()["quiz"]
        return build(self.question, lambda given: submit(self.question.id, given), before)


def quiz(question_id: str) -> QuizView:
    """Show a question; use it as the last expression of a cell.

    Raises:
        ValueError: if there is no such question.
    """
    return QuizView(question(question_id))
