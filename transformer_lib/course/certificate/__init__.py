"""A page that shows what one has passed: exercises, questions, predictions and dates, and one's own functions.

`tl.certificate.write("Ada Lovelace")`, or on a command line

    python -m transformer_lib.course.certificate "Ada Lovelace"

writes `certificate.html` (and a PDF where a Chromium is installed) into the folder `mine`. The page says what it proves
and what not. Whoever teaches can have the functions in it computed again, and sign it:
`transformer_lib.course.teaching.certificates`.
"""

from __future__ import annotations

from pathlib import Path

from ..._files import write_atomically
from ..mine.folder import folder as folder_of_mine
from ..printing import chromium, print_pdf
from .page import page
from .statement import canonical, code_of, read, stated

__all__ = ["canonical", "code_of", "page", "read", "stated", "write"]

FILE = "certificate.html"


def write(name: str, folder: Path | str | None = None) -> list[Path]:
    """Write the page, and print it to a PDF where that can be done; returns the files.

    Args:
        name: yours, as the page is to say it.
        folder: to write into; by default `mine`, where your own code is.

    Raises:
        ValueError: if there is no name, or nothing is passed yet.
        OSError: if the folder cannot be written.
    """
    place = Path(folder) if folder is not None else folder_of_mine()
    html = place / FILE
    write_atomically(html, page(stated(name)).encode())
    return [html, *([print_pdf(html, html.with_suffix(".pdf"))] if chromium() else [])]
