"""The runner without a cluster: its place on the machine, its phases, and a drain in which nobody always answers."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost import runner
from fencepost.checkers import Recovers
from fencepost.clock import NS, eventually, now_ns
from fencepost.clusters import backends
from fencepost.errors import ClusterError, MemberError, PlanError, WaitTimeout
from fencepost.faults import DropPackets
from fencepost.group.event_tail import RecordCounts
from fencepost.history.run_folder import RunFolder
from fencepost.model import TopicPartition
from fencepost.model.topic import Topic
from fencepost.processes import concurrency
from fencepost.runner.phases import Phases
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import one_member
from fencepost.workloads import PollLoop
from fencepost_member.recording.events import EventLog

SCENARIO = Scenario("orders", [Topic("orders", partitions=1)], Group(), PollLoop())
ORDERS = TopicPartition("orders", 0)


class Members:
    """A group that does what it is told; remembers it."""

    members = ()

    def __init__(self) -> None:
        self.done: list[str] = []

    def refresh(self) -> None:
        """There is nothing new."""

    def progress(self) -> RecordCounts:
        return RecordCounts(acknowledged=7)

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


NO_ANSWER = WaitTimeout("waited 15 s for the coordinator of orders to tell its offsets, which did not happen")


@pytest.fixture
def drain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """Drains a run of one partition that ends at offset 7; returns what the group was told."""
    monkeypatch.setattr(Phases, "show", lambda self, note: None)
    folder = RunFolder.create(tmp_path, "orders", 1)
    owner: Any = None
    begun: list[Any] = []

    def drained(
        committed: Callable[[str], Any],
        ends: Callable[[str], Any],
        within_s: float,
        topic_id: str = "",
        there: Callable[[int], bool] = lambda count: True,
    ) -> list[str]:
        scenario, group = replace(SCENARIO, drain_s=within_s), Members()
        begun.append(runner._Run(scenario, SCENARIO.plan(1), folder, owner, lambda progress: None, backends.local()))
        ids = {topic_id: "orders"} if topic_id else {}
        admin = SimpleNamespace(committed=committed, end_offsets=ends, names_by_id=lambda topics: ids)
        begun[0]._effects = SimpleNamespace(there=there, state="4 of 7 records have one")
        begun[0]._drain(group, SimpleNamespace(admin=admin))
        return group.done

    yield drained
    begun[0]._events.close()


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
    done = drain(answering({ORDERS: 5}), answering({0: 7}), within_s=0.01)
    assert done == ["producers stopped", "members stopped"]


def test_the_drain_waits_for_effects_of_all_that_was_acknowledged(drain: Callable[..., list[str]]) -> None:
    asked, answers = [], answering(False, False, True)

    def there(count: int) -> bool:
        asked.append(count)
        return bool(answers(""))

    done = drain(answering({ORDERS: 7}), answering({0: 7}), within_s=60, there=there)
    assert (asked, done) == ([7, 7, 7], ["producers stopped", "members stopped"])


def test_effects_that_do_not_come_are_told_and_the_group_is_ended_in_order(
    drain: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(Phases, "show", lambda self, note: notes.append(note))
    done = drain(answering({ORDERS: 7}), answering({0: 7}), within_s=0.01, there=lambda count: False)
    assert done == ["producers stopped", "members stopped"]
    assert notes == ["waited 0.01 s for an effect of every record: 4 of 7 records have one"]


@pytest.mark.parametrize(("topic_id", "looks"), [("", 1), ("another", 3)])
def test_what_was_committed_of_a_topic_before_it_was_made_again_is_no_end_of_the_drain(
    drain: Callable[..., list[str]], topic_id: str, looks: int
) -> None:
    asked = []
    answers = answering({ORDERS: 9}, {ORDERS: 3}, {ORDERS: 7})

    def committed(name: str) -> Any:
        asked.append(name)
        return answers(name)

    drain(committed, answering({0: 7}), within_s=60, topic_id=topic_id)
    assert len(asked) == looks


def test_a_drain_in_which_nobody_could_be_asked_is_no_drain(drain: Callable[..., list[str]]) -> None:
    with pytest.raises(WaitTimeout, match="the last attempt failed: waited 15 s for the coordinator"):
        drain(answering(NO_ANSWER), answering({0: 7}), within_s=0.01)


def test_a_run_holds_one_of_the_machines_places_and_gives_it_back_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # others may be running on this machine
    monkeypatch.delenv(concurrency.HELD, raising=False)
    notes: list[str] = []

    def start(*_: object) -> Any:
        assert concurrency.HELD in os.environ
        raise ClusterError("no broker came up")

    failing = replace(backends.local(), provide=start)
    with pytest.raises(ClusterError, match="no broker came up"):
        runner.run(
            SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, backend=failing, observe=lambda p: notes.append(p.note)
        )
    assert concurrency.HELD not in os.environ
    with concurrency.run_permit("another one", within_s=0):
        pass
    (folder,) = tmp_path.glob("orders-1-*")
    assert phases_of(folder / "history/events/harness.jsonl") == [("provision", False, "no broker came up")]


def test_a_plan_that_loses_packets_is_refused_where_they_cannot_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where there is no iptables
    scenario = replace(SCENARIO, schedule=[at(2, DropPackets(), one_member())])
    sentence = r"step 0 \(DropPackets at 2 s\) needs packets, but on this machine iptables, .* is missing: install it"
    with pytest.raises(PlanError, match=sentence):
        runner.run(scenario, plan=scenario.plan(1), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_run_that_waits_says_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    @contextmanager
    def full(what: str, report: Callable[[str], None]) -> Iterator[None]:
        taken.append(what)
        report("waiting for demo, seed 7 to end")
        raise WaitTimeout("held by demo, seed 7")
        yield

    monkeypatch.setattr(runner, "run_permit", full)
    seen = []
    with pytest.raises(WaitTimeout, match="held by demo"):
        runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, observe=seen.append)
    assert [(p.phase, p.note) for p in seen] == [("turn", "waiting for demo, seed 7 to end")]
    assert taken == ["orders, seed 1"]
    assert list(tmp_path.iterdir()) == [], "no run, no folder"


def phases_of(path: Path) -> list[tuple[str, bool, str]]:
    """(name, whether it ended, reason) of each phase in an event log; the last line of an id wins."""
    events = {e["id"]: e for e in map(json.loads, path.read_text().splitlines())}
    return [(e["detail"]["name"], e["end_ns"] > 0, e["detail"].get("reason", "")) for e in events.values()]


def test_a_phase_that_fails_never_ends_and_says_why_and_the_next_ones_follow(tmp_path: Path) -> None:
    notes = []
    phases = Phases(EventLog(tmp_path / "harness.jsonl", "harness"), lambda progress: notes.append(progress.note))
    with phases.report_errors(), phases.phase("warm-up"):
        raise MemberError("member-0.1 ended")
    with phases.phase("seal"):
        pass

    def interrupted() -> None:
        with phases.report_errors(), phases.phase("late"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert phases_of(tmp_path / "harness.jsonl") == [
        ("warm-up", False, "member-0.1 ended"),
        ("seal", True, ""),
        ("late", False, "KeyboardInterrupt"),
    ]
    assert "the phase warm-up failed: member-0.1 ended" in notes


@pytest.mark.parametrize(("promises", "rest_s"), [((), 0), ((Recovers(first_record_within_s=0.3),), 0.3)])
def test_the_load_goes_on_after_the_faults_for_as_long_as_promises_need(
    promises: tuple[Any, ...], rest_s: float
) -> None:
    run = object.__new__(runner._Run)
    run._scenario = replace(SCENARIO, promises=promises)
    looks: list[bool] = []

    def wait(probe: Callable[[], bool], within_s: float, describe: str) -> None:
        eventually(lambda: looks.append(probe()) or looks[-1], 10, describe)

    run._phases = SimpleNamespace(wait_or_give_up=wait)  # type: ignore[assignment]
    injector = SimpleNamespace(begin=lambda: None, do_what_is_due=lambda: None, finished=True)
    group = SimpleNamespace(outside=None, progress=lambda: SimpleNamespace(processed=SCENARIO.min_records))
    begun_ns = now_ns()
    run._chaos(group, injector)  # type: ignore[arg-type]
    assert now_ns() - begun_ns >= rest_s * NS
    assert bool(rest_s) is (len(looks) > 1)
