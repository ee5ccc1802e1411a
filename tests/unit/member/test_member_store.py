"""The store that members write to, its leases, and critical sections, by a clock of the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.clock import NS
from fencepost.evidence import effects
from fencepost.group import store_database
from fencepost.workloads import ExclusiveWrites
from fencepost_member import databases
from fencepost_member.databases import FILE
from fencepost_member.processing import store as stores
from fencepost_member.processing.exclusive_processing import ExclusiveProcessing
from fencepost_member.processing.store import Store
from fencepost_member.recording.events import EventLog, read

A, B = ("orders", 0), ("orders", 1)
LEASE_S = 2
Open = Callable[..., Store]


class Clock:
    """Goes on when it is told to, and by what others look at it."""

    def __init__(self) -> None:
        self.now_ns, self.step_ns = 1000 * NS, 0

    def __call__(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns

    def passes(self, seconds: float) -> None:
        self.now_ns += int(seconds * NS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Where the store is."""
    address = request.getfixturevalue("postgres") if request.param == "postgresql" else ""
    with store_database.of(ExclusiveWrites(store=address), tmp_path):
        yield


@pytest.fixture
def opened(tmp_path: Path, clock: Clock, place: None) -> Iterator[Open]:
    made = []

    def opened(actor: str, fence: str = "token") -> Store:
        made.append(Store(tmp_path, actor, fence, LEASE_S, threading.Event(), clock))
        return made[-1]

    yield opened
    for store in made:
        store.close()


def until_ns(folder: Path) -> int:
    """The end of the only lease."""
    with closing(databases.opened(folder)) as db:
        ((found,),) = db.execute("SELECT until_ns FROM leases").fetchall()
    return int(found)


def written(folder: Path) -> list[tuple[int, str, int]]:
    with closing(databases.opened(folder)) as db:
        return list(db.execute('SELECT "offset", actor, token FROM effects ORDER BY seq').fetchall())


def pauses_past_its_lease(opened: Open, clock: Clock, fence: str) -> tuple[Store, Store]:
    """One member stands still inside of a critical section, and another one takes its place."""
    slow, next_one = opened("member-0.1", fence), opened("member-1.1", fence)
    slow.enter(A)
    assert not slow.applied(A, 7)
    clock.passes(LEASE_S + 1)
    next_one.enter(A)
    assert not next_one.applied(A, 7)
    assert next_one.apply(A, 7)
    return slow, next_one


def test_a_token_keeps_out_who_stood_still_for_too_long(opened: Open, clock: Clock, tmp_path: Path) -> None:
    slow, next_one = pauses_past_its_lease(opened, clock, "token")
    assert not slow.apply(A, 7)
    assert next_one.apply(A, 8)
    assert written(tmp_path) == [(7, "member-1.1", 2), (8, "member-1.1", 2)]


def test_a_lock_without_a_token_does_not(opened: Open, clock: Clock, tmp_path: Path) -> None:
    slow, _ = pauses_past_its_lease(opened, clock, "lease")
    assert slow.apply(A, 7)
    assert written(tmp_path) == [(7, "member-1.1", 2), (7, "member-0.1", 1)]


@pytest.mark.parametrize("fence", ["none", "supervisor"])
def test_without_a_lock_nobody_waits_for_anybody(opened: Open, clock: Clock, tmp_path: Path, fence: str) -> None:
    one, other = opened("member-0.1", fence), opened("member-1.1", fence)
    for store in (one, other):
        store.enter(A)
        assert not store.applied(A, 7)
    assert one.apply(A, 7)
    assert other.apply(A, 7)
    assert written(tmp_path) == [(7, "member-0.1", 0), (7, "member-1.1", 0)]
    assert one.applied(A, 7)
    assert not one.applied(B, 7)


