"""The cost formulas equal what PyTorch counts, and the bytes equal those of real tensors."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import transformer_lib as tl
from transformer_lib import costs

pytestmark = pytest.mark.fast


def counted(function):
    """Multiply-adds of the matrix products in a call, by PyTorch's counter (two operations each)."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        function()
    return counter.get_total_flops() // 2


@pytest.mark.parametrize(("q_len", "k_len", "n_heads"), [(5, 7, 1), (11, 3, 2), (13, 13, 13)])
def test_attention(q_len, k_len, n_heads):
    attention = tl.MultiHeadAttention(26, n_heads)
    query, key = torch.randn(1, q_len, 26), torch.randn(1, k_len, 26)
    expected = counted(lambda: attention(query, key, key, return_weights=True))
    assert costs.attention_cost(q_len, k_len, 26).total == expected


@pytest.mark.parametrize("seq_len", [3, 17])
def test_encoder_layer(seq_len):
    layer = tl.EncoderLayer(10, 2, 23)
    with tl.record_attention(layer):  # the readable path, whose products the counter sees
        expected = counted(lambda: layer(torch.randn(1, seq_len, 10)))
    assert costs.encoder_layer_cost(seq_len, 10, 23).total == expected


@pytest.mark.parametrize(("tgt_len", "src_len"), [(5, 11), (7, 3)])
def test_decoder_layer(tgt_len, src_len):
    layer = tl.DecoderLayer(14, 7, 19)
    with tl.record_attention(layer):
        expected = counted(lambda: layer(torch.randn(1, tgt_len, 14), torch.randn(1, src_len, 14)))
    assert costs.decoder_layer_cost(tgt_len, src_len, 14, 19).total == expected


def test_the_whole_model():
    config = tl.TransformerConfig(src_vocab_size=31, tgt_vocab_size=29, d_model=22, n_heads=11, n_layers=3, d_ff=37)
    model = tl.Transformer(config).eval()
    with tl.record_attention(model):
        expected = counted(lambda: model(torch.randint(3, 29, (1, 7)), torch.randint(3, 29, (1, 5))))
    cost = costs.transformer_cost(config, 7, 5)
    assert cost.total == expected
    assert cost.head == 5 * 22 * 29
    assert cost.total == cost.projections + cost.pairs + cost.feed_forward + cost.head


@pytest.mark.parametrize(("d_model", "d_ff"), [(2, 3), (512, 2048), (7, 11)])
def test_the_crossover_is_where_pairs_equal_the_rest(d_model, d_ff):
    n = costs.crossover_length(d_model, d_ff)
    at, after = (costs.encoder_layer_cost(length, d_model, d_ff) for length in (n, n + 1))
    assert at.pairs == at.linear
    assert after.pairs > after.linear


def test_score_bytes_are_those_of_the_weights():
    attention = tl.MultiHeadAttention(15, 5).double()
    x, memory = torch.randn(3, 7, 15).double(), torch.randn(3, 11, 15).double()
    weights = attention(x, memory, memory, return_weights=True)[1]
    assert costs.score_bytes(7, 11, 5, batch=3, itemsize=8) == weights.nbytes
    assert costs.score_bytes(14, 22, 5) == 4 * costs.score_bytes(7, 11, 5)


def test_cache_bytes_are_those_of_the_cache():
    config = tl.TransformerConfig(src_vocab_size=13, tgt_vocab_size=13, d_model=14, n_heads=7, n_layers=3, d_ff=5)
    model = tl.Transformer(config).eval()
    src, cache = torch.randint(3, 13, (2, 5)), model.new_cache()
    model.decode(torch.randint(3, 13, (2, 11)), model.encode(src), src, cache=cache)
    own = sum(part.nbytes for layer in cache.layers for part in layer.self_attention.read())
    assert costs.cache_bytes(11, 14, 3, batch=2) == own


def test_a_configuration_of_another_model_is_refused():
    config = tl.modern.Config(vocab_size=13, d_model=14, n_heads=7, n_layers=3, d_ff=5)
    with pytest.raises(TypeError, match="config must be a TransformerConfig, got Config"):
        costs.transformer_cost(config, 3, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: costs.attention_cost(0, 3, 5), "q_len must be at least 1, got 0"),
        (lambda: costs.encoder_layer_cost(3, 5, 0), "d_ff must be at least 1, got 0"),
        (lambda: costs.crossover_length(0, 5), "d_model must be at least 1, got 0"),
        (lambda: costs.score_bytes(3, 5, 2, batch=0), "batch must be at least 1, got 0"),
        (lambda: costs.cache_bytes(3, 5, -1), "n_layers must be at least 1, got -1"),
    ],
)
def test_sizes_below_one_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
