"""The learner's copy of the course: the folder `mine`, with notebooks to write in, beside their own Transformer.

In a terminal, with JupyterLab closed::

    python -m transformer_lib.course.copies lab            # bring the folder up to date, and open JupyterLab there
    python -m transformer_lib.course.copies update         # only bring it up to date
    python -m transformer_lib.course.copies exercise 01.2  # this exercise becomes a stub again
    python -m transformer_lib.course.copies notebook 01    # the course's notebook in place of yours, which is kept
    python -m transformer_lib.course.copies beside 01      # the course's notebook beside yours

The notebooks of the course stay as they are, for tests, the site and updates. In a copy, the outputs that a learner is
to predict or to make are cleared. An update adds what is new, replaces what has not been edited, and never touches an
edited notebook. In a notebook, `bring_back` does for one exercise what the command does. The environment variable
TRANSFORMER_COURSE_MINE names another folder (`transformer_lib.course.mine`).
"""

from __future__ import annotations

from pathlib import Path

from .. import notebooks, progress
from ..mine import folder
from . import lab, restoring, updating

__all__ = ["beside", "bring_back", "bring_back_notebook", "course_folder", "folder", "open_lab", "update"]


def course_folder() -> Path:
    """Return the folder of the course's own notebooks, which must lie beside the package.

    Raises:
        FileNotFoundError: the course is installed without its notebooks.
    """
    found = Path(__file__).resolve().parents[3] / "notebooks"
    if not found.is_dir():
        raise FileNotFoundError(f"there are no notebooks beside transformer_lib: {found} is missing")
    return found


def update() -> list[str]:
    """Bring the learner's folder up to date; return a line about each notebook that stays because it was edited.

    Raises:
        FileNotFoundError: the course is installed without its notebooks. OSError: the folder cannot be written.
    """
    return updating.update(course_folder(), folder())


def bring_back(exercise_id: str) -> None:
    """Make an exercise a stub again.

    In a notebook, the cell that calls this becomes the stub: call it in the exercise's own cell, whose text *Undo*
    (Ctrl+Z) brings back, or in a new one. Elsewhere the learner's file is changed, which must not be open then, and
    what it held is kept in the folder `earlier`.

    Raises:
        ValueError: there is no such exercise, or the learner's notebook has lost its cell.
        FileNotFoundError: the course is installed without its notebooks. OSError: the file cannot be written.
    """
    source = _source_of_exercise(exercise_id)
    if not progress.in_kernel():
        print(restoring.exercise(source, folder(), exercise_id))
        return
    from IPython import get_ipython

    get_ipython().set_next_input(restoring.stub(source, exercise_id), replace=True)
    print(f"The stub of {exercise_id} is back. Undo (Ctrl+Z in the cell) brings back what was here.")


def bring_back_notebook(notebook_id: str) -> None:
    """Put the course's notebook in the place of the learner's, which is kept beside it.

    Raises:
        ValueError: there is no such notebook.
        FileNotFoundError: the course is installed without its notebooks. OSError: the folder cannot be written.
    """
    print(restoring.notebook(_source(notebook_id), folder()))


def beside(notebook_id: str) -> None:
    """Put the course's notebook beside the learner's, which stays.

    Raises:
        ValueError: there is no such notebook.
        FileNotFoundError: the course is installed without its notebooks. OSError: the folder cannot be written.
    """
    print(restoring.beside(_source(notebook_id), folder()))


def open_lab(arguments: list[str]) -> int:
    """Open JupyterLab in the learner's folder, at the notebook last worked in; returns its exit status.

    Raises:
        FileNotFoundError: the course is installed without its notebooks.
    """
    return lab.start(folder(), course_folder().parent, arguments)


def _source(notebook_id: str) -> Path:
    return course_folder() / notebooks.notebook(notebook_id).filename


def _source_of_exercise(exercise_id: str) -> Path:
    for entry in notebooks.NOTEBOOKS:
        if ("exercise", exercise_id) in entry.parts:
            return _source(entry.id)
    raise ValueError(f"exercise_id must be that of an exercise, such as '01.2', got {exercise_id!r}")
