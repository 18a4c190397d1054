"""What a Transformer costs, by formula: multiply-adds, bytes, and the length beyond which the pairs of tokens dominate.

A product of [a, b] and [b, c] takes a · b · c multiply-adds. Softmax, norms, biases and activations are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ._validate import check_int
from .model.config import TransformerConfig

MIB = 2**20


@dataclass(frozen=True)
class Cost:
    """Multiply-adds by part; `pairs` are the scores and the blends, the only part that is quadratic in a length."""

    projections: int = 0
    pairs: int = 0
    feed_forward: int = 0
    head: int = 0

    @property
    def linear(self) -> int:
        """Everything but the pairs."""
        return self.projections + self.feed_forward + self.head

    @property
    def total(self) -> int:
        """All multiply-adds."""
        return self.linear + self.pairs

    def times(self, factor: int) -> Cost:
        """Return this cost multiplied by `factor`."""
        return Cost(*(factor * part for part in (self.projections, self.pairs, self.feed_forward, self.head)))

    def plus(self, other: Cost) -> Cost:
        """Return the sum, part by part."""
        return Cost(
            self.projections + other.projections,
            self.pairs + other.pairs,
            self.feed_forward + other.feed_forward,
            self.head + other.head,
        )


def attention_cost(q_len: int, k_len: int, d_model: int) -> Cost:
    """Return the multiply-adds of multi-head attention with d_k = d_v = d_model / n_heads, for one sentence.

    W_Q and W_O act on q_len rows, W_K and W_V on k_len rows. Raises TypeError, ValueError for sizes below 1.
    """
    for name, value in (("q_len", q_len), ("k_len", k_len), ("d_model", d_model)):
        check_int(name, value)
    return Cost(projections=2 * (q_len + k_len) * d_model**2, pairs=2 * q_len * k_len * d_model)


def encoder_layer_cost(seq_len: int, d_model: int, d_ff: int) -> Cost:
    """Return the multiply-adds of an encoder layer on one sentence: 4nd² + 2n²d + 2nd·d_ff.

    Raises TypeError, ValueError for sizes below 1.
    """
    check_int("d_ff", d_ff)
    return attention_cost(seq_len, seq_len, d_model).plus(Cost(feed_forward=2 * seq_len * d_model * d_ff))


def decoder_layer_cost(tgt_len: int, src_len: int, d_model: int, d_ff: int) -> Cost:
    """Return the multiply-adds of a decoder layer on one sentence, all target positions at once.

    Raises TypeError, ValueError for sizes below 1.
    """
    own = encoder_layer_cost(tgt_len, d_model, d_ff)
    return own.plus(attention_cost(tgt_len, src_len, d_model))


def transformer_cost(config: TransformerConfig, src_len: int, tgt_len: int) -> Cost:
    """Return the multiply-adds of one forward pass of `tl.Transformer` on one pair; positions of any kind take none.

    Raises TypeError, ValueError for lengths below 1, and for another kind of configuration.
    """
    if not isinstance(config, TransformerConfig):
        raise TypeError(f"config must be a TransformerConfig, got {type(config).__name__}")
    encoder = encoder_layer_cost(src_len, config.d_model, config.d_ff).times(config.n_layers)
    decoder = decoder_layer_cost(tgt_len, src_len, config.d_model, config.d_ff).times(config.n_layers)
    return encoder.plus(decoder).plus(Cost(head=tgt_len * config.d_model * config.tgt_vocab_size))


def crossover_length(d_model: int, d_ff: int) -> int:
    """Return the length n = 2·d_model + d_ff at which the pairs of an encoder layer cost as much as all the rest.

    Raises TypeError, ValueError for sizes below 1.
    """
    return 2 * check_int("d_model", d_model) + check_int("d_ff", d_ff)


def score_bytes(q_len: int, k_len: int, n_heads: int, *, batch: int = 1, itemsize: int = 4) -> int:
    """Return the bytes of one layer's scores [batch, n_heads, q_len, k_len]; itemsize is 4 for float32.

    Raises TypeError, ValueError for sizes below 1.
    """
    sizes = {"q_len": q_len, "k_len": k_len, "n_heads": n_heads, "batch": batch, "itemsize": itemsize}
    for name, value in sizes.items():
        check_int(name, value)
    return batch * n_heads * q_len * k_len * itemsize


def cache_bytes(tokens: int, d_model: int, n_layers: int, *, batch: int = 1, itemsize: int = 4) -> int:
    """Return the bytes of the keys and values of `tokens` tokens, one key and one value of d_model per layer.

    Raises TypeError, ValueError for sizes below 1.
    """
    sizes = {"tokens": tokens, "d_model": d_model, "n_layers": n_layers, "batch": batch, "itemsize": itemsize}
    for name, value in sizes.items():
        check_int(name, value)
    return 2 * n_layers * tokens * d_model * batch * itemsize
