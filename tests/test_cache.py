from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from factories import POSITIONS, make_config, make_model, sources, targets
from transformer_lib.model.cache import DecoderCache, KeyValueCache

pytestmark = pytest.mark.fast

BATCH, N_HEADS, D_K, D_V = 3, 2, 5, 7


def draw(length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(BATCH, N_HEADS, length, width, generator=generator) for width in (D_K, D_V)]


def test_appending_gives_everything_so_far():
    cache = KeyValueCache()
    keys, values = draw(83)
    start = 0
    for step in (1, 1, 2, 11, 1, 1, 1, 29, 36):  # past 16, 32 and 64, where the buffers grow
        end = start + step
        all_keys, all_values = cache.append(keys[:, :, start:end], values[:, :, start:end])
        assert torch.equal(all_keys, keys[:, :, :end]) and torch.equal(all_values, values[:, :, :end])
        start = end
    assert cache.length == 83
    assert all(torch.equal(kept, all_of_it) for kept, all_of_it in zip(cache.read(), (keys, values), strict=True))


def test_the_type_is_kept():
    cache = KeyValueCache()
    keys, values = (x.double() for x in draw(3))
    assert [x.dtype for x in cache.append(keys, values)] == [torch.float64] * 2


@pytest.mark.parametrize("rows", [[2, 0], [1, 1, 0, 2], []])
def test_selected_rows_go_on_by_themselves(rows):
    cache = KeyValueCache()
    keys, values = draw(4)
    cache.append(keys[:, :, :3], values[:, :, :3])
    cache.select(torch.tensor(rows, dtype=torch.long))
    cache.append(keys[rows, :, 3:], values[rows, :, 3:])
    assert all(torch.equal(kept, x[rows]) for kept, x in zip(cache.read(), (keys, values), strict=True))


def test_another_batch_size_is_refused():
    """One row would otherwise be written to all of them by broadcasting."""
    cache = KeyValueCache()
    keys, values = draw(4)
    cache.append(keys, values)
    with pytest.raises(ValueError, match=r"keys must be as in the cache, .*, got shape \(1, 2, 4, 5\)"):
        cache.append(keys[:1], values[:1])


def test_reading_an_empty_cache_is_refused():
    with pytest.raises(ValueError, match="the cache must hold something before it is read"):
        KeyValueCache().read()


def test_an_empty_cache_selects_nothing():
    cache = DecoderCache(2)
    cache.select(torch.tensor([0]))
    assert cache.length == 0 and cache.ids is None and len(cache.layers) == 2


@pytest.mark.parametrize("kind", [tl.Transformer, tl.DecoderOnlyTranslator])
def test_the_cache_of_a_model_of_other_depth_is_refused_before_it_is_touched(kind):
    shallow, deep = (kind(make_config(n_layers=n_layers, position="rotary")) for n_layers in (2, 3))
    src, cache = sources(), deep.new_cache()
    with pytest.raises(ValueError, match="cache must have 2 layers, as this model, got 3"):
        shallow.decode(targets(), shallow.encode(src), src, cache=cache)
    assert cache.length == 0


def test_a_model_that_lost_a_layer_decodes_with_a_cache_of_its_depth():
    model, src = make_model(n_layers=3), sources()
    model.decoder.layers = model.decoder.layers[:2]
    both = (tl.greedy_decode(model, src, max_new_tokens=5, use_cache=cached) for cached in (True, False))
    assert torch.equal(*both) and len(model.new_cache().layers) == 2


