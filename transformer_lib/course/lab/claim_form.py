"""The form of notebook A: a claim, what would refute it, the run and the verdict, and whether they fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

VERDICTS = ("true", "imprecise", "false", "cannot be checked")
FIELDS = {
    "where": "author, title, section, version or date",
    "claim": "one sentence, in your words, that could be wrong",
    "unit": "what the number counts, and how it was rounded",
    "printed": "what the text says",
    "refuted_by": "what it might have said, and would have been wrong",
    "run": "a function of what is printed that returns True or False",
    "verdict": ", ".join(VERDICTS),
    "fair": "what the author might say to it",
}
"""The fields of the form, each with what belongs into it."""


def review(form: Mapping[str, Any]) -> None:
    """Print what is missing in a form, and whether its run could have failed and agrees with its verdict.

    Args:
        form: FIELDS. Where nothing can be checked, `unit`, `printed`, `refuted_by` and `run` may stay empty.

    Raises:
        ValueError: a field has another name, or the verdict is none.
    """
    unknown = [name for name in form if name not in FIELDS]
    if unknown:
        raise ValueError(f"form must have the fields {', '.join(FIELDS)}, got {', '.join(map(repr, unknown))}")
    verdict = form.get("verdict")
    if verdict not in (None, "", *VERDICTS):
        raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict!r}")
    unneeded = {"unit", "printed", "refuted_by", "run"} if verdict == "cannot be checked" else set()
    missing = [name for name in FIELDS if form.get(name) in (None, "") and name not in unneeded]
    for name in missing:
        print(f"○ {name}: {FIELDS[name]}")
    if not missing:
        print("\n".join(_judged(form)))


def _judged(form: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line on the run, and one on the verdict."""
    run: Callable[[Any], object] | None = form.get("run")
    if not callable(run):
        yield "✓ Nothing runs here, and `fair` should say why nothing can."
        return
    printed, refuted_by = form["printed"], form["refuted_by"]
    holds, other = bool(run(printed)), bool(run(refuted_by))
    said = {True: "accepts", False: "rejects"}
    line = f"the run {said[holds]} {printed} and {said[other]} {refuted_by}"
    if other:
        yield f"✗ {line}: it did not notice what you said would refute the claim."
    else:
        yield f"✓ {line}: it could have failed."
    if (form["verdict"], holds) in (("true", False), ("false", True)):
        yield f"✗ Your verdict is {form['verdict']}, but the run {said[holds]} what is printed."
    else:
        yield f"✓ Your verdict is {form['verdict']}, and the run {said[holds]} what is printed."
