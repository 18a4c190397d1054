"""All questions of the course, gathered from one module per notebook."""

from __future__ import annotations

from .bank_00 import NOTEBOOK_00
from .bank_01 import NOTEBOOK_01
from .bank_02 import NOTEBOOK_02
from .bank_03 import NOTEBOOK_03
from .bank_04 import NOTEBOOK_04
from .bank_05 import NOTEBOOK_05
from .bank_06 import NOTEBOOK_06
from .bank_07 import NOTEBOOK_07
from .bank_08 import NOTEBOOK_08
from .bank_09 import NOTEBOOK_09
from .bank_10 import NOTEBOOK_10
from .bank_11 import NOTEBOOK_11
from .bank_12 import NOTEBOOK_12
from .bank_13 import NOTEBOOK_13
from .bank_14 import NOTEBOOK_14
from .bank_15 import NOTEBOOK_15
from .bank_16 import NOTEBOOK_16
from .bank_17 import NOTEBOOK_17
from .bank_18 import NOTEBOOK_18
from .bank_19 import NOTEBOOK_19
from .bank_20 import NOTEBOOK_20
from .bank_21 import NOTEBOOK_21
from .bank_22 import NOTEBOOK_22
from .bank_23 import NOTEBOOK_23
from .bank_24 import NOTEBOOK_24
from .bank_25 import NOTEBOOK_25
from .bank_A import NOTEBOOK_A

QUESTIONS = (
    *NOTEBOOK_00,
    *NOTEBOOK_01,
    *NOTEBOOK_02,
    *NOTEBOOK_03,
    *NOTEBOOK_04,
    *NOTEBOOK_05,
    *NOTEBOOK_06,
    *NOTEBOOK_07,
    *NOTEBOOK_08,
    *NOTEBOOK_09,
    *NOTEBOOK_10,
    *NOTEBOOK_11,
    *NOTEBOOK_12,
    *NOTEBOOK_13,
    *NOTEBOOK_14,
    *NOTEBOOK_15,
    *NOTEBOOK_16,
    *NOTEBOOK_17,
    *NOTEBOOK_18,
    *NOTEBOOK_19,
    *NOTEBOOK_20,
    *NOTEBOOK_21,
    *NOTEBOOK_22,
    *NOTEBOOK_23,
    *NOTEBOOK_24,
    *NOTEBOOK_25,
    *NOTEBOOK_A,
)
