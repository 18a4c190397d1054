"""Batches that are joined and left at any step, and the queue in front of them."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import make_model, sources
from transformer_lib.baselines import SelfOnlyTransformer
from transformer_lib.decoding import serving

pytestmark = pytest.mark.fast

LIMIT = 13


def lists(n=23, seed=0):
    """Sources of 1 to 7 tokens."""
    ids = sources(n, 7, seed=seed)
    return [ids[i, : 1 + i % 7].tolist() for i in range(n)]


CONFIGS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "learned": {"position": "learned", "dropout": 0.5},
    "none": {"position": "none"},
    "rotary": {"position": "rotary"},
    "relative": {"position": "relative", "norm_first": True},
}


@functools.cache
def case(name):
    """Return a model, sources, and what greedy decoding says to each of them by itself."""
    model, src = make_model(seed=2, scale=2.5, dtype=torch.float64, **CONFIGS[name]), lists()
    model.output_head.weight.data[model.config.eos_id] *= 2  # else hardly any sentence would end
    wanted = [tl.greedy_decode(model, torch.tensor([ids]), max_new_tokens=LIMIT)[0].tolist() for ids in src]
    return model.train(), src, wanted


@pytest.mark.parametrize("joining", [True, False])
@pytest.mark.parametrize("capacity", [1, 3, 29])
@pytest.mark.parametrize("name", CONFIGS)
def test_everybody_gets_what_greedy_decoding_says(name, capacity, joining):
    model, src, wanted = case(name)
    lengths = [len(ids) - 1 for ids in wanted]
    assert min(lengths) == 1 and max(lengths) == LIMIT
    found, counts = serving.serve(model, src, capacity=capacity, joining=joining, max_new_tokens=LIMIT)
    assert found == wanted
    assert counts.tokens == sum(lengths)
    assert counts.steps == serving.count_steps(lengths, capacity, joining=joining)
    assert counts.rows == capacity * counts.steps and counts.used == counts.tokens / counts.rows
    assert model.training


def test_the_trained_translator_with_sentences_that_come_while_others_are_under_way():
    ours = tl.load_trained()
    texts = [pair.src for pair in tl.load_corpus("context")["hard"][::29]]
    batch, said, tickets, waiting = serving.JoiningBatch(ours.model, 7), {}, {}, list(texts)
    while waiting or len(batch):
        for _ in range(min(2, batch.free, len(waiting))):  # at most two come at a time
            text = waiting.pop()
            (ticket,) = batch.join(ours.src_tokenizer.encode_batch([text]))
            tickets[ticket] = text
        assert batch.free == 7 - len(batch)
        said |= {tickets[ticket]: ours.tgt_tokenizer.decode(ids) for ticket, ids in batch.step().items()}
    assert [said[text] for text in texts] == ours.translate(texts)
    assert len(texts) == 32


def test_a_step_tells_what_it_said_and_who_leaves_early_makes_room():
    model, src, wanted = case("rotary")
    batch, heard = serving.JoiningBatch(model, 3, max_new_tokens=LIMIT), {0: [], 1: [], 2: []}
    long = [i for i, ids in enumerate(wanted) if len(ids) == LIMIT + 1][:3]
    tickets = [batch.join(torch.tensor([src[i]]))[0] for i in long]
    assert tickets == [0, 1, 2] and batch.newest == {}
    for step in range(LIMIT):
        if step == 2:
            batch.leave(0)
            assert batch.free == 1 and sorted(batch.tickets) == [1, 2]
        ended = batch.step()
        for ticket, token in batch.newest.items():
            heard[ticket].append(token)
    assert sorted(ended) == [1, 2] and len(batch) == 0
    assert [len(heard[ticket]) for ticket in range(3)] == [2, LIMIT, LIMIT]
    assert all(wanted[i][1 : 1 + len(heard[ticket])] == heard[ticket] for ticket, i in enumerate(long))
    with pytest.raises(ValueError, match=r"number must be of a sentence in the batch, \[\], got 1"):
        batch.leave(1)


def by_hand(lengths, capacity):
    """Steps of a batch that is joined: every slot counted down, one step at a time."""
    waiting, inside, steps = list(lengths), [], 0
    while waiting or inside:
        while waiting and len(inside) < capacity:
            inside.append(waiting.pop(0))
        inside = [left - 1 for left in inside if left > 1]
        steps += 1
    return steps


@pytest.mark.parametrize("capacity", [1, 2, 5, 31])
def test_steps_are_counted_as_by_hand(capacity):
    lengths = np.random.default_rng(capacity).integers(1, 19, 29).tolist()
    assert serving.count_steps(lengths, capacity) == by_hand(lengths, capacity)
    parts = [lengths[i : i + capacity] for i in range(0, 29, capacity)]
    assert serving.count_steps(lengths, capacity, joining=False) == sum(map(max, parts))


def test_costs_lie_on_lines_between_those_measured_and_grow_in_proportion_beyond():
    costs = serving.Costs.measured(read={1: 2.0, 5: 4.0}, step={2: 1.0, 4: 5.0, 8: 6.0})
    assert [costs.read(n) for n in (1, 2, 3, 5, 10)] == [2.0, 2.5, 3.0, 4.0, 8.0]
    assert [costs.step(n) for n in (1, 2, 3, 6, 8, 12)] == [1.0, 1.0, 3.0, 5.5, 6.0, 9.0]


def test_a_queue_worked_out_by_hand():
    costs = serving.Costs(read=lambda n: 0.5, step=lambda n: 1.0 + 0.25 * (n - 1))
    arrivals, lengths = [0.0, 0.1, 1.7], [3, 1, 2]
    # One at a time: 0 to 3.5, 3.5 to 5, 5 to 7.5.
    alone = serving.simulate(arrivals, lengths, costs, capacity=1)
    np.testing.assert_allclose(alone, [3.5, 4.9, 5.8])
    # Static: the first alone, as nobody else is there at 0; then both others: read until 4, a step of two until 5.25
    # ends one, a step of one until 6.25 the other.
    static = serving.simulate(arrivals, lengths, costs, capacity=2, joining=False)
    np.testing.assert_allclose(static, [3.5, 5.15, 4.55])
    # Joined: a step alone until 1.5; the second is read until 2 and ends with a step of two at 3.25; the third is read
    # until 3.75, and a step of two until 5 ends the first; one more step.
    joined = serving.simulate(arrivals, lengths, costs, capacity=2)
    np.testing.assert_allclose(joined, [5.0, 3.15, 4.3])


def test_one_server_waits_as_theory_says():
    """Requests of one length, one at a time: the mean wait of Pollaczek and Khinchine, ρ / (2(1 − ρ)) of a service."""
    service, load, n = 0.7, 0.6, 40_000
    costs = serving.Costs(read=lambda n: 0.2, step=lambda n: 0.1)
    arrivals = serving.poisson_arrivals(load / service, n, seed=0)
    found = serving.simulate(arrivals, [5] * n, costs, capacity=1)
    expected = service * (1 + load / (2 * (1 - load)))
    assert abs(found.mean() / expected - 1) < 0.03


def test_arrivals_are_those_of_a_poisson_process():
    arrivals = serving.poisson_arrivals(5.0, 20_011, seed=3)
    gaps = np.diff(arrivals, prepend=0.0)
    assert (gaps > 0).all()
    assert abs(gaps.mean() * 5 - 1) < 0.03 and abs(gaps.std() * 5 - 1) < 0.03
    assert (serving.poisson_arrivals(5.0, 7, seed=3) == arrivals[:7]).all()
    assert (serving.poisson_arrivals(5.0, 7, seed=4) != arrivals[:7]).all()


def test_errors_say_what_is_wrong():
    model = make_model()
    with pytest.raises(ValueError, match="but the model is a SelfOnlyTransformer, not a Transformer"):
        serving.JoiningBatch(SelfOnlyTransformer(model.config), 2)
    with pytest.raises(ValueError, match="capacity must be at least 1"):
        serving.JoiningBatch(model, 0)
    with pytest.raises(ValueError, match="max_new_tokens must not exceed max_len = 37, got 41"):
        serving.JoiningBatch(model, 2, max_new_tokens=41)
    batch = serving.JoiningBatch(model, 2, max_new_tokens=3)
    with pytest.raises(ValueError, match="the batch must hold a sentence before a step"):
        batch.step()
    assert batch.join(torch.tensor([[5, 7, 0]])) == [0]
    with pytest.raises(ValueError, match="src must have no more sentences than slots are free, 1, got 2"):
        batch.join(torch.tensor([[5], [7]]))
    with pytest.raises(TypeError, match="joining must be True or False"):
        serving.serve(model, [[5]], capacity=1, joining=1)
    with pytest.raises(ValueError, match="lengths must be at least 1, got 0"):
        serving.count_steps([3, 0], 2)
    costs = serving.Costs(read=lambda n: 0.0, step=lambda n: 1.0)
    for arrivals in ([0.0, 2.0, 1.0], [0.0, 1.0]):
        with pytest.raises(ValueError, match="arrivals must ascend and be as many as lengths, 3"):
            serving.simulate(arrivals, [1, 1, 1], costs, capacity=1)
    with pytest.raises(ValueError, match="rate must be positive"):
        serving.poisson_arrivals(0.0, 3, seed=0)
    assert math.isclose(serving.Counts(2, 6, 3).used, 0.5)


def test_sources_lengths_and_times_may_come_from_what_can_be_read_once():
    model, src, wanted = case("none")
    found, _ = serving.serve(model, map(iter, src), capacity=3, max_new_tokens=LIMIT)
    assert found == wanted
    for joining in (True, False):
        assert serving.count_steps(iter([3, 1, 2]), 2, joining=joining) == serving.count_steps(
            [3, 1, 2], 2, joining=joining
        )
    costs = serving.Costs(read=lambda n: 0.5, step=lambda n: 1.0)
    once = serving.simulate(iter([0.0, 0.1]), iter([3, 1]), costs, capacity=1)
    np.testing.assert_array_equal(once, serving.simulate([0.0, 0.1], np.array([3, 1]), costs, capacity=1))


def test_sources_and_queues_that_would_never_end_are_refused():
    with pytest.raises(ValueError, match=r"sources must have an id in every sentence, got \[\] in sentence 1"):
        serving.serve(make_model(), [[5], []], capacity=2, max_new_tokens=3)
    costs = serving.Costs(read=lambda n: 0.0, step=lambda n: 1.0)
    with pytest.raises(ValueError, match="costs must have been measured for some number of sentences, got none"):
        serving.Costs.measured(read={}, step={1: 1.0})
    with pytest.raises(ValueError, match="lengths must be at least 1, got 0"):
        serving.simulate([0.0], [0], costs, capacity=1)
    with pytest.raises(ValueError, match="arrivals must ascend and be as many as lengths, 1"):
        serving.simulate([math.nan], [1], costs, capacity=1)