def test_ids_are_appended_and_selected():
    cache = DecoderCache(1)
    cache.append_ids(torch.tensor([[1], [1]]))
    assert cache.append_ids(torch.tensor([[5, 6], [7, 8]])).tolist() == [[1, 5, 6], [1, 7, 8]]
    cache.select(torch.tensor([1]))
    assert cache.length == 3 and cache.ids.tolist() == [[1, 7, 8]]


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("steps", [[1] * 23, [2, 1, 5, 15]])
def test_logits_with_a_cache_equal_those_without(position, steps):
    model = make_model(position=position, dtype=torch.float64)
    src, tgt_in = sources(), targets(length=23, padded=True)
    memory, cache = model.encode(src), model.new_cache()
    pieces = [model.decode(piece, memory, src, cache=cache) for piece in tgt_in.split(steps, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(src, tgt_in), rtol=0, atol=1e-10)
    assert cache.length == 23


@pytest.mark.parametrize("position", POSITIONS)
def test_rows_may_be_reordered_between_steps(position):
    model = make_model(position=position, dtype=torch.float64)
    src, tgt_in, rows = sources(), targets(), torch.tensor([4, 1, 1, 0])
    memory, cache = model.encode(src), model.new_cache()
    model.decode(tgt_in[:, :6], memory, src, cache=cache)
    cache.select(rows)
    later = model.decode(tgt_in[rows, 6:], memory[rows], src[rows], cache=cache)
    torch.testing.assert_close(later, model(src, tgt_in)[rows, 6:], rtol=0, atol=1e-10)


def test_what_would_be_broadcast_into_the_cache_is_refused():
    keys, values = draw(4)
    cache = KeyValueCache()
    with pytest.raises(ValueError, match=r"keys and values must be \[batch, .*\], alike but for the width, got shapes"):
        cache.append(keys, values[:, :, :1])
    cache.append(keys, values)
    message = r"must be as in the cache, \[3, 2, tokens, {}\] and torch.float32, got shape {} and {}"
    with pytest.raises(ValueError, match="keys " + message.format(5, r"\(3, 1, 4, 5\)", "torch.float32")):
        cache.append(keys[:, :1], values[:, :1])
    with pytest.raises(ValueError, match="keys " + message.format(5, r"\(3, 2, 4, 5\)", "torch.bfloat16")):
        cache.append(keys.bfloat16(), values.bfloat16())
    with pytest.raises(ValueError, match="values " + message.format(7, r"\(3, 2, 4, 3\)", "torch.float32")):
        cache.append(keys, values[..., :3])
    assert cache.length == 4


def test_a_refused_call_leaves_the_cache_as_it_was():
    model, src, tgt = make_model(), sources(), targets()
    memory, cache = model.encode(src), model.new_cache()
    wanted = model.decode(tgt[:, :2], memory, src)
    with pytest.raises(ValueError, match="memory must have tgt_in's batch size 5, got 3"):
        model.decode(tgt[:, :1], memory[:3], src[:3], cache=cache)
    model.decode(tgt[:, :1], memory, src, cache=cache)
    with pytest.raises(ValueError, match="ids must have the cache's batch size 5, got 3"):
        model.decode(tgt[:3, 1:2], memory[:3], src[:3], cache=cache)
    torch.testing.assert_close(
        model.decode(tgt[:, 1:2], memory, src, cache=cache)[:, 0], wanted[:, 1], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("position", POSITIONS)
def test_what_was_cropped_is_forgotten(position):
    model = make_model(position=position, dtype=torch.float64)
    src, tgt = sources(), targets(length=13)
    memory, cache = model.encode(src), model.new_cache()
    model.decode(targets(length=11, seed=7), memory, src, cache=cache)
    cache.crop(0)
    model.decode(torch.cat([tgt[:, :5], targets(length=4, seed=8)], dim=1), memory, src, cache=cache)
    cache.crop(5)
    assert cache.length == 5 and cache.ids.tolist() == tgt[:, :5].tolist()
    later = model.decode(tgt[:, 5:], memory, src, cache=cache)
    torch.testing.assert_close(later, model(src, tgt)[:, 5:], rtol=0, atol=1e-10)


def test_only_what_is_there_can_be_kept():
    cache = DecoderCache(1)
    cache.crop(0)
    cache.append_ids(torch.tensor([[1, 4]]))
    with pytest.raises(ValueError, match="length must be at most the 2 tokens of the cache, got 3"):
        cache.crop(3)
    with pytest.raises(ValueError, match="length must be at least 0, got -1"):
        KeyValueCache().crop(-1)
