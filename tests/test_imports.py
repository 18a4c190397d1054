"""Imports inside transformer_lib point one way, and files, classes and functions stay small."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "transformer_lib"

# A module may import only from lines above its own. `__init__` stands for `import transformer_lib` itself.
ORDER = [
    {"_validate", "numpy_reference", "plotting", "course", "allocation"},
    {"cache", "schedules", "history", "progress", "svg", "claims", "distributed"},
    {"config"},
    {"masks", "positional", "tokenizer", "context", "quiz", "costs", "packing", "losses", "gradients"},
    {"attention", "short_attention", "corpus", "batching"},
    {"multihead", "metrics"},
    {"layers", "recording"},
    {"encoder", "decoder"},
    {"transformer"},
    {"fast"},
    {"fast_decoding", "interop", "checkpoint"},
    {"decoding", "resuming"},
    {"beam", "training"},
    {"translator", "baselines"},
    {"experiments", "clinic", "corpus_training"},
    {"train"},
    {"studies"},
    {"__init__"},
    {"widgets", "exercises"},
    {"teaching"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
MODEL = set().union(*ORDER[RANK["attention"] : RANK["__init__"]]) - {"corpus", "batching", "metrics"}

# Narrower than the order: the only siblings that a module may import, or none of the model.
ONLY = {
    "positional": {"_validate"},
    "context": {"_validate"},
    "plotting": set(),
    "svg": {"plotting"},
    "claims": {"course"},
    "numpy_reference": set(),
}
WITHOUT_MODEL = {"corpus", "tokenizer", "context", "batching", "metrics", "progress", "quiz", "history"}
ONLY_IMPORTED_BY = {"numpy_reference": {"exercises"}}
ONLY_OUTSIDE = {"plotting": {"numpy", "matplotlib", "PIL"}, "numpy_reference": {"numpy"}}

FILE_LINES, CLASS_LINES, FUNCTION_LINES = 250, 100, 45
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


def module_of(file: Path, package: Path) -> str:
    """The module a file belongs to, as the table names it: the first part below the package."""
    return file.relative_to(package).with_suffix("").parts[0]


def absolute_names(node: ast.stmt, file: Path, package: Path) -> list[str]:
    """The dotted names an import statement asks for, relative ones made absolute."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parents = [package.name, *file.relative_to(package).parts[:-1]]
        base = ".".join([*parents[: len(parents) - node.level + 1], *base.split(".")]).rstrip(".")
    if base != package.name:
        return [base]
    return [f"{base}.{alias.name}" for alias in node.names]


def imports(file: Path, package: Path) -> tuple[set[str], set[str]]:
    """The siblings (as modules of the table) and the outside packages that a file imports anywhere in it."""
    siblings, outside = set(), set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        for name in absolute_names(node, file, package):
            top, _, rest = name.partition(".")
            if top != package.name:
                outside.add(top)
                continue
            child = rest.split(".")[0]
            is_module = (package / f"{child}.py").is_file() or (package / child / "__init__.py").is_file()
            siblings.add(child if child and is_module else "__init__")
    return siblings - {module_of(file, package)}, outside - set(sys.stdlib_module_names)


def import_problems(file: Path, package: Path) -> list[str]:
    importer = module_of(file, package)
    siblings, outside = imports(file, package)
    if importer == "__init__":
        return []
    unknown = sorted(({importer} | siblings) - set(RANK))
    if unknown:
        return [f"{file.name}: {', '.join(unknown)} is not in ORDER; give it its place there"]
    later = {name for name in siblings if RANK[name] >= RANK[importer]}
    wrong = {f"imports {name}, which comes later or beside it" for name in later}
    if importer in ONLY:
        wrong |= {f"imports {name}, not one of {ONLY[importer]}" for name in siblings - ONLY[importer]}
    if importer in WITHOUT_MODEL:
        wrong |= {f"imports {name}, which is model code" for name in siblings & MODEL}
    for name in siblings & set(ONLY_IMPORTED_BY):
        if importer not in ONLY_IMPORTED_BY[name]:
            wrong.add(f"imports {name}, which is for {', '.join(ONLY_IMPORTED_BY[name])} only")
    if importer in ONLY_OUTSIDE:
        wrong |= {f"imports the package {name}" for name in outside - ONLY_OUTSIDE[importer]}
    return [f"{importer} {problem}" for problem in sorted(wrong)]


