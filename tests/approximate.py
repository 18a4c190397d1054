"""Texts whose numbers may differ by a tolerance, while everything else must be equal.

In the text outputs of a cell tagged `approx:0.02` (streams, plain text, HTML, Markdown), each number may differ by at
most 0.02 from the stored one in the same place; with `approx:5%`, by at most 5 % of the stored number's magnitude, so
that a stored 0 must stay 0. Differences are decimal: 1.00 is within 0.02 of 0.98. The tolerance is in the units that
are printed: two percentage points are `approx:2`, and of 1.2×10⁻³ it is 1.2 that may differ.

What is a number
    Digits, with a decimal point or without (12, 0.98, .98, 1. in [1., 2.]), with an exponent of up to three digits
    (1e-05, 1.2e+03), with commas between thousands (1,234), and with a sign (-, +, or the typographic −) right before
    them, unless the sign follows a letter, a digit, a closing bracket or %: 3-5 is 3 and 5. Integers are numbers, too:
    a count beside a measurement is compared within the same tolerance, and an exact one belongs in another cell.
    What is glued to a number is text: brackets, =, ±, %, and units made of letters (12ms, 1.5x).

What is text, although it has digits
    A word that begins with a letter or underscore, with all that a hyphen or a dot joins to it: d2l, bank_04, W_2,
    GPT-2, layers.0.weight. A word that begins with digits and has more of them, or an underscore, after a letter:
    64x64, 4be1c2, 1_000. Hexadecimal numbers (0x7f3a), versions (2.13.0), colour codes of a terminal, character
    references (&#39;), the digits ² and ₂. inf and nan are words.

What a reader of HTML neither sees nor hears is text: tags, comments, scripts, styles. The values of alt, title and
aria-label are read like the page.

Where a number is printed longer or shorter than the stored one, a table is padded in another way. Then, and only then,
spaces beside numbers and at the ends of lines do not count, and other runs of spaces count as one.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, zip_longest
from typing import Any

HTML = "text/html"
TEXTS = ("text/plain", "text/markdown", HTML)  # the data whose numbers are compared; streams are compared, too
EXCERPT = 50  # characters that a report shows on each side of a number

TAG = re.compile(r"approx:((?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?)(%?)")

TOKEN = re.compile(
    r"""
    \x1b\[[0-9;]*[A-Za-z]                   # a colour code
  | &\#[0-9xX]\w*;                          # a character reference
  | 0[xX][0-9a-fA-F]+\w*                    # hexadecimal
  | [^\W0-9]\w*(?:[.-]\w+)*                 # a word, with what is joined to it
  | (?P<number>
      (?:(?<![\w)\]}%])[-+−])?              # the sign
      (?: [1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?
        | [0-9]++(?: \.[0-9]++
                   | \.(?= [eE][-+−]?[0-9] | \s*[],)] | \s+[-+−.]?[0-9] ))?  # 1. within a list
        | \.[0-9]+ )
      (?:[eE][-+−]?[0-9]{1,3})?
      (?!\w*[0-9_]|\.[0-9])                 # neither 64x64 nor 2.13.0
    )
  | [0-9]\w*(?:[.-]\w+)*                    # 64x64, 2.13.0
    """,
    re.VERBOSE,
)

MARKUP = re.compile(
    r"""
    <!--.*?--> | <(script|style)\b.*?</\1\s*> | <[A-Za-z/!](?:[^<>"']|"[^"]*"|'[^']*')*>
    """,
    re.VERBOSE | re.DOTALL,
)
ATTRIBUTE = re.compile(r"""(?P<name>[\w:-]+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')""")
READ_ALOUD = {"alt", "title", "aria-label"}


@dataclass(frozen=True)
class Tolerance:
    """How much a number may differ: by `amount`, or by `amount` percent of the stored number's magnitude."""

    amount: Decimal
    relative: bool

    @classmethod
    def read(cls, tag: str) -> Tolerance:
        """Return what a tag says.

        Raises:
            ValueError: if the tag is not `approx:<number>` or `approx:<number>%`, with a positive number.
        """
        match = TAG.fullmatch(tag)
        if match is None or Decimal(match[1]) == 0:
            form = "approx:<number> or approx:<number>%, with a positive number"
            raise ValueError(f"the tag must be {form}, got {tag!r}")
        return cls(Decimal(match[1]), relative=match[2] == "%")

    def allowed(self, stored: Decimal) -> Decimal:
        return self.amount * abs(stored) / 100 if self.relative else self.amount

    def __str__(self) -> str:
        return f"{self.amount}%" if self.relative else f"{self.amount}"


def tolerance_of(tags: list[str]) -> Tolerance | None:
    """Return the tolerance that a cell's tags ask for, or None.

    Raises:
        ValueError: if a tag has not the form of one, or there are two.
    """
    found = [tag for tag in tags if tag.startswith("approx")]
    if len(found) > 1:
        raise ValueError(f"a cell must have one tag approx, got {', '.join(found)}")
    return Tolerance.read(found[0]) if found else None


@dataclass(frozen=True)
class Number:
    """A number as printed, and where it begins."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def value(self) -> Decimal:
        return Decimal(self.text.replace(",", "").replace("−", "-"))


def numbers(text: str, kind: str = "text/plain") -> list[Number]:
    """Return the numbers of a text, in order."""
    spans = _read_spans(text) if kind == HTML else iter([(0, len(text))])
    found = chain.from_iterable(TOKEN.finditer(text, *span) for span in spans)
    return [Number(match["number"], match.start()) for match in found if match["number"]]


def _read_spans(page: str) -> Iterator[tuple[int, int]]:
    """Yield where the text stands that a reader of the page sees or hears."""
    end = 0
    for markup in MARKUP.finditer(page):
        yield end, markup.start()
        end = markup.end()
        for attribute in ATTRIBUTE.finditer(page, *markup.span()):
            if attribute["name"] in READ_ALOUD:
                yield attribute.span("single" if attribute["double"] is None else "double")
    yield end, len(page)


def settle(stored: str, found: str, tolerance: Tolerance, kind: str = "text/plain") -> tuple[str, list[str]]:
    """Return the found text with all that is tolerated as stored, and a sentence for each number that is not.

    So the result equals the stored text if and only if the found one is within the tolerance, and otherwise the
    difference between the two is what remains to be shown.
    """
    before, after = numbers(stored, kind), numbers(found, kind)
    if len(before) != len(after):
        report = f"numbers stored: {len(before)}, found: {len(after)}"
        return _settle_lines(stored, found, tolerance, kind), [report]
    pairs = list(zip(before, after, strict=True))
    padded = any(len(old.text) != len(new.text) for old, new in pairs)
    gaps = zip(_gaps(stored, before), _gaps(found, after), strict=True)
    kept_gaps = [old if padded and _unpadded(old) == _unpadded(new) else new for old, new in gaps]
    kept = [new.text if _departs(old, new, tolerance) else old.text for old, new in pairs]
    settled = "".join(chain.from_iterable(zip_longest(kept_gaps, kept, fillvalue="")))
    reports = [
        f"number {index} of {len(pairs)}, in the line {_line(stored, old)!r}:\n    {_how_far(old, new, tolerance)}"
        for index, (old, new) in enumerate(pairs, start=1)
        if _departs(old, new, tolerance)
    ]
    return settled, reports


def _settle_lines(stored: str, found: str, tolerance: Tolerance, kind: str) -> str:
    """Settle each line by itself where there are as many, so that a difference shows only lines that matter."""
    old_lines, new_lines = stored.split("\n"), found.split("\n")
    if kind == HTML or len(old_lines) != len(new_lines) or len(old_lines) == 1:
        return found
    return "\n".join(settle(old, new, tolerance)[0] for old, new in zip(old_lines, new_lines, strict=True))


def _distance(old: Number, new: Number) -> Decimal:
    return abs(new.value - old.value)


def _departs(old: Number, new: Number, tolerance: Tolerance) -> bool:
    return _distance(old, new) > tolerance.allowed(old.value)


def _gaps(text: str, found: list[Number]) -> list[str]:
    """Return what stands before, between and after the numbers."""
    starts = [0, *(number.end for number in found)]
    ends = [*(number.start for number in found), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _unpadded(gap: str) -> str:
    """Return the gap without spaces at its ends and at those of its lines, and other runs of spaces as one."""
    return "\n".join(" ".join(line.split()) for line in gap.split("\n"))


def _how_far(old: Number, new: Number, tolerance: Tolerance) -> str:
    allowed = f"{tolerance.allowed(old.value)}" + f" ({tolerance} of {old.text})" * tolerance.relative
    return f"stored {old.text}, found {new.text}, difference {_distance(old, new)}, allowed {allowed}"


def _line(text: str, number: Number) -> str:
    """Return the line that the number stands in, or of a long one what is around the number."""
    first, last = text.rfind("\n", 0, number.start) + 1, text.find("\n", number.end)
    last = len(text) if last < 0 else last
    start, end = max(first, number.start - EXCERPT), min(last, number.end + EXCERPT)
    return "…" * (start > first) + text[start:end].strip() + "…" * (end < last)


Outputs = Sequence[Mapping[str, Any]]  # of a cell, as nbformat reads them


def texts(outputs: Outputs) -> Iterator[tuple[str, Any, str]]:
    """Yield each text whose numbers are compared: the stream's name or the kind of data, and where it is held."""
    for output in outputs:
        if output["output_type"] == "stream":
            yield output["name"], output, "text"
        for kind in TEXTS:
            if kind in output.get("data", {}):
                yield kind, output["data"], kind


def settle_outputs(stored: Outputs, found: Outputs, tolerance: Tolerance) -> tuple[list, list[str]]:
    """Return a copy of the found outputs with all that is tolerated as stored, and a sentence for each that is not.

    The first text of a kind is compared with the first stored one of that kind, and so on. Whether there are as many,
    and whether everything else is equal, is for the caller to see.
    """
    settled, reports = copy.deepcopy(list(found)), []
    waiting = defaultdict(list)
    for name, holder, field in texts(stored):
        waiting[name].append(holder[field])
    for name, holder, field in texts(settled):
        if waiting[name]:
            holder[field], departures = settle(waiting[name].pop(0), holder[field], tolerance, name)
            reports += [f"{name}, {departure}" for departure in departures]
    return settled, reports
