"""A view that stays up to date where it is shown: in a kernel it is drawn again when something changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from uuid import uuid4

from .view import View


class Live(View):
    """Shows itself like a View; in a kernel `redraw` replaces what is on the page, and what the notebook will save."""

    def __init__(self, draw: Callable[[], tuple[str, str]], static: Callable[[], bool]) -> None:
        """Keep `draw`, as a View does; while `static()`, the view is an ordinary result of its cell."""
        super().__init__(draw)
        self._static, self._shown = static, ""

    def _ipython_display_(self) -> None:
        if self._static() or not in_kernel():
            raise NotImplementedError  # IPython then takes the ordinary way
        from IPython.display import display

        self._shown = f"course-{os.getpid()}-{uuid4().hex}"
        display(self._repr_mimebundle_(), raw=True, display_id=self._shown)

    def redraw(self) -> None:
        """Draw it again where it is shown; nothing happens where it is not."""
        if self._shown:
            from IPython.display import update_display

            update_display(self._repr_mimebundle_(), raw=True, display_id=self._shown)


def show(view: View) -> None:
    """Show a view below the cell that runs, or print it where there is no notebook."""
    if not in_kernel():
        print(view)
        return
    from IPython.display import display

    display(view)


def in_kernel() -> bool:
    """Return whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:  # whoever is in a kernel has loaded it
        return False
    return hasattr(sys.modules["IPython"].get_ipython(), "kernel")