def test_who_stood_still_and_whose_lease_nobody_took_goes_on(opened: Open, clock: Clock, tmp_path: Path) -> None:
    slow = opened("member-0.1")
    slow.enter(A)
    clock.passes(LEASE_S + 1)
    assert slow.apply(A, 7)
    slow.enter(A)
    assert slow.apply(A, 8)
    assert written(tmp_path) == [(7, "member-0.1", 1), (8, "member-0.1", 1)], "it is the same lease"


def test_a_lease_is_waited_for_until_it_is_let_go_of(
    opened: Open, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened("member-0.1"), opened("member-1.1")
    first.enter(A)
    second.enter(B)  # another partition's is another one
    monkeypatch.setattr(stores, "ENTER_S", 1)
    clock.step_ns = NS // 10
    with pytest.raises(TimeoutError, match="another member held the lease of orders-0 for 1 s"):
        second.enter(A)
    clock.step_ns = 0
    first.leave({A, B})
    second.enter(A)
    assert second.apply(A, 7)
    assert not first.apply(A, 8)


def test_who_lets_go_of_what_another_one_has_by_now_takes_nothing_away(opened: Open, clock: Clock) -> None:
    slow, next_one = pauses_past_its_lease(opened, clock, "token")
    slow.leave({A})
    third = opened("member-2.1")
    clock.step_ns = NS // 10
    third.enter(A)
    assert clock.now_ns >= 1000 * NS + int((LEASE_S + 1 + LEASE_S) * NS), "it waited for the one that has it"
    assert not next_one.apply(A, 9)


def test_a_lease_is_renewed_when_half_of_it_is_over(opened: Open, clock: Clock, tmp_path: Path) -> None:
    first = opened("member-0.1")
    untils = []
    for seconds in (0, 0.4, 0.7):
        clock.passes(seconds)
        first.enter(A)
        untils.append(until_ns(tmp_path) - 1000 * NS)
    assert untils == [2 * NS, 2 * NS, int(3.1 * NS)]


def test_what_it_holds_is_told_in_its_own_order(opened: Open, clock: Clock, tmp_path: Path) -> None:
    pauses_past_its_lease(opened, clock, "lease")[0].apply(A, 7)
    log = EventLog(tmp_path / "events" / "harness.jsonl", "harness")
    effects.of_store(tmp_path, log)
    log.close()
    reported = read(tmp_path / "events" / "harness.jsonl").events
    assert [(e["kind"], e["actor"], e["partitions"], e["detail"], e["begin_ns"] > 1000 * NS) for e in reported] == [
        ("effect", "member-1.1", [["orders", 0, 7]], {"seq": 1, "token": 2, "key": -1}, True),
        ("effect", "member-0.1", [["orders", 0, 7]], {"seq": 2, "token": 1, "key": -1}, True),
    ]


def test_who_waits_for_a_lease_and_is_asked_to_stop_stops(opened: Open, clock: Clock) -> None:
    first, second = opened("member-0.1"), opened("member-1.1")
    assert first.enter(A)
    clock.step_ns = NS // 10
    second._stop.set()
    assert not second.enter(A)


def test_a_run_without_a_store_tells_nothing_and_of_one_that_is_none_it_tells_that(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events" / "harness.jsonl", "harness")
    effects.of_store(tmp_path, log)
    (tmp_path / FILE).write_bytes(b"no database at all, but longer than a header" * 100)
    effects.of_store(tmp_path, log)
    log.close()
    reported = read(tmp_path / "events" / "harness.jsonl").events
    text = "the store of the run cannot be read: file is not a database"
    assert [(e["kind"], e["detail"]) for e in reported] == [("unrecorded", {"text": text, "parts": ["effects"]})]


class Section:
    """What a member does inside of critical sections; ``run_between_looks`` is what happens while it works on an
    offset."""

    def __init__(self, store: Store) -> None:
        self.told: list[tuple[str, int]] = []
        self.meanwhile: dict[int, Callable[[], object]] = {}
        self.stop = store._stop
        lane: Any = SimpleNamespace(
            begin=lambda index: self.say("begun", index), done=lambda index: self.say("done", index), parked=None
        )
        policy: Any = SimpleNamespace(
            finished=lambda tp, following: self.say("finished", following), between=lambda: None
        )
        handling: Any = self.work
        self.way = ExclusiveProcessing(store, handling, lane, policy, lambda: None, self.stop)

    def say(self, what: str, number: int) -> None:
        self.told.append((what, number))

    def work(self, index: int, tp: Any, next_offset: int, content: Any, handle: None) -> None:
        self.say("worked", index)
        self.meanwhile.pop(index, lambda: None)()

    def process(self, *offsets: int) -> int:
        return self.way.process([(offset, A, offset + 1) for offset in offsets], [])


def takes_over(other: Store, clock: Clock, *offsets: int) -> None:
    clock.passes(LEASE_S + 1)
    assert other.enter(A)
    for offset in offsets:
        assert other.apply(A, offset)
    other.leave({A})


def test_what_another_member_did_meanwhile_is_ended_and_not_done_again(
    opened: Open, clock: Clock, tmp_path: Path
) -> None:
    section, other = Section(opened("member-0.1")), opened("member-1.1")
    section.meanwhile[7] = lambda: takes_over(other, clock, 7, 8)
    assert section.process(7, 8, 9) == 3
    assert written(tmp_path) == [(7, "member-1.1", 2), (8, "member-1.1", 2), (9, "member-0.1", 3)]
    assert [one for one in section.told if one[0] == "worked"] == [("worked", 7), ("worked", 9)]
    assert [one for one in section.told if one[0] == "finished"] == [("finished", 8), ("finished", 9), ("finished", 10)]


def test_each_partition_of_a_poll_is_entered_once_and_its_records_are_done_in_order(
    opened: Open, clock: Clock, tmp_path: Path
) -> None:
    section, other = Section(opened("member-0.1")), opened("member-1.1")
    work = [(10, B, 6), (11, A, 1), (12, B, 7), (13, A, 2), (14, B, 8)]
    section.meanwhile[14] = lambda: section.say("free", other.enter(A))
    assert section.way.process(work, []) == len(work)
    worked = [number for what, number in section.told if what == "worked"]
    visits = [tp for tp, _ in groupby({index: tp for index, tp, _ in work}[index] for index in worked)]
    assert visits == [A, B]
    assert ("free", True) in section.told, "it let go of the first one before the second one"
    assert [number for what, number in section.told if what == "finished"] == [1, 2, 6, 7, 8]
    assert [number for what, number in section.told if what == "done"] == worked == [11, 13, 10, 12, 14]
    assert [offset for offset, _, _ in written(tmp_path)] == [0, 1, 5, 6, 7]


def test_who_lost_nothing_but_its_lease_loses_no_record(opened: Open, clock: Clock, tmp_path: Path) -> None:
    section, other = Section(opened("member-0.1")), opened("member-1.1")
    section.meanwhile[7] = lambda: takes_over(other, clock)
    assert section.process(7) == 1
    assert section.told == [("worked", 7), ("worked", 7), ("done", 7), ("finished", 8)]
    assert written(tmp_path) == [(7, "member-0.1", 3)]
    assert until_ns(tmp_path) == 0, "it let go when it was done"


def test_who_is_asked_to_stop_finishes_the_record_in_hand_and_lets_go(
    opened: Open, clock: Clock, tmp_path: Path
) -> None:
    section, other = Section(opened("member-0.1")), opened("member-1.1")
    section.meanwhile[7] = section.stop.set
    assert section.process(7, 8) == 1
    assert written(tmp_path) == [(7, "member-0.1", 1)]
    assert until_ns(tmp_path) == 0
    assert other.enter(A)
    clock.step_ns = NS // 10
    assert section.process(8) == 0, "somebody else is inside, and it is not waited for"
