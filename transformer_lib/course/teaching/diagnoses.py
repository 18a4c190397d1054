"""What a graded test says of an answer, in one sentence: read from the outputs of its cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NOT_ATTEMPTED = "not attempted"
SHOWN_ONLY = "right in the cases that are shown, not in others: "


def verdict_of(outputs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of a verdict that costs points, or of another error; none for a right answer."""
    errors = [output for output in outputs if output["output_type"] == "error"]
    if not errors:
        return []
    told = str(errors[-1]["evalue"])
    for text in ("\n".join(errors[-1]["traceback"]), told):
        if text.startswith(("○", "✗")):
            return text.splitlines()
    return [f"stopped with {errors[-1]['ename']}: {told.partition(chr(10))[0]}"]


def diagnosis_in(outputs: Sequence[dict[str, Any]]) -> str:
    """Return what a graded test says of an answer; "" for a right one."""
    first, *more = verdict_of(outputs) or [""]
    if first.startswith("○"):
        return NOT_ATTEMPTED
    if first.startswith("✗"):
        told = more[0].strip() if more else first
        return (SHOWN_ONLY if "in a case that was not shown" in first else "") + told
    return first
