"""The source of one function: found, made to stand alone, and searched for the names that it takes from outside."""

from __future__ import annotations

import ast
import inspect
import symtable
import textwrap
from types import FunctionType

from .values import described


class CannotWrite(ValueError):
    """Raised where something cannot be written into a file; the message says what, in plain words."""


def plain(name: str, function: object) -> FunctionType:
    """Return the function itself, out of its decorators.

    Raises:
        CannotWrite: it is no function that was written with def.
    """
    if isinstance(function, type):
        raise CannotWrite(f"{name} is a class; a part of the model is a function, written with def.")
    inner = inspect.unwrap(function) if callable(function) else function
    if not isinstance(inner, FunctionType):
        raise CannotWrite(f"{name} is {described(function)}; a part of the model is a function, written with def.")
    return inner


def source_of(name: str, function: FunctionType, *, decorators: bool) -> str:
    """Return the source of a function at the left margin, with its decorators or without.

    A function that is not behind a wrapper runs without its decorators, whatever they did when it was defined.

    Raises:
        CannotWrite: there is no source, or it is not that of a function written with def.
    """
    try:
        text = textwrap.dedent(inspect.getsource(function)).rstrip() + "\n"
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):
        raise CannotWrite(
            f"Python does not know the source of {name}: define it with def in a cell of its own, without %%."
        ) from None
    node = tree.body[0]
    if isinstance(node, ast.Assign) and _is_lambda(node, function.__name__):
        return text
    if not isinstance(node, ast.FunctionDef):
        raise CannotWrite(f"{name} is not written with def; give it a name and a def of its own.")
    names = [argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)]
    if node.name != function.__name__ or set(names) != set(function.__code__.co_varnames[: len(names)]):
        raise CannotWrite(f"The file of {name} has changed since it was imported: import it again.")
    if any(isinstance(inside, ast.Global) for inside in ast.walk(node)):
        raise CannotWrite(f"{name} changes a global variable; a part of the model returns what it computes.")
    return text if decorators else "".join(text.splitlines(keepends=True)[node.lineno - 1 :])


def _is_lambda(node: ast.Assign, name: str) -> bool:
    """Return True for `name = lambda …: …`, which is as good as a def."""
    target = node.targets[0]
    return name == "<lambda>" and len(node.targets) == 1 and isinstance(target, ast.Name) and _lambda(node.value)


def _lambda(value: ast.expr) -> bool:
    return isinstance(value, ast.Lambda)


def name_bound(source: str) -> str:
    """Return the name that a definition binds."""
    node = ast.parse(source).body[0]
    if isinstance(node, ast.FunctionDef):
        return node.name
    assert isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    return node.targets[0].id


def outer_names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a definition takes from outside to run, and those that only its annotations use."""
    tree = ast.parse(source)
    annotated = {name.id for part in _annotations(tree) for name in ast.walk(part) if isinstance(name, ast.Name)}
    bare = ast.unparse(_Unannotated().visit(tree))
    needed = _globals(symtable.symtable(bare, "<definition>", "exec"))
    return needed, annotated - needed


def _annotations(tree: ast.AST) -> list[ast.expr]:
    found = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    return [node for node in found if isinstance(node, ast.expr)]


class _Unannotated(ast.NodeTransformer):
    """Takes annotations out of a tree."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        value = node.value or ast.Constant(None)  # without a value, too, the name becomes a local one
        return ast.copy_location(ast.Assign([node.target], value), node)


def _globals(table: symtable.SymbolTable) -> set[str]:
    """Return the names that a scope and those inside it look up at the top."""
    top = table.get_type() == "module"
    own = {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced() and (top or symbol.is_global())
    }
    return own.union(*map(_globals, table.get_children()))


def renamed(source: str, names: dict[str, str]) -> str:
    """Return the source with names replaced wherever they stand for themselves, otherwise as it was written."""
    names = {old: new for old, new in names.items() if old != new}
    if not names:
        return source
    tree = ast.parse(source)
    places = [place for node in ast.walk(tree) if (place := _place(node, names))]
    wanted = ast.unparse(_Renamed(names).visit(tree))
    lines = source.splitlines(keepends=True)
    for line, column, old in sorted(places, reverse=True):
        row = lines[line - 1].encode()
        at = row.find(old.encode(), column)
        lines[line - 1] = (row[:at] + names[old].encode() + row[at + len(old.encode()) :]).decode()
    return text if _unparsed(text := "".join(lines)) == wanted else wanted + "\n"


def _unparsed(text: str) -> str | None:
    """Return the text without layout and comments, or None where it is not Python."""
    try:
        return ast.unparse(ast.parse(text))
    except SyntaxError:  # Python 3.11 does not know where a name in an f-string stands
        return None


def _place(node: ast.AST, names: dict[str, str]) -> tuple[int, int, str] | None:
    """Return where a node has one of the names: line, column from which it can be found, and the name."""
    if isinstance(node, ast.Name) and node.id in names:
        return node.lineno, node.col_offset, node.id
    if isinstance(node, ast.arg) and node.arg in names:
        return node.lineno, node.col_offset, node.arg
    if isinstance(node, ast.FunctionDef) and node.name in names:
        return node.lineno, node.col_offset + len("def "), node.name
    return None


class _Renamed(ast.NodeTransformer):
    """Replaces names in a tree."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.get(node.arg, node.arg)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)
