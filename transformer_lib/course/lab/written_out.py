"""In which order `by_hand` calls its parts, forward and back: the walk along the tape, written out (notebook 18)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ... import by_hand
from ...by_hand import Ids, Parameters, Sizes

PARTS = ("embed", "linear", "relu", "attention", "layer_norm", "cross_entropy")


@dataclass
class Call:
    """One call of a part on the way forward: what it was, and as which its backward was called, from 1."""

    part: str
    name: str  # that of its parameters, or of the part
    forward: int
    back: int = 0


def calls(parameters: Parameters, sizes: Sizes, src: Ids, tgt: Ids) -> list[Call]:
    """Return the calls of one step in the order of the way forward.

    Args:
        src: [batch, src_len]. tgt: [batch, 1 + tgt_len].
    """
    made: list[Call] = []
    kept: list[Any] = []  # what each call saved for its backward, at the same place as in `made`
    names = {id(array): name.removesuffix(".weight") for name, array in parameters.items()}

    def listening(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            name = next((names[id(given)] for given in args if id(given) in names), part)
            made.append(Call(part, name, len(made) + 1))
            kept.append(result[1])
            return result

        return forward

    def answering(function: Callable[..., Any]) -> Callable[..., Any]:
        def back(*args: Any) -> Any:
            number = next(number for number, saved in enumerate(kept) if saved is args[-1])
            made[number].back = 1 + max(call.back for call in made)
            return function(*args)

        return back

    forward = {part: listening(part, getattr(by_hand, part)) for part in PARTS}
    back = {f"{part}_backward": answering(getattr(by_hand, f"{part}_backward")) for part in PARTS}
    with by_hand.replaced(**forward, **back):
        by_hand.loss_and_gradients(parameters, sizes, src, tgt)
    return made


def points(calls: list[Call]) -> dict[str, tuple[list[int], list[int]]]:
    """Return the numbers forward and back of the calls in exactly reversed order, and of the others by name."""
    straight = [call for call in calls if call.forward + call.back == len(calls) + 1]
    others = [call for call in calls if call not in straight]
    kinds = ", ".join(sorted({call.name.rpartition(".")[2] for call in others}))
    groups = {"reversed": straight, f"out of line: {kinds}": others} if others else {"reversed": straight}
    return {name: ([call.forward for call in some], [call.back for call in some]) for name, some in groups.items()}
