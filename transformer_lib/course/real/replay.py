"""Notebooks of the real model run without it, too: a cell that needs it shows what it showed where the model was.

`load` returns the model and its tokenizer where they have been fetched. Where they have not, it returns two `Absent`,
and from then on IPython passes over each cell that uses one of these, or a name that such a cell would have made. In
its place comes what the course's own notebook has stored for it. All other cells run as ever.
"""

from __future__ import annotations

import ast
import json
import os
import symtable
from typing import Any

from ..cells import source_of, text_of
from ..notebooks import file_of, notebook

_REPLAY = "__show_what_is_stored"


class ModelIsMissing(RuntimeError):
    """The real model has not been fetched."""


class Absent:
    """Stands for what needs the model; whatever is done with it says how the model is fetched."""

    def __init__(self, what_to_do: str) -> None:
        self._what_to_do = what_to_do

    def _refuse(self, *args: object, **kwargs: object) -> Any:
        raise ModelIsMissing(self._what_to_do)

    def __getattr__(self, name: str) -> Any:
        """Refuse, unless Python asks whether there is a special method."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse()

    __call__ = __getitem__ = __iter__ = __len__ = __contains__ = _refuse


class PassingOver:
    """Looks at each cell before it runs, as one of IPython's `ast_transformers`.

    Args:
        shell: the running IPython. notebook_id: the notebook that has stored what its cells show. what_to_do: the
            sentence for those who want the model. quiet: show nothing besides what is stored.
    """

    def __init__(self, shell: Any, notebook_id: str, what_to_do: str, *, quiet: bool = False) -> None:
        self._shell, self._what_to_do, self._quiet = shell, what_to_do, quiet
        self._stored = _stored_by(notebook_id)
        self._raw = ""
        shell.events.register("pre_run_cell", self._begins)
        shell.user_ns[_REPLAY] = self._show

    def _begins(self, info: Any) -> None:
        self._raw = (info.raw_cell or "").strip()

    def visit(self, tree: ast.Module) -> ast.Module:
        """Return the cell as it is, or only its imports and a call that shows what is stored."""
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        here = self._shell.user_ns
        if not any(type(here.get(name)) is Absent for name in names):
            return tree
        here.update({name: Absent(self._what_to_do) for name in _bound_by(tree)})
        imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
        shows = ast.parse(f"{_REPLAY}()").body
        return ast.fix_missing_locations(ast.Module([*imports, *shows], tree.type_ignores))

    def _show(self) -> None:
        """Show what the course's notebook has stored for the cell that is running."""
        outputs = self._stored.get(self._raw)
        if not self._quiet and outputs != []:  # a cell that shows nothing need not say so
            says = "Not run. This is what it showed where the model was:" if outputs else f"Not run. {self._what_to_do}"
            print(f"[{says}]")
        for output in outputs or ():
            _show_again(output)


def _stored_by(notebook_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return {source: outputs} of each code cell of a notebook as the course has it."""
    cells = json.loads(file_of(notebook(notebook_id)).read_text("utf-8"))["cells"]
    return {source_of(cell).strip(): cell["outputs"] for cell in cells if cell["cell_type"] == "code"}


def _bound_by(tree: ast.Module) -> set[str]:
    """Return the names that a cell would have made, but for those that it imports."""
    symbols = symtable.symtable(ast.unparse(tree), "cell", "exec").get_symbols()
    return {each.get_name() for each in symbols if each.is_assigned() and not each.is_imported()}


def _show_again(output: dict[str, Any]) -> None:
    from IPython.display import publish_display_data

    if output["output_type"] == "stream":
        print(text_of(output["text"]), end="")
    elif "data" in output:
        data = {kind: value if isinstance(value, dict) else text_of(value) for kind, value in output["data"].items()}
        publish_display_data(data, output.get("metadata"))


def begin(notebook_id: str, what_to_do: str, count: int) -> tuple[Absent, ...]:
    """Pass over what needs the model from here on, if this is a notebook; return what stands for it."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None and not any(isinstance(each, PassingOver) for each in shell.ast_transformers):
        quiet = bool(os.environ.get("TRANSFORMER_COURSE_STATIC"))
        shell.ast_transformers.append(PassingOver(shell, notebook_id, what_to_do, quiet=quiet))
    return tuple(Absent(what_to_do) for _ in range(count))