def code_lines(source: str) -> set[int]:
    """The numbers of the lines that hold code: neither blank, nor comment, nor docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if documented and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def size_problems(file: Path) -> list[str]:
    source = file.read_text(encoding="utf-8")
    lines, total = code_lines(source), len(source.splitlines())
    problems = [f"{file.name} has {total} lines, at most {FILE_LINES}"] if total > FILE_LINES else []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        limit = CLASS_LINES if isinstance(node, ast.ClassDef) else FUNCTION_LINES
        size = len(lines & set(range(node.lineno, node.end_lineno + 1)))
        if size > limit:
            problems.append(f"{file.name}: {node.name} has {size} lines of code, at most {limit}")
    return problems


FILES = sorted(PACKAGE.rglob("*.py"))


def test_the_package_is_found():
    assert PACKAGE / "__init__.py" in FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_one_way(file):
    assert import_problems(file, PACKAGE) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_sizes(file):
    assert size_problems(file) == []


# The checks themselves, on a package made up for the purpose.


@pytest.fixture
def package(tmp_path):
    modules = ["_validate", "config", "masks", "attention", "training", "widgets", "numpy_reference"]
    packages = ["plotting", "exercises", "context"]
    for name in ["__init__", *modules, *(f"{name}/__init__" for name in packages)]:
        file = tmp_path / "lib" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "lib"


ALLOWED = [
    ("masks.py", "from ._validate import check\nfrom . import config\nimport os, torch"),
    ("training.py", "def f():\n    from lib.attention import softmax"),
    ("plotting/bars.py", "import numpy as np\nfrom matplotlib.axes import Axes\nfrom . import colours"),
    ("exercises/one.py", "import lib as tl\nfrom ..numpy_reference import f\nfrom .. import attention"),
    ("__init__.py", "from . import widgets"),
]
REFUSED = [
    ("masks.py", "from .attention import f", "masks imports attention, which comes later"),
    ("masks.py", "def f():\n    import lib.attention", "masks imports attention, which comes later"),
    ("training.py", "from . import widgets", "training imports widgets, which comes later"),
    ("training.py", "from lib import train", "training imports __init__, which comes later"),
    ("attention.py", "from .numpy_reference import f", "which is for exercises only"),
    ("numpy_reference.py", "import torch", "numpy_reference imports the package torch"),
    ("plotting/bars.py", "from torch import Tensor", "plotting imports the package torch"),
    ("plotting/bars.py", "from .._validate import f", "plotting imports _validate, not one of"),
    ("context/german.py", "from ..attention import f", "context imports attention, which is model code"),
    ("context/german.py", "from .. import config", "context imports config, not one of"),
    ("widgets.py", "from .exercises import f", "widgets imports exercises, which comes later or beside"),
    ("surprise.py", "import os", "surprise is not in ORDER"),
]


@pytest.mark.parametrize(("name", "source"), ALLOWED, ids=[name for name, _ in ALLOWED])
def test_an_allowed_import_passes(package, name, source):
    (package / name).write_text(source, encoding="utf-8")
    assert import_problems(package / name, package) == []


@pytest.mark.parametrize(("name", "source", "message"), REFUSED, ids=[f"{n}: {m}" for n, _, m in REFUSED])
def test_a_wrong_import_is_noticed(package, name, source, message):
    (package / name).write_text(source, encoding="utf-8")
    problems = import_problems(package / name, package)
    assert any(message in problem for problem in problems), problems


def test_only_lines_of_code_are_counted():
    source = '"""Module."""\n\n# comment\ndef f(a,\n      b):\n    """Doc\n    string."""\n'
    source += '    # why\n    return """x\ny"""\n'
    assert code_lines(source) == {4, 5, 9, 10}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("\n" * 251, "long.py has 251 lines, at most 250"),
        ("def f():\n" + "    x = 1\n" * 45, "f has 46 lines of code, at most 45"),
        ("class C:\n" + "    x = 1\n" * 100, "C has 101 lines of code, at most 100"),
    ],
)
def test_a_size_over_the_limit_is_noticed(tmp_path, source, message):
    (tmp_path / "long.py").write_text(source, encoding="utf-8")
    assert any(message in problem for problem in size_problems(tmp_path / "long.py"))
    (tmp_path / "long.py").write_text(source.rsplit("\n", 2)[0] + "\n", encoding="utf-8")
    assert size_problems(tmp_path / "long.py") == []
