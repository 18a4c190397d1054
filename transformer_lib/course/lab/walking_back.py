"""The way back through one decoder layer: which gradients meet at each fork, soundly and with a slip (notebook 18)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ... import by_hand
from ...by_hand import Array
from . import gradient_slips as task

LAYER, NEXT = "decoder.layers.0", "decoder.layers.1"
PLACES = {  # the groups of arrays, in the order in which the gradient reaches them
    "output head": "output_head",
    "decoder layer 2": NEXT,
    "decoder layer 1": LAYER,
    "target table": "tgt_embedding",
    "encoder layer 2": "encoder.layers.1",
    "encoder layer 1": "encoder.layers.0",
    "source table": "src_embedding",
}
_RECORDED = ("decoder_layer_backward", "multi_head_backward", "feed_forward_backward", "add_and_norm_backward")


@dataclass(frozen=True)
class Stop:
    """A place on the way back: what it is, and the gradients there, by name; the last is what goes on."""

    title: str
    gradients: dict[str, Array]


@cache
def walk(slip: str = "none", seed: int = 0) -> tuple[Stop, ...]:
    """Return the stops of the first decoder layer, from its last norm to its input."""
    calls: dict[str, tuple[Array, Any]] = {}  # by the name of the part: the gradient that came, and what it returned
    parameters, src, tgt = task.scene(seed)
    slips = task.SLIPS[slip]
    listening = {name: _recording(slips.get(name, getattr(by_hand, name)), calls) for name in _RECORDED}
    with by_hand.replaced(**slips | listening):
        by_hand.loss_and_gradients(parameters, task.SIZES, src, tgt)
    return _stops(calls)


def _recording(function: Callable[..., Any], calls: dict[str, tuple[Array, Any]]) -> Callable[..., Any]:
    def recorded(g: Array, saved: Any, gradients: Any, name: str) -> Any:
        result = function(g, saved, gradients, name)
        calls[name] = g, result
        return result

    return recorded


def _stops(calls: dict[str, tuple[Array, Any]]) -> tuple[Stop, ...]:
    def norm(part: str) -> Stop:
        arrives, leaves = calls[f"{LAYER}.{part}_residual.norm"]
        return Stop(f"norm after {part.replace('_', '-')}", {"arrives": arrives, "goes on, twice": leaves})

    around_fed, through = calls[f"{LAYER}.feed_forward"]
    around_cross, (as_queries, _) = calls[f"{LAYER}.cross_attention"]
    around_own, (own_queries, own_keys) = calls[f"{LAYER}.self_attention"]
    shares = {f"from layer {number}": calls[name][1][1] for number, name in ((2, NEXT), (1, LAYER))}
    fed = {"around": around_fed, "through": through}
    cross = {"around": around_cross, "as queries": as_queries}
    own = {"around": around_own, "as queries": own_queries, "as keys and values": own_keys}
    return (
        norm("feed_forward"),
        Stop("fork below the feed-forward network", _with_sum(fed)),
        norm("cross_attention"),
        Stop("fork below the cross-attention", _with_sum(cross)),
        Stop("memory, on the way to the encoder", _with_sum(shares)),
        norm("self_attention"),
        Stop("fork below the self-attention", _with_sum(own)),
    )


def _with_sum(parts: dict[str, Array]) -> dict[str, Array]:
    return {**parts, "together": np.sum(list(parts.values()), axis=0)}


@cache
def wrong_arrays(slip: str, seed: int = 0) -> dict[str, tuple[int, int]]:
    """Return for each group how many of its arrays have a wrong gradient, and how many it has."""
    right, slipped = task.gradients_of("none", seed), task.gradients_of(slip, seed)
    wrong = {name for name, g in right.items() if not np.allclose(g, slipped[name], rtol=1e-6, atol=1e-12)}
    groups = {place: {name for name in right if name.startswith(start)} for place, start in PLACES.items()}
    return {place: (len(wrong & names), len(names)) for place, names in groups.items()}
