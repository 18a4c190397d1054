"""Nine slips in the backward pass: who would notice? (notebook 18).

A model of `transformer_lib.by_hand` with two layers on each side learns to write six letters in reverse, with a slip
in one of its backward functions. `python -m transformer_lib.course.studies.gradient_slips` trains each slip from three
seeds for 150 and for 750 steps, and asks a gradient check. It writes data/gradient_slips.json, in about four minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ... import by_hand
from ..._files import DATA
from ..._streams import run_command
from ...by_hand import Array, Ids, Parameters, Saved, Sizes
from . import stored

RESULTS = DATA / "gradient_slips.json"
SIZES = Sizes(src_vocab_size=13, tgt_vocab_size=13, d_model=32, n_heads=2, n_layers=2, d_ff=64)
LENGTH, FIRST_ID, BOS = 6, 3, 1  # six letters, with the ids 3 to 12
BATCH_SIZE, PEAK, WARMUP = 64, 0.01, 40
WORST, LOWER_PEAKS = "softmax without its second term", (0.003, 0.001)
BUDGETS = (150, 750)  # steps
LOOK = 60  # the step of a run with 150 after which the gradients are compared
STEP, TOLERANCE = 1e-6, 1e-5  # of the gradient check; larger steps cross the bends of some ReLUs

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


def gradients_of(slip: str, seed: int) -> Parameters:
    """Return the gradients at the scene as this slip computes them."""
    return _gradients(slip, *scene(seed))


def _gradients(slip: str, parameters: Parameters, src: Ids, tgt: Ids) -> Parameters:
    with by_hand.replaced(**SLIPS[slip]):
        return by_hand.loss_and_gradients(parameters, SIZES, src, tgt)[1]


def angle(slip: str, parameters: Parameters, seed: int) -> float:
    """Return the angle between the slip's gradient and the right one in degrees, all parameters taken together."""
    double = {name: array.astype(np.float64) for name, array in parameters.items()}
    found = [_gradients(name, double, *scene(seed)[1:]) for name in ("none", slip)]
    right, wrong = (np.concatenate([gradients[name].ravel() for name in double]) for gradients in found)
    cosine = right @ wrong / np.linalg.norm(right) / np.linalg.norm(wrong)
    return math.degrees(math.acos(min(1.0, cosine)))


@cache
def slopes(seed: int) -> dict[str, tuple[Array, float]]:
    """Return for each array of the scene a random unit direction, and the loss's slope along it: two runs forward."""
    parameters, src, tgt = scene(seed)
    rng, found = np.random.default_rng(seed), {}
    for name, array in parameters.items():
        direction = rng.normal(size=array.shape)
        direction /= np.linalg.norm(direction)
        ends = [_loss(parameters | {name: array + h * direction}, src, tgt) for h in (STEP, -STEP)]
        found[name] = direction, (ends[0] - ends[1]) / (2 * STEP)
    return found


def _loss(parameters: Parameters, src: Ids, tgt: Ids) -> float:
    logits, _ = by_hand.forward(parameters, SIZES, src, tgt[:, :-1])
    return by_hand.cross_entropy(logits, tgt[:, 1:], pad_id=SIZES.pad_id)[0]


def found_wrong(slip: str, seed: int) -> list[str]:
    """Return the arrays whose gradient does not agree with the slope along its direction."""
    gradients = gradients_of(slip, seed)
    checks = {name: (float((gradients[name] * way).sum()), slope) for name, (way, slope) in slopes(seed).items()}
    return [
        name for name, (ours, slope) in checks.items() if not math.isclose(ours, slope, rel_tol=TOLERANCE, abs_tol=1e-9)
    ]


def shares(slip: str, seeds: Sequence[int], steps: int, peak: float = PEAK) -> list[float]:
    """Return the share of letters right for each seed."""
    return [round(share_right(trained(slip, seed, steps, peak=peak)), 4) for seed in seeds]


def at_the_end(slip: str, seed: int) -> dict[str, float]:
    """Return where a run of 150 steps ends: letters right, loss of the last ten steps, angle of the gradient there."""
    parameters, losses = run(slip, seed, BUDGETS[0])
    return {
        "right": round(share_right(parameters), 4),
        "loss": round(float(np.mean(losses[-10:])), 4),
        "angle": round(angle(slip, parameters, seed), 1),
    }


def measure(seeds: Sequence[int]) -> dict[str, Any]:
    """Measure every slip, and the worst of them at lower learning rates."""
    found: dict[str, Any] = {"arrays": len(scene(seeds[0])[0]), "slips": {}}
    for slip in SLIPS:
        ends = [at_the_end(slip, seed) for seed in seeds]
        found["slips"][slip] = {name: [end[name] for end in ends] for name in ends[0]} | {
            "right later": shares(slip, seeds, BUDGETS[1]),
            "found wrong": [len(found_wrong(slip, seed)) for seed in seeds],
        }
        print(slip, found["slips"][slip], flush=True)
    found["lower rates"] = {f"{peak}": shares(WORST, seeds, BUDGETS[-1], peak) for peak in LOWER_PEAKS}
    return found


def load_results() -> dict[str, Any]:
    """Return what the command wrote; `["slips"]["none"]["right"]` has a share for each seed."""
    return stored.read(RESULTS)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("gradient_slips", seeds, path, measure, indent=1)


if __name__ == "__main__":
    run_command(main)
