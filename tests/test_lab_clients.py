"""Clients that ask all at once, and the real model behind exercise 22.7."""

from __future__ import annotations

import pytest

import transformer_lib as tl
from transformer_lib.course.exercises.nb22 import serve
from transformer_lib.course.lab import clients, laptop, rounds, speculation
from transformer_lib.decoding.server import Refused, Server

pytestmark = pytest.mark.fast
pytest.importorskip("tornado")


def test_clients_hear_what_is_said_and_when():
    ours = tl.load_trained()
    texts = [pair.src for pair in tl.load_corpus("context")["hard"][::131]]
    with Server(ours, capacity=3) as server:
        heard = clients.all_at_once(server.address, texts)
        with pytest.raises(Refused, match="unknown word"):
            clients.all_at_once(server.address, [texts[0], "zebra"])
    assert [one.text for one in heard] == ours.translate(texts)
    for one in heard:
        assert 0 < one.first == one.times[0] <= one.times[-1] and list(one.times) == sorted(one.times)
        assert abs(one.first + one.between * (len(one.times) - 1) - one.times[-1]) < 1e-6
        assert len(one.times) == len(ours.tgt_tokenizer.encode(one.text)) + 1


def test_the_exercise_s_batch_drives_the_real_model():
    ours = tl.load_trained()
    texts = [pair.src for pair in tl.load_corpus("context")["hard"][::53]]
    sources = [ours.src_tokenizer.encode(text) for text in texts]
    arrivals = [3 * (number // 5) for number in range(len(texts))]
    found = serve(arrivals, 3, rounds.stepping(ours.model, sources, 3), ours.model.config.eos_id)
    assert [ours.tgt_tokenizer.decode(ids) for _, ids in found] == ours.translate(texts)
    assert all(joined >= came for (joined, _), came in zip(found, arrivals, strict=True))


def test_an_answer_is_a_text_or_a_refusal_and_a_server_counts():
    ours = tl.load_trained()
    text = tl.load_corpus("context")["hard"][7].src
    with Server(ours) as server:
        assert clients.answer(server.address, text) == ours.translate([text])[0]
        assert clients.answer(server.address, "") == "400: text must have at least one word"
    heard, counted = clients.served(ours, [text] * 3, 3)
    assert [one.text for one in heard] == ours.translate([text] * 3) and counted.answered == 3
    assert counted.tokens == 3 * (len(ours.tgt_tokenizer.encode(heard[0].text)) + 1)


def test_prompts_begin_with_few_instructions():
    prompts = rounds.with_instructions(23, instructions=5, length=7)
    assert len({tuple(prompt[:7]) for prompt in prompts}) == 5 and prompts[0][:7] == prompts[5][:7]
    assert all(10 <= len(prompt) <= 27 for prompt in prompts)


def test_waits_are_listed_as_far_as_a_way_keeps_up():
    stored = laptop.load_results()
    for mix in ("mixed lengths", "held-out sentences"):
        for way, (rates, waits) in laptop.latencies(stored, mix).items():
            assert rates == sorted(rates) and len(rates) == len(waits) >= 2, (mix, way)
            steady = [row for row in stored["queue"] if (row["mix"], row["way"]) == (mix, way) and row["steady"]]
            assert {1000 * row["p95"] for row in steady} == set(waits)


def test_a_draft_that_is_always_right_is_faster_than_none_in_calls_and_means_are_of_seeds():
    ours = tl.load_trained()
    src = ours.src_tokenizer.encode_batch([tl.load_corpus("context")["hard"][7].src])
    assert (
        speculation.best_after_each(ours.model, src, [1])[0]
        == tl.greedy_decode(ours.model, src, max_new_tokens=1)[0, 1]
    )
    assert speculation.times_as_fast(ours.model, lambda gamma: lambda ids: [], 2, src) > 0
    stored = speculation.load_results()
    found = [run["splits"]["heldout"]["rows"][3]["endless"] for run in stored["runs"] if run["draft"] == "blind"]
    assert abs(speculation.means(stored, "blind", "endless")[3] - sum(found) / 3) < 1e-12
