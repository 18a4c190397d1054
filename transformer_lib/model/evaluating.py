"""A model in evaluation mode for a while, and then as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put `model` into evaluation mode (no dropout), and restore each submodule's mode afterwards.

    Also after an exception, and also where some parts were in training mode and others were not.
    """
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training
