"""Colour maps as small tables, so that drawing needs no matplotlib: cividis for weights, PuOr for signed."""

from __future__ import annotations

import numpy as np

from ..plotting.base import ink

GREY = "#e4e4e4"
"""A masked cell, under its hatching."""


def _table(digits: str) -> tuple[str, ...]:
    return tuple("#" + digits[i : i + 6] for i in range(0, len(digits), 6))


# Sampled evenly from matplotlib's maps of these names: 64 steps from 0 to 1; 65, so that 0 is the middle.
CIVIDIS = _table(
    "00224e00255400285b002b62002e6a0030700533711235701a386f213b6e273e6e2d416d32436d36466c3b496c3f4c6c"
    "444f6c48526c4c556c50576c545a6d575d6d5b606e5e636f62656f656870696b716c6e727071737374757777767a7a78"
    "7e7d788280798683798a86788e8978928c78958f779992779d9576a19975a59c74a99f73ada272b1a570b6a96fbaac6d"
    "bfb06bc3b369c7b767ccba64d0be62d4c15fd9c55cddc858e1cc55e6d051ead34cefd748f3db42f8df3cfde334fee838"
)
PUOR = _table(
    "7f3b088740088f4407974907a04d07a85206b05606b75c07be630ac6690ccd700ed47610db7d12e18417e68d23ea9530"
    "ef9e3cf3a649f8ae55fcb761fdbd6efdc47bfdca88fed095fed7a2feddaffde2bbfce5c5fbe9cffaeddaf9f0e4f8f4ee"
    "f6f6f7f2f2f5ededf3e8e9f1e3e4efdee0edd9dbebd4d4e8cecde4c8c6e0c2bedcbcb7d8b6b0d4afa8d0a79fca9f96c4"
    "988dbe9085b8887cb28073ac7967a6725ba16b4f9b6443955d3790572b8a5023824a1d7844176f3e1165380b5c320552"
    "2d004b"
)


def weight_levels(weights: np.ndarray, step: int = 1) -> np.ndarray:
    """Return the index into CIVIDIS of each weight in [0, 1]; with a ``step`` of 3, only every third colour is used."""
    return np.rint(np.clip(weights, 0.0, 1.0) * (len(CIVIDIS) - 1) / step).astype(int) * step


def signed_levels(values: np.ndarray, largest: float) -> np.ndarray:
    """Return the index into PUOR of each value in [−largest, largest]; 0 is the middle, white."""
    middle = (len(PUOR) - 1) // 2
    return np.rint(np.clip(values / (largest or 1.0), -1.0, 1.0) * middle).astype(int) + middle


def weight_colour(weight: float) -> str:
    """Return the colour of one weight."""
    return CIVIDIS[int(weight_levels(np.array(weight)))]


def signed_colour(value: float, largest: float) -> str:
    """Return the colour of one value in [−largest, largest]."""
    return PUOR[int(signed_levels(np.array(value), largest))]


def ink_on(colour: str) -> str:
    """Return black or white, whichever reads better on a colour written "#rrggbb"."""
    return ink(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))


def ink_kind(colour: str) -> str:
    """Return the class of text that reads better on a colour: "black" or "white"."""
    return "white" if ink_on(colour) == "#fff" else "black"
