"""Nine slips in the backward pass: who would notice? (notebook 18).

`load_results()["slips"]["none"]["right"]` has a share for each seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ... import by_hand
from ...by_hand import Array, Ids, Parameters, Saved, Sizes
from . import stored

load_results = stored.loader("gradient_slips.json")
SIZES = Sizes(src_vocab_size=13, tgt_vocab_size=13, d_model=32, n_heads=2, n_layers=2, d_ff=64)
LENGTH, FIRST_ID, BOS = 6, 3, 1  # six letters, with the ids 3 to 12
BATCH_SIZE, PEAK, WARMUP = 64, 0.01, 40
BUDGETS = (150, 750)  # steps
LOOK = 60  # the step of a run with 150 after which the gradients are compared
Function = Callable[..., Any]


def letters(size: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Return random letters [size, LENGTH], and bos with the letters in reverse [size, 1 + LENGTH]."""
    src = rng.integers(FIRST_ID, SIZES.src_vocab_size, size=(size, LENGTH))
    return src, np.concatenate([np.full((size, 1), BOS), src[:, ::-1]], axis=1)


def batches(steps: int, seed: int) -> Iterator[tuple[Ids, Ids]]:
    """Yield that many batches of letters."""
    rng = np.random.default_rng(seed)
    return (letters(BATCH_SIZE, rng) for _ in range(steps))


# The slips -----------------------------------------------------------------------------------------------------------
def embed_last(g_x: Array, saved: Saved) -> Array:
    """Write where the rows should be added up: of a token's places the last one wins."""
    ids, shape = saved
    g_table = np.zeros(shape, dtype=g_x.dtype)
    g_table[ids] = g_x
    return g_table * math.sqrt(shape[1])


def softmax_diagonal(g_weights: Array, saved: Saved) -> Array:
    """Leave out the second term, a · g_a."""
    (weights,) = saved
    return weights * g_weights


def attention_unscaled(g_output: Array, saved: Saved) -> tuple[Array, Array, Array]:
    """Forget the factor 1 / √d_k on the way back."""
    g_query, g_key, g_value = by_hand.attention_backward(g_output, saved)
    root = math.sqrt(saved[0].shape[-1])
    return g_query * root, g_key * root, g_value


def norm_detached(g_y: Array, saved: Saved) -> tuple[Array, Array, Array]:
    """Treat mean and standard deviation as constants."""
    _, size, weight = saved
    _, g_weight, g_bias = by_hand.layer_norm_backward(g_y, saved)
    return weight * g_y / size, g_weight, g_bias


def encoder_layer(join: Function, g: Array, saved: Saved, gradients: Parameters, name: str) -> Array:
    """Join the three gradients at the first fork of the layer by `join(around, of_queries, of_keys_and_values)`."""
    saved_attention, saved_norm_1, saved_fed, saved_norm_2 = saved
    g = by_hand.add_and_norm_backward(g, saved_norm_2, gradients, f"{name}.feed_forward_residual.norm")
    g = g + by_hand.feed_forward_backward(g, saved_fed, gradients, f"{name}.feed_forward")
    g = by_hand.add_and_norm_backward(g, saved_norm_1, gradients, f"{name}.self_attention_residual.norm")
    of_queries, of_keys = by_hand.multi_head_backward(g, saved_attention, gradients, f"{name}.self_attention")
    return np.asarray(join(g, of_queries, of_keys))


def decoder_layer(sends: Function, g: Array, saved: Saved, gradients: Parameters, name: str) -> tuple[Array, Array]:
    """Send the gradient of the memory only from those layers for which `sends(name)` is True."""
    g_x, g_memory = by_hand.decoder_layer_backward(g, saved, gradients, name)
    return g_x, g_memory * sends(name)


