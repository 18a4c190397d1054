"""How fast tokens are said: every way has a rate, whatever it is on this machine."""

from __future__ import annotations

from small_panels import letters, talker
from transformer_lib.course.lab import real_speed


def test_every_way_has_a_rate_and_memory_a_speed():
    rates = real_speed.tokens_a_second(talker(), letters().encode("Why?"), n=5)
    assert list(rates) == ["no cache", "cache", "fast path"] and min(rates.values()) > 0
    assert real_speed.bytes_a_second(numbers=53, rounds=2) > 0
