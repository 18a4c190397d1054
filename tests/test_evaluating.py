from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import torch

import transformer_lib as tl
from factories import make_model

pytestmark = pytest.mark.fast


def modes(model):
    return [part.training for part in model.modules()]


def mixed(model):
    """Give the model's parts different modes, as when some of it is frozen."""
    model.train()
    model.encoder.eval()
    model.decoder.layers[1].train()
    return model


def test_every_part_gets_its_own_mode_back():
    model = mixed(make_model(dropout=0.3))
    before = modes(model)
    assert len(set(before)) == 2
    with tl.evaluating(model):
        assert not any(modes(model))
    assert modes(model) == before


def test_so_it_does_after_an_exception():
    model = mixed(make_model())
    before = modes(model)
    with pytest.raises(KeyError), tl.evaluating(model):
        raise KeyError
    assert modes(model) == before


def test_blocks_that_overlap_end_in_the_mode_before_the_first():
    """As those of threads do: the first to come may be the first to go."""
    model = mixed(make_model())
    before = modes(model)
    first, second, third = ExitStack(), ExitStack(), ExitStack()
    first.enter_context(tl.evaluating(model))
    second.enter_context(tl.evaluating(model))
    first.close()
    assert not any(modes(model))  # the second still evaluates
    third.enter_context(tl.evaluating(model))
    second.close()
    assert not any(modes(model))
    third.close()
    assert modes(model) == before


def test_threads_that_share_a_model_leave_it_as_it_was():
    model = mixed(make_model(dropout=0.3))
    before, count = modes(model), 8
    entered, leaving = threading.Barrier(count), [threading.Event() for _ in range(count)]
    seen = []

    def block(number):
        with tl.evaluating(model):
            entered.wait()  # all of them are inside, however they came in
            leaving[number].wait()
            seen.append(any(modes(model)))
        if number + 1 < count:
            leaving[number + 1].set()  # one after the other, whoever came first

    leaving[0].set()
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(block, range(count)))
    assert seen == [False] * count and modes(model) == before


def test_threads_that_translate_with_a_model_in_training_mode():
    model, src = make_model(dropout=0.5), torch.tensor([[3, 5, 4, 7]])
    wanted = tl.greedy_decode(model, src, max_new_tokens=11)
    model.train()
    start = threading.Barrier(8)

    def translate(_):
        start.wait()
        return [tl.greedy_decode(model, src, max_new_tokens=11) for _ in range(5)]

    with ThreadPoolExecutor(8) as threads:
        found = [ids for several in threads.map(translate, range(8)) for ids in several]
    assert all(torch.equal(ids, wanted) for ids in found) and all(modes(model))


def test_a_model_that_is_served_does_not_go_back_to_training_under_way():
    """One thread has a block around a step of another; it leaves first."""
    model = make_model(dropout=0.5).train()
    batch, outer, seen = tl.serving.JoiningBatch(model, 1, max_new_tokens=5), ExitStack(), []
    outer.enter_context(tl.evaluating(model))
    batch.join(torch.tensor([[3, 5]]))

    def leave(module, args):
        outer.close()
        seen.append(module.training)

    with model.output_head.register_forward_pre_hook(leave):
        batch.step()
    assert seen == [False] and model.training


def test_models_that_share_parts_keep_each_other_in_evaluation_mode():
    one, other = make_model(dropout=0.3).train(), make_model(1, dropout=0.3).train()
    other.encoder = one.encoder
    first, second = ExitStack(), ExitStack()
    first.enter_context(tl.evaluating(one))
    second.enter_context(tl.evaluating(other))
    first.close()
    assert one.decoder.training and not any(modes(one.encoder)) and not any(modes(other))
    second.close()
    assert all(modes(one)) and all(modes(other))


def test_a_mode_chosen_inside_lasts_to_the_end_of_its_block():
    model = make_model()
    with tl.evaluating(model):
        model.train()
        with tl.evaluating(model):
            assert not any(modes(model))
        assert all(modes(model))
    assert not any(modes(model))


def test_a_train_method_of_the_model_s_own_is_called():
    class Frozen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part, self.calls = torch.nn.Dropout(0.5), []

        def train(self, mode=True):
            self.calls.append(mode)
            return super().train(mode)

    model = Frozen()
    with tl.evaluating(model):
        pass
    assert model.calls == [False] and model.training and model.part.training


def test_an_error_on_the_way_in_restores_the_modes_too():
    class Broken(torch.nn.Module):
        def train(self, mode=True):
            super().train(mode)
            raise KeyError(mode)

    model = Broken()
    for _ in range(2):
        with pytest.raises(KeyError), tl.evaluating(model):
            pass
        assert model.training


def test_no_model_is_kept_alive():
    model = make_model()
    with tl.evaluating(model):
        pass
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, got str"), tl.evaluating("a model"):
        pass
