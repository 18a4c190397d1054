"""What a run says and does about numbers that are not finite: it stops while the last good weights are there."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor, nn

HINT = "a lower learning_rate, more warmup_steps or a smaller clip_norm may help, and a look at the last losses"


def check_finite(tensors: Mapping[str, Tensor], problem: str) -> None:
    """Raise FloatingPointError if one of the tensors holds NaN or ∞; `problem` says what follows from it."""
    name = first_not_finite(tensors)
    if name is not None:
        raise FloatingPointError(f"{problem}: {name} holds numbers that are not finite; {HINT}")


def check_step(step: int, rate: float, loss: float, norm: float | None, model: nn.Module) -> None:
    """Raise FloatingPointError unless the loss and the gradient's norm, if there is one, of a step are finite.

    Args:
        step, rate: of the step whose gradient has been computed and that has not been taken yet.
    """
    for what, value in (("loss", loss), ("norm of the gradient", norm)):
        if value is None or math.isfinite(value):
            continue
        name = first_not_finite(dict(model.named_parameters()))
        cause = f"the weights after step {step - 1} are intact" if name is None else f"{name} is not finite already"
        raise FloatingPointError(f"step {step}, learning rate {rate:.3g}: the {what} is {value}, {cause}; {HINT}")


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of the first tensor that holds NaN or ∞, or None."""
    return next((name for name, x in tensors.items() if x.is_floating_point() and not x.isfinite().all()), None)
