"""`diagnose`: hold a diagnosis and its evidence against what models with each fault show, over five seeds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import EllipsisType
from typing import Any

from ..._files import DATA
from ..progress import passed, show
from .faults import BY_NAME, HEALTHY, Fault
from .instruments import EXACT, INSTRUMENTS, read
from .patients import LETTERS, Patient, admit, case_of
from .testimony import RESULTS, SHOWS, SPEAKS

CATALOGUE = tuple(sorted(BY_NAME))
"""What may be diagnosed, in alphabetical order."""
MOST = 3  # instruments that a diagnosis of a fault may name; "healthy" needs more
PATIENCE = 2  # wrong diagnoses before a hint
STORED = DATA / "clinic.json"  # what `studies.clinic_catalogue` measured
NEAR = 0.05  # how far a number may be from a stored range, or from what is read, as a share

DRAWN = {"repeat", "future", "padding", "alone"}
"""Instruments that give another number each time where dropout is drawn in evaluation."""


@dataclass(frozen=True)
class Sign:
    """The finding that one fault causes and no other of the catalogue: an instrument's number between low and high.

    Args:
        instrument: its name in INSTRUMENTS. step: where in the order of the checks it is found.
    """

    instrument: str
    low: float
    high: float
    step: str

    def present(self, value: float) -> bool:
        """Return True when a number of the instrument is this finding."""
        return self.low <= value <= self.high


_DATA, _LOSS, _REPEAT = "step 1, the data", "step 2, the loss", "step 3, the same batch twice"
_PAIRS, _SCALES, _TRAINING = "step 4, two passes and the sums of weights", "step 5, the scales", "step 6, the training"
SIGNS = {
    "target not shifted": Sign("copies", 0.9, 1.0, _DATA),
    "causal mask upside down": Sign("weight on the future", 0.2, 1.0, _PAIRS),
    "softmax over the queries": Sign("row sums", 0.5, 99.0, _PAIRS),
    "padding counted in the loss": Sign("reported / real loss", 0.0, 0.95, _LOSS),
    "scores not scaled": Sign("score factor", 2.0, 99.0, _SCALES),
    "dropout in evaluation": Sign("repeat", 0.1, 99.0, _REPEAT),
    "positions lost": Sign("order", 0.0, 0.01, _PAIRS),
    "embeddings not scaled": Sign("embedding factor", 0.0, 0.5, _SCALES),
    "memory not masked": Sign("weight on padding", 0.01, 1.0, _PAIRS),
    "encoder not trained": Sign("tensors standing still", 13, 13, _TRAINING),
    "feed-forward left out": Sign("tensors standing still", 8, 8, _TRAINING),
    "gradients not cleared": Sign("gradient mismatch", 0.1, 99.0, _TRAINING),
    "rate ten times too high": Sign("first movement / rate", 5.0, 99.0, _TRAINING),
    "rate a hundred times too low": Sign("first movement / rate", 0.0, 0.1, _TRAINING),
}
"""By name of the fault. The stored study checks each on every seed and against all other faults."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of a diagnosis; True when it is right and its evidence leaves nothing else.

    Args:
        status: "none yet", "unknown", "no evidence", "misread", "wrong", "open" or "right".
    """

    letter: str
    status: str
    text: str

    def __bool__(self) -> bool:
        """Return True when the diagnosis is right."""
        return self.status == "right"

    def _ipython_display_(self) -> None:
        """Show nothing as the last expression of a cell: the text has been printed already."""


_wrong: Counter[str] = Counter()


def diagnose(
    letter: str,
    name: str | None | EllipsisType = None,
    because: Mapping[str, float] | None = None,
    *,
    seed: int = 0,
) -> Verdict:
    """Say whether the evidence carries a diagnosis, print the answer, and remember a right one.

    Args:
        letter: "A" to "L", "control" or "example". name: one of CATALOGUE; None or ...: no diagnosis yet.
        because: one to three instruments and the number that each showed, such as {"order": 0.66}; for "healthy" as
            many as it takes to rule out every fault of the catalogue.
        seed: of the patient.

    Raises:
        ValueError: there is no such patient.
    """
    case = case_of(letter)
    verdict = judge(admit(letter, seed=seed), case, name, because)
    text = verdict.text
    if verdict.status == "wrong":
        _wrong[letter] += 1
        if _wrong[letter] >= PATIENCE and case is not HEALTHY:
            text += f"\n  A hint: look again at {SIGNS[case.name].step}."
    print(text)
    closing = passed("case", f"17.{letter}") if verdict and letter in LETTERS else None
    if closing:
        show(closing)
    return verdict


def judge(
    patient: Patient, case: Fault, name: str | None | EllipsisType, because: Mapping[str, float] | None = None
) -> Verdict:
    """Judge without printing, counting or recording."""
    letter = patient.name
    if name is None or name is ...:
        return Verdict(letter, "none yet", f"○ {letter}: no diagnosis yet")
    if name not in BY_NAME:
        return Verdict(letter, "unknown", f"○ {letter}: {_unknown('catalogue', name, CATALOGUE)}")
    complaint = _complaint(name, because)
    if complaint or because is None:
        return Verdict(letter, "no evidence", f"○ {letter}: {complaint}")
    values = {instrument: read(instrument, patient) for instrument in because}
    for instrument, value in values.items():
        if not _agree(instrument, because[instrument], value):
            told = f"{instrument} shows {value:.2f} here, and you have written {because[instrument]!r}"
            return Verdict(letter, "misread", f"○ {letter}: {told}. Read it once more, with `compare`.")
    read_as = {key: float(because[key]) if key in DRAWN else value for key, value in values.items()}
    status, text = _weigh(case, name, read_as)
    return Verdict(letter, status, f"{_MARKS[status]} {letter}: {text}")


_MARKS = {"right": "✓", "wrong": "✗", "open": "○"}


def _unknown(where: str, name: object, known: tuple[str, ...]) -> str:
    """Say that there is no such name, which one is near, and which there are."""
    near = get_close_matches(str(name).lower(), known, n=1, cutoff=0.6)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    return f"the {where} has no {name!r}.{meant}\n  It has: {', '.join(known)}."


def _complaint(name: str, because: Any) -> str:
    """Say what is wrong with the form of the evidence; nothing if it can be weighed."""
    if not isinstance(because, Mapping) or not because:
        return 'no evidence yet. Name an instrument and the number that it showed, as because={"order": 0.66}.'
    if len(because) > MOST and name != HEALTHY.name:
        return f"{len(because)} instruments are too many: name the one to {MOST} whose numbers decide."
    for instrument, number in because.items():
        if instrument not in INSTRUMENTS:
            return _unknown("list of instruments", instrument, tuple(INSTRUMENTS))
        if isinstance(number, bool) or not isinstance(number, int | float):
            return f"the evidence of {instrument!r} must be the number that it showed, got {number!r}."
    return ""


def _agree(instrument: str, told: float, value: float) -> bool:
    """Return whether a number is what was read: nearly the same, or both where dropout is drawn, out of range."""
    if instrument in DRAWN and value > EXACT:
        return told > EXACT  # dropout in evaluation gives another number each time
    return abs(told - value) <= max(0.02, NEAR * abs(value))


@cache
def _found() -> dict[str, dict[str, list[float]]]:
    return json.loads(STORED.read_text(encoding="utf-8"))["found"]


def range_of(name: str, instrument: str) -> tuple[float, float]:
    """Return the least and the largest number of an instrument in models with the fault `name`, over the stored seeds.

    Raises:
        FileNotFoundError: the stored study is missing.
    """
    values = _found()[name][instrument]
    return min(values), max(values)


def fits(name: str, values: Mapping[str, float]) -> bool:
    """Return whether all these readings could come from a model with the fault `name`."""
    for instrument, value in values.items():
        low, high = range_of(name, instrument)
        room = max(0.005, NEAR * max(abs(low), abs(high)))
        if instrument in DRAWN and low > EXACT:
            low, high, room = 0.1, 99.0, 0.0  # how large the change is depends on the letters
        if not low - room <= value <= high + room:
            return False
    return True


def _weigh(case: Fault, name: str, values: Mapping[str, float]) -> tuple[str, str]:
    """Return the status and the answer for a known name and evidence that was read rightly."""
    if name != case.name and not fits(name, values):
        return "wrong", f"not {name}.\n  {_would_show(name, values)}"
    if name == HEALTHY.name:
        return _weigh_healthy(values)
    telling = {key: value for key, value in values.items() if key in SPEAKS[name]}
    if not telling:
        return "open", f"{name} would show this, too, but that proves nothing.\n  {_silent(values)}"
    others = [other for other in CATALOGUE if other != name and not _ruled_out(other, name, values)]
    if others:
        return "open", f"{name} would show this, and so would {_some(others)}.\n  {_ASK}"
    return "right", f"{name}.\n  " + "\n  ".join(_evidence(name, key, value) for key, value in telling.items())


def _ruled_out(other: str, name: str, values: Mapping[str, float]) -> bool:
    """Return whether an instrument that speaks for one of the two shows what the other one cannot."""
    speak = SPEAKS[name].keys() | (SPEAKS[other].keys() if other != HEALTHY.name else set())
    return any(key in speak and not fits(other, {key: value}) for key, value in values.items())


def _weigh_healthy(values: Mapping[str, float]) -> tuple[str, str]:
    """Return the status and the answer for "healthy", which is right when nothing of the catalogue is left."""
    left = [
        fault
        for fault in SPEAKS
        if not any(key in SPEAKS[fault] and not fits(fault, {key: values[key]}) for key in values)
    ]
    if left:
        told = f"{len(SPEAKS) - len(left)} of the {len(SPEAKS)} faults are ruled out. Nothing here speaks against"
        return "open", f"healthy would show this. {told} {_some(left)}."
    return (
        "right",
        f"healthy.\n  Each of the {len(SPEAKS)} faults of the catalogue would have shown in one of these numbers.",
    )


def _silent(values: Mapping[str, float]) -> str:
    """Say why these instruments cannot speak for the fault: what they show, and what else would look the same."""
    name, value = next(iter(values.items()))
    if fits(HEALTHY.name, {name: value}):
        sound = _range(HEALTHY.name, name)
        return f"{name} {value:.2f} would look the same if nothing were broken: sound models show {sound}."
    what, otherwise = SHOWS[name]
    ask = " Which instrument shows what is broken?" if RESULTS.issuperset(values) else ""
    return f"{name} shows {what}. This number would look the same if {otherwise}.{ask}"


_ASK = "Which instrument tells them apart?"


def _would_show(name: str, values: Mapping[str, float]) -> str:
    """Say what the instruments would show with this fault, the one that speaks against it first."""
    against = next(key for key, value in values.items() if not fits(name, {key: value}))
    who = "In sound models" if name == HEALTHY.name else "With that fault,"
    return f"{who} {against} shows {_range(name, against)}, five seeds; here it shows {values[against]:.2f}."


def _evidence(name: str, instrument: str, value: float) -> str:
    rest = [other for other in CATALOGUE if other != name]
    low, high = (f(range_of(other, instrument)[i] for other in rest) for i, f in ((0, min), (1, max)))
    drawn = name == "dropout in evaluation" and instrument in DRAWN
    read_once = (", another number each time", ", each read once") if drawn else ("", "")
    others = f"in all other models {low:.2f} to {high:.2f}"
    if low <= value <= high:
        others = _nearest(rest, instrument, value)
    return (
        f"{instrument} {value:.2f}{read_once[0]}: with this fault {_range(name, instrument)} on five seeds"
        f"{read_once[1]}, {others}.\n  Why it can speak: {SPEAKS[name][instrument]}."
    )


def _nearest(names: list[str], instrument: str, value: float) -> str:
    """Say which of these faults shows a number nearest to the value."""

    def distance(name: str) -> float:
        low, high = range_of(name, instrument)
        return max(low - value, value - high, 0.0)

    nearest = min(names, key=distance)
    return f"nearest among the others: {nearest}, {_range(nearest, instrument)}"


def _range(name: str, instrument: str) -> str:
    low, high = range_of(name, instrument)
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _some(names: list[str], most: int = 3) -> str:
    if len(names) <= most:
        return _and(names)
    return f"{len(names)} others of the catalogue, such as {names[0]}"
