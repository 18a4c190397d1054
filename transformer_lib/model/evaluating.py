"""A model in evaluation mode for a while, and then as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

_lock = threading.RLock()
_holds: list[dict[int, bool]] = []  # a `with` block each, in order: the mode that each part, by id, has to come back to


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put `model` into evaluation mode (no dropout), and restore each submodule's mode afterwards.

    Also after an exception, and also where some parts were in training mode and others were not. Blocks may overlap, as
    those of several threads do that decode with one model, or with models that share parts: a part goes back to
    training when the last block that holds it has ended, and comes back to the mode that the first one found.

    Raises:
        TypeError: `model` is not a module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    parts = parts_of(model)  # kept until the end, so that no other module can have their ids meanwhile
    hold: dict[int, bool] = {}
    try:
        with _lock:
            _holds.append(hold)
            hold.update({id(part): part.training for part in parts})
            if any(hold.values()):
                model.eval()
        yield
    finally:
        with _lock:
            _release(hold, parts)


def _release(hold: dict[int, bool], parts: list[nn.Module]) -> None:
    """Restore the modes of the parts, but leave those that a later block holds to that block."""
    place = next((i for i, other in enumerate(_holds) if other is hold), None)
    if place is None:  # interrupted before the block began
        return
    del _holds[place]
    for part in parts:
        key = id(part)
        heir = next((other for other in _holds[place:] if key in other), None)
        if heir is not None:
            heir[key] = hold[key]
        elif part.training is not hold[key]:
            part.training = hold[key]


def all_evaluating(parts: list[nn.Module]) -> bool:
    """Return whether the parts are in evaluation mode and no block is open whose end could change that."""
    return not _holds and not any(part.training for part in parts)


def parts_of(model: nn.Module) -> list[nn.Module]:
    """Return all modules, as `model.modules()` does but in another order and faster: every decoding call asks."""
    seen: dict[int, nn.Module] = {}
    to_do = [model]
    while to_do:
        part = to_do.pop()
        if id(part) not in seen:
            seen[id(part)] = part
            to_do += [child for child in part._modules.values() if child is not None]
    return list(seen.values())
