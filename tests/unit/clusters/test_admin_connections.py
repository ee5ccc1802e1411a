"""Whoever waits for brokers says what was last wrong with each of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from fencepost.clusters.admin import connections, requests
from fencepost.clusters.admin.connections import Connections
from fencepost.errors import WaitTimeout
from fencepost.model.endpoint import Endpoint


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    """One, number 2, at an address where nobody listens."""
    monkeypatch.setattr(connections, "WITHIN_S", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = Connections({2: Endpoint(*taken.getsockname())})
        yield found
        found.close()


def test_a_broker_that_refuses_connections_is_named_with_the_reason(brokers: Connections) -> None:
    with pytest.raises(WaitTimeout, match=r"any broker .* state now: broker 2: KafkaConnectionError: 111 ECONNREFUSED"):
        brokers.request(requests.everything)


def test_an_answer_that_puts_off_is_told_and_any_other_is_not(brokers: Connections) -> None:
    not_leader, unknown_member = SimpleNamespace(error_code=6), SimpleNamespace(error_code=25)
    assert not brokers.is_retriable(2, unknown_member)
    assert brokers.refusals == {}
    assert brokers.is_retriable(2, not_leader)
    with pytest.raises(WaitTimeout, match=r"the leaders.* state now: broker 2: NotLeaderForPartitionError"):
        brokers.wait(lambda: None, "the leaders")
