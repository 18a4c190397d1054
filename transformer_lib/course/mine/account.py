"""Says after a translation whose code made it: the library's, partly the learner's, or all of it theirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from html import escape

from ..progress import show
from ..progress.view import View, boxed
from .folder import FILE, folder
from .parts import PARTS

MODEL = tuple(part for part in PARTS if part.of_model and int(part.notebook) <= 12)  # of it, not of what uses it
_MARK = ".celebrated"  # a file in the learner's folder: once is enough


def account(theirs: Collection[str], calls: Mapping[str, int]) -> str:
    """Say which of the learner's parts a translation ran; `calls` counts each part's."""
    first = next((part for part in MODEL if part.name not in theirs), None)
    yours = [part.name for part in PARTS if part.name in theirs and (part in MODEL or calls[part.name])]
    if not yours:
        return (
            "This is the library's model, with none of your parts in it yet. Pass the exercise of one, "
            f"{MODEL[0].name} in notebook {MODEL[0].notebook} for example, and run this again."
        )
    silent = [name for name in yours if not calls[name]]
    busiest = max(yours, key=lambda name: calls[name])
    ran, total = len(yours) - len(silent), sum(calls[name] for name in yours)
    whose = f"{ran} of your {len(yours)} parts" if len(yours) > 1 else f"Your first part, {yours[0]},"
    busiest_one = f" The busiest: {busiest}, {calls[busiest]:,}." if len(yours) > 1 else ""
    lines = [f"{whose} ran, in {total:,} calls.{busiest_one}"] if ran else []
    if silent:
        lines.append(f"Never called: {', '.join(silent)}. tl.mine.map() says why.")
    missing = sum(part.name not in theirs for part in MODEL)
    if first is not None:
        still = "part of the model is" if missing == 1 else "parts of the model are"
        lines.append(f"{missing} {still} still the library's; next is {first.name}, in notebook {first.notebook}.")
    return "\n".join(lines)


def celebrate(theirs: Collection[str]) -> None:
    """Say once, when every part of the model is the learner's, that it is."""
    mark = folder() / _MARK
    if any(part.name not in theirs for part in MODEL) or mark.exists():
        return
    try:
        mark.touch()
    except OSError:  # a folder that cannot be written stops nobody
        return
    show(View(_celebration))


def _celebration() -> tuple[str, str]:
    head = f"✓ All {len(MODEL)} parts of this model are yours, from {MODEL[0].name} to {MODEL[-1].name}."
    rest = f"You wrote a Transformer! Its code is in mine/{FILE}; what it knows of German is in its weights."
    return boxed(head, escape(rest)), f"{head}\n{rest}"


def forget_celebration() -> None:
    """Let the next complete model be celebrated, too."""
    (folder() / _MARK).unlink(missing_ok=True)
