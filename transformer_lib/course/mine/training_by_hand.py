"""What the learner wrote in notebook 18, in `transformer_lib.by_hand` in place of the library's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from ... import by_hand
from ...by_hand import Array, Parameters, Saved
from .library import Function, whose


def linear_backward(theirs: Function, g_y: Array, saved: Saved) -> tuple[Array, Array, Array | None]:
    """Call linear_backward(g_y, x, weight) -> (g_x, g_weight, g_bias)."""
    x, weight, bias = saved
    g_x, g_weight, g_bias = theirs(g_y, x, weight)
    return g_x, g_weight, None if bias is None else g_bias


def embed_backward(theirs: Function, g_x: Array, saved: Saved) -> Array:
    """Call embedding_backward(g_x, ids, vocab_size) -> g_table."""
    ids, (vocab_size, _) = saved
    g_table: Array = theirs(g_x, ids, vocab_size)
    return g_table


def decoder_layer_backward(
    theirs: Function, g: Array, saved: Saved, gradients: Parameters, name: str
) -> tuple[Array, Array]:
    """Call decoder_layer_backward(g_y, six functions of a gradient) -> (g_x, g_memory)."""
    saved_self, saved_norm_1, saved_cross, saved_norm_2, saved_fed, saved_norm_3 = saved

    def part(function: Function, kept: Saved, within: str) -> Function:
        return partial(function, saved=kept, gradients=gradients, name=f"{name}.{within}")

    g_x, g_memory = theirs(
        g,
        part(by_hand.multi_head_backward, saved_self, "self_attention"),
        part(by_hand.multi_head_backward, saved_cross, "cross_attention"),
        part(by_hand.feed_forward_backward, saved_fed, "feed_forward"),
        part(by_hand.add_and_norm_backward, saved_norm_1, "self_attention_residual.norm"),
        part(by_hand.add_and_norm_backward, saved_norm_2, "cross_attention_residual.norm"),
        part(by_hand.add_and_norm_backward, saved_norm_3, "feed_forward_residual.norm"),
    )
    return g_x, g_memory


def adam_step(theirs: Function, *arguments: Any) -> tuple[Array, Array, Array]:
    """Call adam_step with all nine arguments -> (parameter, mean, square)."""
    parameter, mean, square = theirs(*arguments)
    return parameter, mean, square


PLACES: dict[
    str, tuple[str, Function]
] = {  # a part of the learner's, the function of by_hand, how the one is the other
    "linear_backward": ("linear_backward", linear_backward),
    "embedding_backward": ("embed_backward", embed_backward),
    "decoder_layer_backward": ("decoder_layer_backward", decoder_layer_backward),
    "adam_step": ("adam_step", adam_step),
}


@contextmanager
def in_by_hand(theirs: Mapping[str, Function]) -> Iterator[str]:
    """Let `by_hand` compute with the learner's functions, by the names of their parts; say whose they are."""
    places = [(PLACES[name], function) for name, function in theirs.items()]
    with by_hand.replaced(**{name: partial(adapter, function) for (name, adapter), function in places}):
        yield whose(theirs, len(PLACES))
