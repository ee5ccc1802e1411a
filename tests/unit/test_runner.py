"""The runner's drain and its phases, with a cluster that does not always answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost import runner
from fencepost.errors import MemberError, WaitTimeout
from fencepost.live import Progress
from fencepost.model import TopicPartition
from fencepost.phases import Phases
from fencepost.scenario import Group, Scenario, Topic
from fencepost.store import RunFolder
from fencepost.workloads import PollLoop
from fencepost_member.events import EventLog

SCENARIO = Scenario("orders", [Topic("orders", partitions=1)], Group(), PollLoop())
ORDERS = TopicPartition("orders", 0)


class Members:
    """A group that does what it is told; remembers it."""

    members = ()

    def __init__(self) -> None:
        self.done: list[str] = []

    def refresh(self) -> None:
        """There is nothing new."""

    def progress(self) -> Progress:
        return Progress()

    def stop_producers(self, within_s: float) -> None:
        self.done.append("producers stopped")

    def stop_members(self, within_s: float) -> None:
        self.done.append("members stopped")


def answering(*answers: Any) -> Callable[[str], Any]:
    """A call of an administrator that gives these answers one after the other, the last one for ever."""
    left = list(answers)

    def call(name: str) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return call


NO_ANSWER = WaitTimeout("waited 15 s for the coordinator of orders to tell its offsets, which did not come")


@pytest.fixture
def drain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """Drains a run of one partition that ends at offset 7; returns what the group was told."""
    monkeypatch.setattr(Phases, "say", lambda self, note: None)
    folder = RunFolder.create(tmp_path, "orders", 1)
    running: Any = runner._Run(SCENARIO, SCENARIO.plan(1), folder, None, lambda progress: None)  # type: ignore[arg-type]

    def drained(committed: Callable[[str], Any], ends: Callable[[str], Any], within_s: float) -> list[str]:
        monkeypatch.setattr(runner, "DRAIN_S", within_s)
        group = Members()
        running._drain(group, SimpleNamespace(admin=SimpleNamespace(committed=committed, end_offsets=ends)))
        return group.done

    yield drained
    running._events.close()


def test_the_drain_goes_on_when_an_administrators_call_times_out(drain: Callable[..., list[str]]) -> None:
    asked = []
    answers = answering(NO_ANSWER, NO_ANSWER, {ORDERS: 5}, {ORDERS: 7})

    def committed(name: str) -> Any:
        asked.append(name)
        return answers(name)

    ends = answering(NO_ANSWER, {0: 7})
    assert drain(committed, ends, within_s=60) == ["producers stopped", "members stopped"]
    assert len(asked) == 4, "until all of it is committed, whatever failed on the way"


def test_a_group_that_does_not_commit_everything_is_ended_in_order(drain: Callable[..., list[str]]) -> None:
    done = drain(answering({ORDERS: 5}), answering({0: 7}), within_s=0)
    assert done == ["producers stopped", "members stopped"]


def test_a_drain_in_which_nobody_could_be_asked_is_no_drain(drain: Callable[..., list[str]]) -> None:
    with pytest.raises(WaitTimeout, match="the last look failed: waited 15 s for the coordinator"):
        drain(answering(NO_ANSWER), answering({0: 7}), within_s=0)


def phases_of(path: Path) -> list[tuple[str, bool, str]]:
    """(name, whether it ended, reason) of each phase in an event log; the last line of an id wins."""
    events = {e["id"]: e for e in map(json.loads, path.read_text().splitlines())}
    return [(e["detail"]["name"], e["end_ns"] > 0, e["detail"].get("reason", "")) for e in events.values()]


def test_a_phase_that_fails_never_ends_and_says_why_and_the_next_ones_follow(tmp_path: Path) -> None:
    notes = []
    phases = Phases(EventLog(tmp_path / "harness.jsonl", "harness"), lambda progress: notes.append(progress.note))
    with phases.told(), phases.phase("warm-up"):
        raise MemberError("member-0.1 ended")
    with phases.phase("seal"):
        pass

    def interrupted() -> None:
        with phases.told(), phases.phase("late"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert phases_of(tmp_path / "harness.jsonl") == [
        ("warm-up", False, "member-0.1 ended"),
        ("seal", True, ""),
        ("late", False, "KeyboardInterrupt"),
    ]
    assert "the phase warm-up failed: member-0.1 ended" in notes
