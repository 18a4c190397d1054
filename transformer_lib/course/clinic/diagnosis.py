"""`diagnose`: check a diagnosis, and show the evidence for it, or what one would see if it were right."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from types import EllipsisType

from ..progress import passed, show
from .faults import BY_NAME, HEALTHY, Fault
from .instruments import INSTRUMENTS, read
from .patients import LETTERS, Patient, admit, case_of

CATALOGUE = tuple(sorted(BY_NAME))
"""What may be diagnosed, in alphabetical order."""


@dataclass(frozen=True)
class Sign:
    """The finding that one fault causes and no other: an instrument's number between low and high.

    Args:
        instrument: its name in INSTRUMENTS. words: what one would see, to follow "If it were so, ".
        hint: where to look, for a learner who has not found it yet.
    """

    instrument: str
    low: float
    high: float
    words: str
    hint: str

    def present(self, value: float) -> bool:
        """Return True when a number of the instrument is this finding."""
        return self.low <= value <= self.high


SIGNS = {
    "target not shifted": Sign(
        "copies",
        0.9,
        1.0,
        "the likeliest token would be the one just read, nearly always",
        "Look at one row of its batch: what is read, and what is to be said at the same place?",
    ),
    "causal mask upside down": Sign(
        "weight on the future",
        0.2,
        1.0,
        "the decoder's queries would give much of their weight to later tokens",
        "Exchange one target token: which rows of the logits move?",
    ),
    "softmax over the queries": Sign(
        "row sums",
        0.5,
        99.0,
        "the sums of a query's weights would be far from one, and “row sums”, that distance, far from 0",
        "Add up the weights along both axes.",
    ),
    "padding counted in the loss": Sign(
        "reported / real loss",
        0.0,
        0.95,
        "the reported loss would be lower than the loss per real token",
        "Compute the loss per real token yourself, beside the reported one.",
    ),
    "scores not scaled": Sign(
        "score factor",
        2.0,
        99.0,
        "ln(weight) would grow several times as fast as q · k / √d_k",
        "Compare the weights with queries and keys: how fast does ln(weight) grow with q · k?",
    ),
    "dropout in evaluation": Sign(
        "repeat",
        0.1,
        99.0,
        "the same batch would give other logits the second time",
        "Before comparing two inputs, compare one input with itself.",
    ),
    "positions lost": Sign(
        "order",
        0.0,
        0.01,
        "the encoder would not notice that the source is turned round",
        "Turn the source round and look at the memory.",
    ),
    "embeddings not scaled": Sign(
        "embedding factor",
        0.0,
        0.5,
        "rows of the table would enter the encoder with a factor below √d_model",
        "Look at the vectors that enter the encoder: how much of them is the table's row?",
    ),
    "memory not masked": Sign(
        "weight on padding",
        0.01,
        1.0,
        "padding would get weight in the cross-attention",
        "Put more padding behind the source: do real rows move?",
    ),
}
"""By name of the fault. The stored study checks each on every seed and against all other faults."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of a diagnosis: `status` is "right", "wrong", "unknown" or "none yet". True when right."""

    letter: str
    status: str
    text: str

    def __bool__(self) -> bool:
        """Return True when the diagnosis is right."""
        return self.status == "right"

    def _ipython_display_(self) -> None:
        """Show nothing as the last expression of a cell: the text has been printed already."""


def diagnose(letter: str, name: str | None | EllipsisType = None, *, seed: int = 0) -> Verdict:
    """Say whether patient `letter` has the fault `name`, print the evidence, and remember a right diagnosis.

    Args:
        letter: "A" to "H". name: one of CATALOGUE; None or ...: no diagnosis yet. seed: of the patient.

    Raises:
        ValueError: there is no such patient.
    """
    verdict = judge(admit(letter, seed=seed), case_of(letter), name)
    print(verdict.text)
    closing = passed("case", f"17.{letter}") if verdict and letter in LETTERS else None
    if closing:
        show(closing)
    return verdict


def judge(patient: Patient, case: Fault, name: str | None | EllipsisType) -> Verdict:
    """Judge without printing or recording."""
    letter = patient.name
    if name is None or name is ...:
        return Verdict(letter, "none yet", f"○ {letter}: no diagnosis yet")
    if name not in BY_NAME:
        return Verdict(letter, "unknown", f"○ {letter}: {_not_in_the_catalogue(name)}")
    if name == case.name:
        return Verdict(letter, "right", f"✓ {letter}: {name}.\n  {evidence(patient, name)}")
    reply = _would_see(patient, name) if name != HEALTHY.name else "Something is wrong with it, shown by one number."
    return Verdict(letter, "wrong", f"✗ {letter}: not {name}.\n  {reply}\n  {_hint(case)}")


def _not_in_the_catalogue(name: object) -> str:
    """Say which names there are, the most similar one first."""
    near = get_close_matches(str(name).lower(), CATALOGUE, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    return f"the catalogue has no {name!r}.{meant}\n  A diagnosis is one of: {', '.join(CATALOGUE)}."


def evidence(patient: Patient, name: str) -> str:
    """Return the finding that belongs to the fault `name`, as measured on the patient."""
    if name == HEALTHY.name:
        return "None of the nine signs is there."
    sign = SIGNS[name]
    instrument, value = INSTRUMENTS[sign.instrument], read(sign.instrument, patient)
    return f"Evidence: {sign.instrument} {value:.2f}; healthy: {instrument.low:.4g} to {instrument.high:.4g}."


def _would_see(patient: Patient, name: str) -> str:
    sign = SIGNS[name]
    instrument, value = INSTRUMENTS[sign.instrument], read(sign.instrument, patient)
    return (
        f"If it were so, {sign.words}. Measured: {sign.instrument} {value:.2f}; "
        f"healthy: {instrument.low:.4g} to {instrument.high:.4g}."
    )


def _hint(case: Fault) -> str:
    return f"Next: {SIGNS[case.name].hint}" if case is not HEALTHY else "Next: measure again; nothing is abnormal."
