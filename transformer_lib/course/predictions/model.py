"""What a prediction is made of: what is asked, what may be said, and how that compares with what came out."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import SupportsFloat

Said = str | SupportsFloat  # a letter, or a number however it is written

SURPRISES = (
    "A surprise, and those are the ones we remember.",
    "Good: now there is something to explain.",
    "Hold on to why you expected that. What was different here?",
    "You are in good company, and this is why we run things.",
)


@dataclass(frozen=True)
class Comparison:
    """How what was said compares with what came out: `right` is None where nothing was said."""

    right: bool | None
    text: str


@dataclass(frozen=True)
class Number:
    """A number to predict. What comes out is computed by the notebook, and is nowhere written down here.

    Args:
        id: such as "00.p1".
        prompt: the question.
        low: smallest number that can be said.
        high: largest number that can be said.
        close: by how much one may be off and still be right.
        decimals: with how many the numbers are written.
    """

    id: str
    prompt: str
    low: float
    high: float
    close: float = 0.0
    decimals: int = 0

    @property
    def hint(self) -> str:
        """What can be said, in a few words."""
        return f"a number from {self.low:g} to {self.high:g}"

    def read(self, said: Said) -> str:
        """Return what was said in the form that is kept.

        Raises:
            ValueError: if it is no number from `low` to `high`.
        """
        try:
            number = float(said.strip().replace(",", ".") if isinstance(said, str) else said)
        except (TypeError, ValueError):
            number = math.nan
        if not self.low <= number <= self.high:
            raise ValueError(f"said must be {self.hint}, got {said!r}")
        return f"{number:g}"

    def compare(self, said: str, came: SupportsFloat | None) -> Comparison:
        """Compare what `read` returned, or "" for nothing, with the number that came out.

        Raises:
            TypeError: if no number came.
        """
        if came is None:
            raise TypeError(f"came must be the number that came out, for {self.id}, got None")
        value = float(came)
        it_is = f"{value:.{self.decimals}f}"
        if not said:
            return Comparison(None, f"It is {it_is}.")
        off = abs(float(said) - value)
        if f"{float(said):.{self.decimals}f}" == it_is:
            return Comparison(True, f"You said {said}, and {it_is} it is.")
        if off <= self.close:
            return Comparison(True, f"You said {said}, it is {it_is}: close enough.")
        return Comparison(False, f"You said {said}, it is {it_is}. {surprise(self.id)}")


@dataclass(frozen=True)
class Choice:
    """One of several outcomes to predict.

    Args:
        id: such as "00.p2".
        prompt: the question.
        options: the outcomes, from A on, in the order in which they are shown.
        right: the letter of the one that comes out. The notebook's guard holds it to what its cell computes.
    """

    id: str
    prompt: str
    options: tuple[str, ...]
    right: str

    @property
    def letters(self) -> str:
        """The letters of the options."""
        return "ABCDEFGH"[: len(self.options)]

    @property
    def hint(self) -> str:
        """What can be said, in a few words."""
        return f"one of {', '.join(self.letters)}"

    def read(self, said: Said) -> str:
        """Return the letter that was said.

        Raises:
            ValueError: if there is no such option.
        """
        letter = str(said).strip().upper()
        if len(letter) != 1 or letter not in self.letters:
            raise ValueError(f"said must be {self.hint}, got {said!r}")
        return letter

    def compare(self, said: str, came: SupportsFloat | None = None) -> Comparison:
        """Compare a letter, or "" for nothing, with the option that comes out.

        Raises:
            TypeError: if a number is given, which is for predictions of a number.
        """
        if came is not None:
            raise TypeError(f"came must be left out, since {self.id} asks for an option, got {came!r}")
        it_is = f"{self.right}: {self.options[self.letters.index(self.right)]}"
        if not said:
            return Comparison(None, f"It is {it_is}")
        if said == self.right:
            return Comparison(True, f"You said {said}, and so it is. {it_is}")
        return Comparison(False, f"You said {said}, it is {it_is} {surprise(self.id)}")


Prediction = Number | Choice


def surprise(name: str) -> str:
    """Return what to say of a prediction that was off; the same each time, but not for all."""
    return SURPRISES[zlib.crc32(name.encode()) % len(SURPRISES)]
