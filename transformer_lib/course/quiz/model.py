"""What a quiz question is made of: every answer, right or wrong, has an explanation."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import SupportsFloat

Answer = str | SupportsFloat  # a letter, or a number however it is written

SALT = 5  # spreads the right options of the course evenly over the letters


@dataclass(frozen=True)
class Feedback:
    """The reply to an answer."""

    right: bool
    why: str

    @property
    def text(self) -> str:
        """Verdict and explanation in one line."""
        return f"{'✓ Right.' if self.right else '✗ Not quite.'} {self.why}"


@dataclass(frozen=True)
class Option:
    """One answer to choose, and why it is right or wrong."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class Choice:
    """A question with options A, B, C, …, one of which is right.

    The options are shuffled, the same way every time, so that no letter gives the answer away.

    Args:
        id: such as "04.q1".
        prompt: the question.
        options: the answers to choose from.
        alone: whether it can be understood without its notebook, as on a paper; False where it continues an example.
    """

    id: str
    prompt: str
    options: tuple[Option, ...]
    alone: bool = True

    def __post_init__(self) -> None:
        """Put the options in their order."""
        object.__setattr__(self, "options", tuple(sorted(self.options, key=self._place)))

    def _place(self, option: Option) -> int:
        return zlib.crc32(f"{SALT}{self.id}{option.text}".encode())

    @property
    def letters(self) -> str:
        """The letters of the options."""
        return "ABCDEFGH"[: len(self.options)]

    def reply(self, answer: Answer) -> Feedback:
        """Judge a letter.

        Raises:
            ValueError: if there is no such option.
        """
        letter = str(answer).strip().upper()
        if len(letter) != 1 or letter not in self.letters:
            raise ValueError(f"answer must be one of {', '.join(self.letters)}, got {answer!r}")
        option = self.options[self.letters.index(letter)]
        return Feedback(option.right, option.why)


@dataclass(frozen=True)
class Number:
    """A question whose answer is a number.

    Args:
        id: such as "04.q2".
        prompt: the question.
        value: the right number.
        why: its explanation.
        near: likely wrong numbers, each with its explanation.
        otherwise: what to say to any other number.
        tolerance: how far off an answer may be.
        low: smallest number that can be entered.
        high: largest number that can be entered.
        alone: whether it can be understood without its notebook, as on a paper; False where it continues an example.
    """

    id: str
    prompt: str
    value: float
    why: str
    near: tuple[tuple[float, str], ...]
    otherwise: str
    tolerance: float
    low: float = 0.0
    high: float = 1.0
    alone: bool = True

    def reply(self, answer: Answer) -> Feedback:
        """Judge a number.

        Raises:
            ValueError: if it is not one.
        """
        try:
            given = float(answer)
        except (TypeError, ValueError):
            raise ValueError(f"answer must be a number, got {answer!r}") from None
        if abs(given - self.value) <= self.tolerance:
            return Feedback(True, self.why)
        for value, why in self.near:
            if abs(given - value) <= self.tolerance:
                return Feedback(False, why)
        return Feedback(False, self.otherwise)


Question = Choice | Number