SLIPS: dict[str, dict[str, Function]] = {  # what is replaced in by_hand; names as in the notebook
    "none": {},
    "embedding: one of several places": {"embed_backward": embed_last},
    "softmax without its second term": {"softmax_backward": softmax_diagonal},
    "no 1/√d_k on the way back": {"attention_backward": attention_unscaled},
    "norm: μ and s as constants": {"layer_norm_backward": norm_detached},
    "encoder: no path around attention": {
        "encoder_layer_backward": partial(encoder_layer, lambda around, of_queries, of_keys: of_queries + of_keys)
    },
    "encoder: keys, values send nothing": {
        "encoder_layer_backward": partial(encoder_layer, lambda around, of_queries, of_keys: around + of_queries)
    },
    "memory: only the last layer's share": {
        "decoder_layer_backward": partial(decoder_layer, lambda name: name.endswith(str(SIZES.n_layers - 1)))
    },
    "memory: no gradient at all": {"decoder_layer_backward": partial(decoder_layer, lambda name: False)},
    "ReLU lets everything through": {"relu_backward": lambda g_y, saved: g_y},
}


# Who notices? --------------------------------------------------------------------------------------------------------
def run(
    slip: str, seed: int, steps: int, *, peak: float = PEAK, stop: int | None = None, dtype: type = np.float32
) -> tuple[Parameters, list[float]]:
    """Return parameters and losses of a run of `steps`, or of its first `stop` ones."""
    parameters = by_hand.new_parameters(SIZES, seed, dtype)
    rate = partial(by_hand.cosine_rate, total_steps=steps, peak=peak, warmup_steps=min(WARMUP, steps))
    with by_hand.replaced(**SLIPS[slip]):
        losses = by_hand.train(parameters, SIZES, batches(stop or steps, seed), rate)
    return parameters, losses


def trained(slip: str, seed: int, steps: int, **options: Any) -> Parameters:
    """Return the parameters after a run; options as for `run`."""
    return run(slip, seed, steps, **options)[0]


def share_right(parameters: Parameters, size: int = 500, seed: int = 99) -> float:
    """Return how many letters of new examples are right, each with the right letters before it."""
    src, tgt = letters(size, np.random.default_rng(seed))
    logits, _ = by_hand.forward(parameters, SIZES, src, tgt[:, :-1])
    return float((logits.argmax(axis=-1) == tgt[:, 1:]).mean())


@cache
def scene(seed: int) -> tuple[Parameters, Ids, Ids]:
    """Return the parameters of a sound run after LOOK steps, in double precision, and a batch."""
    return trained("none", seed, BUDGETS[0], stop=LOOK, dtype=np.float64), *letters(
        BATCH_SIZE, np.random.default_rng(7)
    )


def shares(when: str) -> dict[str, list[float]]:
    """Return the stored shares of letters right, "right" or "right later", for each seed, by number and slip."""
    slips = load_results()["slips"].items()
    return {f"{number} {name}" if number else "no slip": runs[when] for number, (name, runs) in enumerate(slips)}


def as_lists(
    size: int = 8, seed: int = 0
) -> tuple[list[Array], Callable[[list[Array]], float], Callable[[str], list[Array]]]:
    """Return the arrays of the scene as a list, the loss of such a list, and the gradients that a slip finds for it.

    The loss is that of the scene's first `size` strings of letters.
    """
    parameters, src, tgt = scene(seed)
    src, tgt = src[:size], tgt[:size]

    def loss(arrays: list[Array]) -> float:
        logits, _ = by_hand.forward(dict(zip(parameters, arrays, strict=True)), SIZES, src, tgt[:, :-1])
        return by_hand.cross_entropy(logits, tgt[:, 1:], pad_id=SIZES.pad_id)[0]

    def found_with(slip: str) -> list[Array]:
        found = _gradients(slip, parameters, src, tgt)
        return [found[name] for name in parameters]

    return list(parameters.values()), loss, found_with


def gradients_of(slip: str, seed: int) -> Parameters:
    """Return the gradients at the scene as this slip computes them."""
    return _gradients(slip, *scene(seed))


def _gradients(slip: str, parameters: Parameters, src: Ids, tgt: Ids) -> Parameters:
    with by_hand.replaced(**SLIPS[slip]):
        return by_hand.loss_and_gradients(parameters, SIZES, src, tgt)[1]
