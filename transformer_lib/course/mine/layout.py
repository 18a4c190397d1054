"""The text of `my_transformer.py`: imports on top, then a section for each part, in the order of the notebooks.

A section is replaced or taken out as a whole; whatever the learner has edited elsewhere stays as it is.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from .collecting import Piece
from .parts import NAMES, PARTS, Part, part_of
from .source import CannotWrite

HEAD = '''"""My own Transformer: the parts that I wrote in the course, each as its check accepted it.

Open and edit this file as you like. A part that passes its check again replaces its section; the version before is kept
in the folder "earlier".
"""

from __future__ import annotations
'''
_RULE = "# === "


@dataclass(frozen=True)
class Layout:
    """The file in its pieces: the text on top, and the text of each section by the name of its part."""

    top: str = HEAD
    sections: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the whole file."""
        texts = [self.top.strip()]
        texts += [
            f"{heading(part)}\n\n{self.sections[part.name].strip()}" for part in PARTS if part.name in self.sections
        ]
        return "\n\n\n".join(texts) + "\n"

    def without(self, name: str) -> Layout:
        """Return the file without one part."""
        return replace(self, sections={key: text for key, text in self.sections.items() if key != name})

    def alone(self, name: str) -> str:
        """Return the text of a file with this part alone."""
        return replace(self, sections={name: self.sections[name]}).text()


def heading(part: Part) -> str:
    """Return the line that begins a part's section."""
    return f"{_RULE}{part.notebook} · {part.name} ".ljust(120, "=")


def read(text: str) -> Layout:
    """Return the pieces of a file."""
    parts = {heading(part): part.name for part in PARTS}
    top, sections, name = "", {}, ""
    for line in text.splitlines(keepends=True):
        if line.rstrip() in parts:
            name = parts[line.rstrip()]
            sections[name] = ""
        elif name:
            sections[name] += line
        else:
            top += line
    return Layout(top or HEAD, sections)


def with_part(layout: Layout, name: str, pieces: list[Piece]) -> Layout:
    """Return the file with the section of one part made of these pieces, the last of which is the part.

    A name that means something else elsewhere in the file gets the notebook's number: `scale` becomes `scale_08`.

    Raises:
        CannotWrite: the file has been edited into something that is not Python.
    """
    others = layout.without(name)
    taken = _bound(others)
    names = _names(pieces, taken, name)
    imports = [
        line for piece in pieces if piece.is_import and (line := piece.text(names)) not in others.top.splitlines()
    ]
    own = [piece.text(names).strip() for piece in pieces if not piece.is_import]
    if names[pieces[-1]] != name:
        own.append(f"{name} = {names[pieces[-1]]}")
    top = "\n".join([others.top.rstrip(), *([""] if others.top.strip() == HEAD.strip() else []), *imports])
    return Layout(top if imports else others.top, {**others.sections, name: _spaced(own)})


def _spaced(texts: list[str]) -> str:
    """Join definitions: two empty lines around a function, none between constants."""
    joined = ""
    for before, text in zip(["", *texts], texts, strict=False):
        short = "\n" not in before and "\n" not in text
        joined += text if not before else ("\n" if short else "\n\n\n") + text
    return joined


def _names(pieces: list[Piece], taken: dict[str, str], name: str) -> dict[Piece, str]:
    """Return the name that each piece gets. Renaming one changes those that use it, so look until nothing clashes."""
    names = {piece: piece.name for piece in pieces}
    while clash := next((piece for piece in pieces if _clashes(piece, names, taken, name)), None):
        names[clash] = _fresh(clash.name, part_of(name).notebook, {*names.values(), *taken, *NAMES})
    return names


def _clashes(piece: Piece, names: dict[Piece, str], taken: dict[str, str], name: str) -> bool:
    """Return True where a piece cannot have its name: it belongs to a part, or to something else in the file."""
    own = names[piece]
    if own == name:
        return piece is not list(names)[-1]
    if own in NAMES or [*names.values()].count(own) > 1:
        return True
    return own in taken and taken[own] != piece.text(names).strip()


def _fresh(name: str, notebook: str, used: set[str]) -> str:
    candidates = (f"{name}_{notebook}{letter}" for letter in ("", *"bcdefghijklmnopqrstuvwxyz"))
    return next(candidate for candidate in candidates if candidate not in used)


def _bound(layout: Layout) -> dict[str, str]:
    """Return the source of each name that the file binds."""
    text = layout.text()
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise CannotWrite(f"line {error.lineno} of the file is not Python: mend it, or call mine.reset().") from None
    found: dict[str, str] = {}
    for node in tree.body:
        source = "\n".join(text.splitlines()[_first_line(node) - 1 : node.end_lineno])
        found.update(dict.fromkeys(_names_bound(node), source))
    return found


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _names_bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    inside = [name for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]
    return [name.id for name in inside]
