"""The real model, for tests that need it: where it is not, they are skipped, and say how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer_lib.course import real


def real_folder() -> Path:
    """The folder of SmolLM2-135M-Instruct in float32; without it the test that asks is skipped."""
    return real.folder() or pytest.skip(real.WHAT_TO_DO)


def real_gguf() -> Path:
    """The GGUF file that it was made of."""
    return real.gguf_path() or pytest.skip(real.WHAT_TO_DO)
