"""Known mistakes as slips: a right answer in which one fragment is replaced."""

from __future__ import annotations

import difflib
import linecache
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .model import Mistake

Change = tuple[str, str, str, str]  # name, old fragment, new fragment, diagnosis


@dataclass(frozen=True)
class Slip:
    """A right answer with one fragment replaced; called, it is that function.

    Args:
        arguments: of the function, as after its name. right: its body, which returns the right result.
        old: a fragment that the body has exactly once. new: what a learner wrote in its place.
        names: what the body calls besides torch, np and math.
    """

    arguments: str
    right: str
    old: str
    new: str
    names: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __call__(self, *args: object) -> object:
        """Return what the function with the slip returns."""
        return self.function(*args)

    @cached_property
    def function(self) -> Callable[..., object]:
        """The function, compiled when it is first needed.

        Raises:
            ValueError: the body does not have the fragment exactly once.
        """
        return compiled(self.arguments, self.wrong, self.names)

    @property
    def wrong(self) -> str:
        """The body with the slip."""
        count = self.right.count(self.old)
        if count != 1:
            raise ValueError(f"the right answer must have the fragment {self.old!r} once, got {count} times")
        return self.right.replace(self.old, self.new)

    @property
    def diff(self) -> str:
        """The lines in which the slip differs from the right answer, with − and + in front."""
        lines = difflib.ndiff(self.right.splitlines(), self.wrong.splitlines())
        return "\n".join(line.rstrip() for line in lines if line.startswith(("- ", "+ ")))


def slips(arguments: str, right: str, *changes: Change, **names: Any) -> tuple[Mistake, ...]:
    """Return a known mistake for each change of one right answer.

    Args:
        arguments: of the answer, as after its name. right: its body, indented as you like.
        changes: each the mistake's name, the fragment of the body, what stands in its place, and the diagnosis.
        names: what the body calls besides torch, np and math.
    """
    body = textwrap.dedent(right).strip()
    return tuple(Mistake(name, Slip(arguments, body, old, new, names), told) for name, old, new, told in changes)


def compiled(arguments: str, body: str, names: Mapping[str, Any]) -> Callable[..., object]:
    """Return the function with this body; its source is there for whoever looks at an error's line."""
    source = f"def answer({arguments}):\n{textwrap.indent(body, '    ')}\n"
    file = f"<answer {abs(hash(source)):x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"torch": torch, "np": np, "math": math, **names}
    exec(compile(source, file, "exec"), scope)
    function: Callable[..., object] = scope["answer"]
    return function
