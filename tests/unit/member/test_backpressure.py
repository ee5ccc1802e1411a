"""What a member pauses that has enough to do, and that nothing of it outlives its ownership."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from fencepost_member.config import MemberConfig
from fencepost_member.member_events import MemberReporter
from fencepost_member.processing import backpressure
from fencepost_member.processing.backpressure import Backpressure, PausedPartitions
from fencepost_member.recording.events import EventLog, read

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
        reported, self.asked = set(self.asked), []
        assert len(reported) <= 2
        return reported


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr(backpressure.time, "monotonic", lambda: moment[0])
    return moment


class Owner(MemberReporter):
    """The account of who owns both."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "events.jsonl"
        config = MemberConfig("member-0.1", 0, 0, str(folder), "g", {"orders": {"0": 0, "1": 1}}, "127.0.0.1:1")
        super().__init__(config, EventLog(self._file, "member-0.1"), lambda: cast("Any", None), lambda: ("a", 1))
        with self.assigned_callback([A, B]):
            pass

    def told(self) -> list[tuple[int, bool]]:
        """The partitions that were paused, and whether that is over."""
        last = {event["id"]: event for event in read(self._file).events}
        paused = [event for event in last.values() if event["kind"] == "paused"]
        return [(partition, event["end_ns"] > 0) for event in paused for _, partition, _ in event["partitions"]]


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def pressed(kind: str, client: Client, owner: Owner) -> Backpressure:
    return Backpressure(kind, 50, PausedPartitions(client, owner), owner.ownership)


def test_it_pauses_what_it_owns_after_records_and_resumes_when_the_time_is_up(now: list[float], owner: Owner) -> None:
    client = Client()
    pressure = pressed("pause", client, owner)
    pressure.after([])
    assert client.told() == set()
    pressure.after(WORK)
    assert client.told() == {("pause", A), ("pause", B)}
    assert sorted(owner.told()) == [(0, False), (1, False)]
    now[0] += 0.04
    pressure.after(WORK)  # of a partition that came meanwhile; what is paused stays so
    pressure.after([])
    assert client.told() == set()
    now[0] += 0.02
    pressure.after([])
    assert client.told() == {("resume", A), ("resume", B)}
    assert sorted(owner.told()) == [(0, True), (1, True)]
    pressure.after([])
    assert client.told() == set()


def test_what_it_gives_up_is_resumed_first_and_never_again(now: list[float], owner: Owner) -> None:
    client = Client()
    pressure = pressed("pause", client, owner)
    pressure.after(WORK)
    client.told()
    pressure.revoking([B])
    assert client.told() == {("resume", B)}
    owner.ownership.revoke([B])
    now[0] += 1
    pressure.after([])
    assert client.told() == {("resume", A)}
    pressure.revoking([A])
    assert client.told() == set()


def test_it_resumes_what_was_never_paused(now: list[float], owner: Owner) -> None:
    client = Client()
    pressure = pressed("resume", client, owner)
    pressure.after([])
    assert client.told() == set()
    pressure.after(WORK)
    assert client.told() == {("resume", A), ("resume", B)}
    assert not owner.told()


def test_what_is_paused_is_told_until_it_is_resumed_or_given_up(owner: Owner) -> None:
    owner.paused([A])
    owner.paused([A, B, ("refunds", 0)])  # what is paused already, and what it does not own
    assert sorted(owner.told()) == [(0, False), (1, False)]
    owner.resumed([A, B, ("refunds", 0)])
    owner.resumed([A])
    assert sorted(owner.told()) == [(0, True), (1, True)]
    owner.paused([A])
    with owner.revoked_callback("revoked", [A]):
        assert owner.told()[-1] == (0, False)
    assert owner.told()[-1] == (0, True)
