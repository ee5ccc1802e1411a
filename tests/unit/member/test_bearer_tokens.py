"""Tokens for clients in Python: fetched when they are needed, used as long as they are valid, and secret."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aiokafka.abc import AbstractTokenProvider as AsyncProvider
from kafka.net.sasl.oauth import AbstractTokenProvider
from token_endpoint import SECRET
from token_endpoint import TokenEndpoint as Server

from fencepost_member.adapters import bearer_tokens
from fencepost_member.adapters.bearer_tokens import RENEW_AFTER, TokenEndpoint, provider


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


class Clock:
    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


def test_a_token_is_used_until_most_of_its_life_is_over(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(bearer_tokens, "time", clock)
    endpoint = TokenEndpoint(server.url, "guest", SECRET, scope="kafka")
    first = endpoint.token()
    assert first == server.given[0]
    clock.now_s += RENEW_AFTER * server.life_s - 1
    assert endpoint.token() == first
    clock.now_s += 2
    assert endpoint.token() == server.given[1] != first


def test_without_a_life_it_is_used_once(server: Server) -> None:
    server.life_s = 0
    endpoint = TokenEndpoint(server.url, "guest", SECRET)
    assert endpoint.token() != endpoint.token()
    assert len(server.given) == 2


def test_several_threads_share_one(server: Server) -> None:
    endpoint, found = TokenEndpoint(server.url, "guest", SECRET), list[str]()
    threads = [threading.Thread(target=lambda: found.append(endpoint.token())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == server.given * 8


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((401, {"error": "invalid_client"}), "refused: 401 Unauthorized"),
        ((200, {"token": "t"}), "has no access_token"),
        ((200, ["t"]), "has no access_token"),
        ((200, {"access_token": "t", "expires_in": "soon"}), "has no access_token"),
    ],
)
def test_an_answer_without_a_token_is_an_error_that_says_so_and_no_secret(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, Any], why: str
) -> None:
    monkeypatch.setattr(server, "answer", lambda *_: answer)
    with pytest.raises(
        OSError, match=f"the token endpoint {server.url}.* {why}|of the token endpoint {server.url} {why}"
    ) as e:
        TokenEndpoint(server.url, "guest", SECRET).token()
    assert SECRET not in str(e.value)


def test_a_secret_does_not_follow_a_redirect(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    other, asked = Server(), list[str]()
    monkeypatch.setattr(other, "answer", lambda who, _: asked.append(who) or (200, {"access_token": "t"}))
    monkeypatch.setattr(server, "answer", lambda *_: (302, {"location": other.url}))
    try:
        with pytest.raises(OSError, match="refused: 302 Found"):
            TokenEndpoint(server.url, "guest", SECRET).token()
    finally:
        other.close()
    assert not asked


def test_nobody_there_is_an_error() -> None:
    with pytest.raises(OSError, match=r"the token endpoint http://127\.0\.0\.1:9/ did not answer: .*refused"):
        TokenEndpoint("http://127.0.0.1:9/", "guest", SECRET).token()


def test_who_asks_and_for_what(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Mapping[str, list[str]]]()
    answer = server.answer
    monkeypatch.setattr(server, "answer", lambda who, form: asked.append(form) or answer(who, form))
    TokenEndpoint(server.url, "guest", SECRET).token()
    TokenEndpoint(server.url, "guest", SECRET, scope="kafka produce").token()
    assert asked == [
        {"grant_type": ["client_credentials"]},
        {"grant_type": ["client_credentials"], "scope": ["kafka produce"]},
    ]


def test_both_libraries_take_it_for_their_own(server: Server) -> None:
    endpoint = TokenEndpoint(server.url, "guest", SECRET, extensions="purpose=test,zone=a=b")
    for library_class in (AbstractTokenProvider, AsyncProvider):
        found = provider(endpoint, library_class)
        assert isinstance(found, library_class)
        assert found.extensions() == {"purpose": "test", "zone": "a=b"}
        token = found.token()
        with ThreadPoolExecutor() as thread:  # a browser's test may have left an event loop in this one
            found = thread.submit(asyncio.run, token).result() if asyncio.iscoroutine(token) else token
        assert found == server.given[0]
