"""What a member pauses that has enough to do, and that nothing of it outlives its ownership."""

from __future__ import annotations

import pytest

from fencepost_member import backpressure
from fencepost_member.backpressure import Backpressure
from fencepost_member.ownership import Ownership

A, B = ("orders", 0), ("orders", 1)
WORK = [(0, A, 1)]


class Client:
    """What is asked of a client."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, int]]] = []

    def pause(self, tp: tuple[str, int]) -> None:
        self.asked.append(("pause", tp))

    def resume(self, tp: tuple[str, int]) -> None:
        self.asked.append(("resume", tp))

    def told(self) -> set[tuple[str, tuple[str, int]]]:
        told, self.asked = set(self.asked), []
        assert len(told) <= 2
        return told


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr(backpressure.time, "monotonic", lambda: moment[0])
    return moment


def owner() -> Ownership:
    ownership = Ownership()
    ownership.take([A, B])
    return ownership


def test_it_pauses_what_it_owns_after_records_and_resumes_when_the_time_is_up(now: list[float]) -> None:
    client = Client()
    pressure = Backpressure("pause", 50, client, owner())
    pressure.after([])
    assert client.told() == set()
    pressure.after(WORK)
    assert client.told() == {("pause", A), ("pause", B)}
    now[0] += 0.04
    pressure.after(WORK)  # of a partition that came meanwhile; what is paused stays so
    pressure.after([])
    assert client.told() == set()
    now[0] += 0.02
    pressure.after([])
    assert client.told() == {("resume", A), ("resume", B)}
    pressure.after([])
    assert client.told() == set()


def test_what_it_gives_up_is_resumed_first_and_never_again(now: list[float]) -> None:
    client, ownership = Client(), owner()
    pressure = Backpressure("pause", 50, client, ownership)
    pressure.after(WORK)
    client.told()
    pressure.giving_up([B])
    assert client.told() == {("resume", B)}
    ownership.give_up([B])
    now[0] += 1
    pressure.after([])
    assert client.told() == {("resume", A)}
    pressure.giving_up([A])
    assert client.told() == set()


def test_it_resumes_what_was_never_paused(now: list[float]) -> None:
    client = Client()
    pressure = Backpressure("resume", 50, client, owner())
    pressure.after([])
    assert client.told() == set()
    pressure.after(WORK)
    assert client.told() == {("resume", A), ("resume", B)}
