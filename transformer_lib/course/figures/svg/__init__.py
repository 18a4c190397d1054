"""Pictures as SVG text, drawn by pure functions: the same arguments give the same bytes, everywhere."""

from .colours import CIVIDIS, PUOR
from .elements import Picture
from .lines import token_lines
from .maps import attention_map

__all__ = ["CIVIDIS", "PUOR", "Picture", "attention_map", "token_lines"]
