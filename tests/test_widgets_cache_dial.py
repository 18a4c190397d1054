"""W30, the cache dial: its bytes are those of the library's model, and its words say them."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from small_panels import panel
from transformer_lib.course.figures.svg import cache_dial as drawing
from transformer_lib.course.figures.widgets.cache_dial_panel import CARD, HEADS, NAMED, WINDOWS, Shape, bytes_of

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("shape", [Shape(3, 2, 6), Shape(2, 4, 2), Shape(5, 1, 4, 7), Shape(1, 2, 2, 23)])
def test_the_bytes_are_those_that_a_model_keeps(shape):
    model = tl.modern.LanguageModel(tl.modern.Config(vocab_size=11, d_model=14, n_heads=4, d_ff=5, **shape._asdict()))
    cache = model.new_cache()
    with torch.no_grad():
        model(torch.zeros(1, 13, dtype=torch.long), cache)
    assert bytes_of(shape, 13, 4) == cache.bytes == model.config.cache_bytes(13)


def test_the_named_models_in_numbers_that_can_be_worked_out():
    assert bytes_of(NAMED["Llama 3 8B"], 8192, 2) == 2**30  # 2 · 32 · 8 · 128 · 2^13 · 2
    assert bytes_of(NAMED["Llama 2 7B"], 8192, 2) == 2**32
    assert bytes_of(NAMED["Mistral 7B v0.1"], 8192, 2) == bytes_of(NAMED["Mistral 7B v0.1"], 131072, 2) == 2**29
    assert bytes_of(NAMED["Mistral 7B v0.1"], 1024, 2) == 2**27
    assert bytes_of(NAMED["Qwen3 8B"], 8192, 2) == 36 * 2**25


def test_it_says_what_it_draws():
    dial = panel("cache_dial")
    assert dial.picture.says == (
        "32 layers, 8 heads of 128, 8,192 tokens, numbers in bfloat16: 1 GiB for each conversation; "
        "24 of them in 24 GiB"
    )
    assert dial.picture.table[1][2:] == [f"{2**30:,}", "24"]
    assert [row[0] for row in dial.picture.table[1:]] == ["yours", *NAMED]
    dial.set(n_kv_heads=1, window=4096, context=16384, itemsize=1, n_layers=1)
    assert dial.picture.says == (
        "1 layer, 1 head of 128, window 4,096, 16,384 tokens, numbers in int8: 1 MiB for each conversation; "
        f"{CARD // 2**20:,} of them in 24 GiB"
    )


def test_a_window_leaves_a_rest_where_it_cuts():
    short, long = (panel("cache_dial", context=context).picture.body for context in (4096, 8192))
    assert "stroke-dasharray" not in short
    assert long.count("stroke-dasharray") == 1  # Mistral's
    assert long.count(f'fill="{drawing.OTHERS}"') == len(NAMED) and long.count(f'fill="{drawing.YOURS}"') == 1


def test_each_dial_changes_the_bytes_of_yours_alone():
    before = panel("cache_dial").picture.table
    for change in ({"n_layers": 16}, {"n_kv_heads": 4}, {"d_head": 64}, {"window": 4096}):
        now = panel("cache_dial", **change).picture.table
        assert now[1][2] == f"{2**29:,}" and now[2:] == before[2:]


def test_the_longest_words_fit():
    dial = panel("cache_dial", n_layers=128, n_kv_heads=HEADS[-1], d_head=256, window=WINDOWS[-1], context=131072)
    assert "128 layers, 64 × 256, window 16,384" in dial.picture.body and "…" not in dial.picture.body
