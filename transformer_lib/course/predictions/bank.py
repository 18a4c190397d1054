"""All predictions of the course that are committed to, in its order."""

from __future__ import annotations

from .bank_00 import NOTEBOOK_00
from .bank_01 import NOTEBOOK_01
from .bank_02 import NOTEBOOK_02
from .bank_04 import NOTEBOOK_04
from .bank_06 import NOTEBOOK_06
from .bank_09 import NOTEBOOK_09
from .bank_11 import NOTEBOOK_11
from .model import Prediction

PREDICTIONS: tuple[Prediction, ...] = (
    *NOTEBOOK_00,
    *NOTEBOOK_01,
    *NOTEBOOK_02,
    *NOTEBOOK_04,
    *NOTEBOOK_06,
    *NOTEBOOK_09,
    *NOTEBOOK_11,
)
