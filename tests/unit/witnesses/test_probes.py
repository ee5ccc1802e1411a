"""Our own requests, and what is seen of their answers: a server of this test says when and how they come."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fencepost.clock import eventually
from fencepost.evidence.brokers.kafka_protocol import answers_in, probe
from fencepost.witnesses.probes import Probe

ANSWER = (6).to_bytes(4, "big") + b"answer"
LONG_S = 30


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(LONG_S)
        yield listening


def taken(link: socket.socket, size: int) -> bytes:
    link.settimeout(LONG_S)
    found = b""
    while len(found) < size:
        found += link.recv(size - len(found))
    return found


def test_a_request_is_complete_when_its_whole_answer_has_come(server: socket.socket) -> None:
    one = Probe(server.getsockname(), probe(1000))
    with server.accept()[0] as link:
        assert taken(link, len(probe(1000))) == probe(1000)
        assert not one.answered()
        link.sendall(ANSWER[:5])
        eventually(one.answered, LONG_S, "a part of the answer")
        link.sendall(ANSWER[5:-1])
        eventually(lambda: not one.complete() and one.received == len(ANSWER) - 1, LONG_S, "all but the last byte")
        silent_s = one.silent_s
        link.sendall(ANSWER[-1:])
        eventually(one.complete, LONG_S, "the last byte")
    assert 0 < silent_s <= one.silent_s < one.took_s <= one.age_s
    eventually(lambda: one.complete() and one.broken == "closed by the proxy", LONG_S, "its end")
    one.close()


def test_more_is_sent_than_fits_at_once(server: socket.socket) -> None:
    one = Probe(server.getsockname(), probe(32 << 20))
    with server.accept()[0] as link:
        link.settimeout(0.2)
        wanted = len(probe(32 << 20))
        while wanted:
            one.complete()
            wanted -= len(link.recv(1 << 20))
    one.close()


def test_where_nobody_listens_it_is_refused(server: socket.socket) -> None:
    address = server.getsockname()
    server.close()
    one = Probe(address)
    assert one.refused
    assert "refused" in one.broken
    assert not one.complete()


def test_a_request_that_says_nothing_is_as_long_as_it_tells() -> None:
    for padding in (0, 1, 70_000):
        assert int.from_bytes(probe(padding)[:4], "big") == len(probe(padding)) - 4
    assert answers_in(probe() + probe(5) + probe()[:-1]) == 2
    assert answers_in(b"\0\0") == 0
