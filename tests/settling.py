"""Which rows of the register of claims a test settles; `docs/site_register.py` reads it off the tests' source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def settles(*claims: str) -> Callable[[Test], Test]:
    """Say that a test asserts these rows, such as "C164", or what is right in their place."""
    assert claims
    return lambda test: test
