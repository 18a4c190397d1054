"""A translator behind the loopback address: words come one by one, bad input is refused, and nothing is left behind."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import threading
import time

import pytest
import torch

import transformer_lib as tl
from factories import make_config
from transformer_lib.decoding.server import LONGEST_BODY, Refused, Server, ask

pytestmark = pytest.mark.fast
pytest.importorskip("tornado")

ENGLISH = tl.data.tokenizers.WordTokenizer([f"e{i}" for i in range(13)])
GERMAN = tl.data.tokenizers.WordTokenizer([f"g{i}" for i in range(19)])
LIMIT = 11


@pytest.fixture(autouse=True)
def nothing_is_left(caplog):
    before = set(threading.enumerate())
    with caplog.at_level(logging.DEBUG):
        yield
    assert set(threading.enumerate()) == before
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def translator(max_len=23, seed=5):
    """An untrained translator that never ends a sentence by itself."""
    torch.manual_seed(seed)
    sizes = {"src_vocab_size": len(ENGLISH), "tgt_vocab_size": len(GERMAN), "max_len": max_len}
    model = tl.Transformer(make_config(**sizes)).eval()
    model.output_head.weight.data[:4] = 0  # of 19 other words, one is likelier than the special tokens
    return tl.Translator(model, ENGLISH, GERMAN)


TEXTS = [" ".join(f"e{(i * k) % 13}" for k in range(1, 2 + i % 5)) for i in range(1, 18)]


def post(server, body, method="POST", path="/translate"):
    """Send one request as it is, and return the status and what was sent back."""
    connection = http.client.HTTPConnection(*server.address, timeout=30)
    connection.request(method, path, body)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    return answer.status, json.loads(said)


@pytest.mark.parametrize("joining", [True, False])
@pytest.mark.parametrize("capacity", [1, 3, 19])
def test_many_at_once_get_what_they_would_get_alone(capacity, joining):
    ours, heard = translator(), {}
    wanted = [ours.translate([text], max_new_tokens=LIMIT)[0] for text in TEXTS]
    with Server(ours, capacity=capacity, joining=joining, max_new_tokens=LIMIT) as server:

        def listen(i):
            heard[i] = list(ask(server.address, TEXTS[i]))

        clients = [threading.Thread(target=listen, args=(i,)) for i in range(len(TEXTS))]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert [heard[i][-1]["text"] for i in range(len(TEXTS))] == wanted
    for i, lines in heard.items():
        *tokens, last = lines
        text = " ".join(line["token"] for line in tokens)
        assert text[:1].upper() + text[1:] == wanted[i]
        assert last["ended"] is False and len(tokens) == LIMIT
    assert server.served.answered == len(TEXTS) and server.served.cancelled == server.served.refused == 0
    assert server.served.steps <= server.served.tokens <= server.served.steps * capacity


def test_the_trained_translator_answers_as_it_does_without_a_server():
    ours = tl.load_trained()
    texts = [pair.src for pair in tl.load_corpus("context")["hard"][::307]]
    with Server(ours) as server:
        said = [list(ask(server.address, text))[-1] for text in texts]
    assert said == [{"text": text, "ended": True} for text in ours.translate(texts)]


def test_words_come_before_the_answer_is_whole():
    with Server(translator(), max_new_tokens=LIMIT) as server:
        gate, step = threading.Semaphore(0), server.batch.step

        def slowly():
            gate.acquire(timeout=30)
            return step()

        server.batch.step = slowly
        lines = ask(server.address, "e3 e5")
        gate.release(2)
        assert [set(next(lines)) for _ in range(2)] == [{"token"}, {"token"}]
        assert server.served.tokens == 2 and server.served.answered == 0
        gate.release(LIMIT)
        assert "text" in list(lines)[-1]


def test_a_client_that_leaves_makes_room():
    with Server(translator(max_len=4001), capacity=1, max_new_tokens=4000) as server:
        first, second = ask(server.address, "e3 e5"), ask(server.address, "e7")
        assert "token" in next(first)
        waits = threading.Thread(target=lambda: next(second))
        waits.start()
        first.close()
        waits.join(30)
        assert server.served.cancelled == 1 and server.served.tokens < 4000
        second.close()
        until(lambda: server.served.cancelled == 2)
        assert len(server.batch) == 0 and server.served.answered == 0


def test_a_client_that_leaves_while_it_waits_is_never_read():
    with Server(translator(max_len=4001), capacity=1, max_new_tokens=4000) as server:
        first = ask(server.address, "e3 e5")
        next(first)
        raw = socket.create_connection(server.address)
        body = b'{"text": "e7"}'
        raw.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        until(lambda: len(server._line) == 1)
        raw.close()
        until(lambda: server.served.cancelled == 1)
        assert len(server._line) == 0 and server.batch.joined == 1
        first.close()
        until(lambda: server.served.cancelled == 2)


def until(happened, seconds=30.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.002)


def test_bad_input_is_refused_with_a_status_and_a_reason():
    with Server(translator(), max_new_tokens=LIMIT) as server:
        for body, reason in (
            (b"", "must be"),
            (b"no JSON", "no JSON"),
            (b"\xff\xfe", "must be"),
            (b"[1, 2]", "got None"),
            (b'{"words": "e1"}', "got None"),
            (b'{"text": 7}', "with a string, got 7"),
            (b'{"text": ""}', "at least one word"),
            (b'{"text": "e1 zebra"}', "unknown word 'zebra'"),
        ):
            status, said = post(server, body)
            assert status == 400 and reason in said["error"], (body, said)
        status, said = post(server, json.dumps({"text": "e1 " * 24}))
        assert status == 413 and said["error"] == "text must have at most 23 tokens, got 24"
        assert post(server, None, method="GET")[0] == 405
        assert post(server, b"{}", path="/")[0] == 404
        assert server.served.refused == 11 and server.served.steps == 0
        with pytest.raises(Refused, match="400: text has the unknown word 'zebra'") as refused:
            list(ask(server.address, "zebra"))
        assert refused.value.status == 400
        assert list(ask(server.address, "e1"))[-1]["text"]  # and it goes on


def test_a_body_that_is_too_long_is_not_read():
    with Server(translator(), max_new_tokens=LIMIT) as server:
        connection = http.client.HTTPConnection(*server.address, timeout=30)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            connection.request("POST", "/translate", b" " * (LONGEST_BODY + 1))
            answer = connection.getresponse()
            assert answer.status in (400, 413)
            raise http.client.HTTPException("refused, as it should be")
        connection.close()
        assert server.served.tokens == 0


def test_a_full_line_refuses():
    with Server(translator(max_len=4001), capacity=1, waiting=0, max_new_tokens=4000) as server:
        first = ask(server.address, "e3")
        next(first)
        with pytest.raises(Refused, match="503: 0 requests are waiting already"):
            next(ask(server.address, "e5"))
        first.close()


def test_the_end_cuts_off_what_is_under_way():
    with Server(translator(max_len=4001), capacity=1, max_new_tokens=4000) as server:
        inside, waiting = ask(server.address, "e3"), ask(server.address, "e5")
        next(inside)
        failed = []

        def wait():
            try:
                list(waiting)
            except (ConnectionError, http.client.HTTPException) as error:
                failed.append(error)

        client = threading.Thread(target=wait)
        client.start()
        until(lambda: len(server._line) == 1)
    client.join(30)
    assert len(failed) == 1
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        list(inside)
    with pytest.raises(ConnectionError):
        list(ask(server.address, "e5"))
    with pytest.raises(RuntimeError, match="can be started once"), server:
        pass


def test_a_model_that_fails_ends_the_server_and_is_told():
    with pytest.raises(ZeroDivisionError), Server(translator(), max_new_tokens=LIMIT) as server:
        server.batch.step = lambda: 1 / 0
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            list(ask(server.address, "e5"))


def test_it_listens_on_the_loopback_alone():
    with Server(translator(), max_new_tokens=5) as one, Server(translator(), max_new_tokens=5) as other:
        assert one.address[0] == other.address[0] == "127.0.0.1"
        assert one.address[1] != other.address[1] and one.address[1] > 0


def test_arguments_are_checked():
    for options, message in (
        ({"capacity": 0}, "capacity must be at least 1"),
        ({"waiting": -1}, "waiting must be at least 0"),
        ({"max_new_tokens": 24}, "max_new_tokens must not exceed max_len = 23"),
    ):
        with pytest.raises(ValueError, match=message):
            Server(translator(), **({"max_new_tokens": LIMIT} | options))
    with pytest.raises(TypeError, match="joining must be True or False"):
        Server(translator(), max_new_tokens=LIMIT, joining=1)
