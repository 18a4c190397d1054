"""The former name of parts of `engine` and `pages`, for tests that still use it."""

from .engine import save
from .pages import put_between

__all__ = ["put_between", "save"]
