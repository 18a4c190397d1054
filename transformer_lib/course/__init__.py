"""The course around the library: what the notebooks need, and what is made of them.

`notebooks` lists them. `exercises` holds each exercise with its check, `quiz` the questions, `progress` what a learner
has passed, `mine` what they have written; `figures` draws (`plotting` static pictures, `svg` and `widgets` interactive
ones); `clinic`, `claims` and `studies` hold what particular notebooks examine; `teaching` makes slides and assignments.
"""

from .notebooks import NOTEBOOKS

__all__ = ["NOTEBOOKS"]
