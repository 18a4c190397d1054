"""Notebooks as they are stored, and files that other packages carry: what the tools for teachers share."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ..cells import text_of

MATHJAX = ("sphinx-mathjax-offline", "sphinx-mathjax-offline/static/mathjax/tex-svg-full.js")
"""MathJax in one file that fetches no other: the package that carries it, and where."""


def read(path: Path) -> dict:
    """Return the notebook in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def html_of(cell: dict) -> str:
    """Return the HTML that a code cell has stored; "" for none."""
    return "".join(text_of(output.get("data", {}).get("text/html", "")) for output in cell.get("outputs", []))


def carried(package: str, place: str, extra: str) -> Path:
    """Return a file of an installed package.

    Args:
        package: its name.
        place: the file, below the folder of installed packages.
        extra: the extra of this library that brings the package.

    Raises:
        RuntimeError: if the package is not installed.
    """
    try:
        return Path(str(distribution(package).locate_file(place)))
    except PackageNotFoundError:
        raise RuntimeError(f'{package} is not installed: pip install -e ".[{extra}]"') from None
