"""Numbers that are not finite end a run while the last good weights are still there."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor, nn

from .._validate import first_not_finite

HINT = "a lower learning_rate, more warmup_steps or a smaller clip_norm may help, and a look at the last losses"


def check_finite(tensors: Mapping[str, Tensor], problem: str) -> None:
    """Raise FloatingPointError if one of the tensors holds NaN or ∞; `problem` says what follows from it."""
    wrong = first_not_finite(tensors)
    if wrong is not None:
        raise FloatingPointError(f"{problem}: {wrong[0]} holds numbers that are not finite; {HINT}")


def check_step(step: int, rate: float, loss: float, norm: float | None, model: nn.Module) -> None:
    """Raise FloatingPointError unless the loss and the gradient's norm, if there is one, of a step are finite.

    Args:
        step, rate: of the step whose gradient has been computed and that has not been taken yet.
    """
    for what, value in (("loss", loss), ("norm of the gradient", norm)):
        if value is None or math.isfinite(value):
            continue
        wrong = first_not_finite(dict(model.named_parameters()))
        intact = f"the weights after step {step - 1} are intact"
        cause = intact if wrong is None else f"{wrong[0]} is not finite already"
        raise FloatingPointError(f"step {step}, learning rate {rate:.3g}: the {what} is {value}, {cause}; {HINT}")
