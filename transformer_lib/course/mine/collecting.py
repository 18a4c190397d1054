"""Collects what a function needs to stand in a file of its own: imports, constants, helper functions.

Names that a function takes from outside are followed: a module becomes an import, a number or a small array a constant,
a helper its own source. Whatever else it uses cannot be written, and is refused with the reason.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType

from .source import CannotWrite, name_bound, outer_names, plain, renamed, source_of
from .values import LARGEST, described, import_of, literal

_UNKNOWN = object()


@dataclass(eq=False)
class Piece:
    """A definition: the name it binds, its source, and the pieces that names in it stand for."""

    name: str
    source: str
    is_import: bool = False
    uses: dict[str, Piece] = field(default_factory=dict)

    def text(self, names: dict[Piece, str]) -> str:
        """Return its source where each piece has the name that is given for it."""
        own = names[self]
        if self.is_import:
            return self.source if own == self.name else _imported_as(self.source, self.name, own)
        return renamed(self.source, {self.name: own} | {name: names[piece] for name, piece in self.uses.items()})


def _imported_as(line: str, name: str, own: str) -> str:
    return f"{line.removesuffix(f' as {name}')} as {own}"


def collect(name: str, function: Callable[..., object]) -> list[Piece]:
    """Return the pieces of a function, each after those that must be there when it is defined; its own is the last.

    Raises:
        CannotWrite: the function, or something that it uses, cannot be written.
    """
    collector = _Collector(plain(name, function).__module__)
    last = collector.function(name, function)
    return [piece for piece in collector.pieces if piece is not last] + [last]


class _Collector:
    """Follows names; `pieces` are in the order in which they can be defined."""

    def __init__(self, home: str) -> None:
        self.home = home  # the learner's module
        self.pieces: list[Piece] = []
        self.known: dict[object, Piece] = {}

    def function(self, name: str, function: Callable[..., object]) -> Piece:
        """Add a function and all that it uses."""
        inner = plain(name, function)
        decorated = inner is not function
        key = (inner, decorated)
        if key in self.known:
            return self.known[key]
        source = source_of(name, inner, decorators=decorated)
        piece = self.known[key] = Piece(name_bound(source), source)
        needed, wished = outer_names(source)
        for other in sorted(needed):
            value = self._itself(other, inner, function) or _lookup(other, inner)
            if value is not _UNKNOWN:
                piece.uses[other] = self.value(name, other, value)
        for other in sorted(wished):  # annotations are not executed: only what can be imported comes along
            self._annotation(piece, other, _lookup(other, inner))
        self.pieces.append(piece)
        return piece

    def _itself(self, name: str, inner: FunctionType, function: object) -> object:
        """Return the function where it calls itself: by now its name may stand for another one in the notebook."""
        return function if name == inner.__name__ and name not in inner.__code__.co_freevars else None

    def _annotation(self, piece: Piece, name: str, value: object) -> None:
        line = None if value is _UNKNOWN else import_of(name, value)
        if line is not None:
            piece.uses[name] = self._add(Piece(name, line, is_import=True))

    def value(self, user: str, name: str, value: object) -> Piece:
        """Add what `name` stands for in the function `user`."""
        line = import_of(name, value)
        if line is not None and not self._is_own(value):
            return self._add(Piece(name, line, is_import=True))
        if callable(value) and isinstance(inspect.unwrap(value), FunctionType) and not isinstance(value, type):
            return self.function(name, value)
        text = literal(value)
        if text is None:
            raise CannotWrite(
                f"{user} uses {name}, which is {described(value)}. Functions, imports, numbers and arrays of up to "
                f"{LARGEST} numbers can be written; hand anything else over as an argument."
            )
        modules = [module for module in ("numpy", "torch") if f"{module}." in text]
        uses = {module: self._add(Piece(module, f"import {module}", is_import=True)) for module in modules}
        return self._add(Piece(name, f"{name} = {text}\n", uses=uses))

    def _is_own(self, value: object) -> bool:
        return isinstance(value, FunctionType) and value.__module__ == self.home

    def _add(self, piece: Piece) -> Piece:
        key = (piece.name, piece.source)
        if key not in self.known:
            self.known[key] = piece
            self.pieces.append(piece)
        return self.known[key]


def _lookup(name: str, function: FunctionType) -> object:
    """Return what a name stands for inside a function: from around it, from its module, or nothing that is known."""
    code = function.__code__
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not defined yet
            return _UNKNOWN
    if name not in function.__globals__ and hasattr(builtins, name):
        return _UNKNOWN  # Python's own, which every file has
    return function.__globals__.get(name, _UNKNOWN)
