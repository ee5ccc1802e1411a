"""The promise of recovery: partitions that catch up, and records that are processed again after a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.group_rules.recovery import faults_measured
from fencepost.checkers.judge import judge
from fencepost.checkers.promises.recovers import NO_BASELINE
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.model import Validity
from history.builder import HistoryBuilder
from history.test_kernel_equals_oracle import agreed
from history.test_standing_still import Told, ended, shown

A, B = "member-0.1", "member-1.1"
CATCHES_UP = Bounds(catches_up_ns=4 * NS)
# Cause, excuse, members, partition, first offset; from when the step was over to when no record was late any more.
PAUSE, MOVE = "step 0 (pause)", "step 0 (move_coordinator)"
LATE: Told = (PAUSE, "", (A,), 0, 6, 10.01, 16.0)
CATCH_UPS: Mapping[str, Sequence[Told]] = {
    "wrong": [LATE],
    "no promise": [],
    "in time": [],
    "nothing waits": [],
    "written a moment ago": [],
    "normal before": [],
    "normal before, nearly": [LATE],
    "before, while the group got warm": [LATE],
    "before, and until then": [(PAUSE, NO_BASELINE, (A,), 0, 5, 10.01, 16.0)],
    "nothing before": [(PAUSE, NO_BASELINE, (A,), 0, 6, 10.01, 16.0)],
    "a little below 1 s before": [],
    "declared": [(PAUSE, "declared act: reset-offsets", (A,), 0, 6, 10.01, 16.0)],
    "the load ends": [],
    "others are late by then": [(PAUSE, "", (A,), 0, 6, 10.01, 17.5)],
    "others are late after that": [LATE],
    "below the start": [],
    "not acknowledged": [],
    "never": [(PAUSE, "", (A,), 0, 6, 10.01, 20.1)],
    "another step begins": [],
    "another step begins late": [(PAUSE, "", (A,), 0, 6, 10.01, 15.5)],
    "nobody owns it": [(PAUSE, "", (), 0, 6, 10.01, 16.0)],
    "no leader": [(PAUSE, "no leader", (A,), 0, 6, 10.01, 16.0)],
    "not healed": [],
    "nothing to heal": [(MOVE, "", (A,), 0, 6, 10.0, 16.0)],
}
BEGUN = {"normal before": 8.5, "normal before, nearly": 8.5, "before, while the group got warm": 8.5}
# When offset 5, written at 2 s, is delivered; and when offsets 6 and 7 are, and 8 and 9 are written and delivered.
FIFTH = {**dict.fromkeys(BEGUN, 8.4), "normal before, nearly": 6.1, "before, and until then": 15.9}
FIFTH |= {"a little below 1 s before": 2.951}  # so 1.14 s are normal
LATER = {"in time": 14.0}
LAST = {"others are late by then": (14.9, 17.5), "others are late after that": (15.5, 19.0)}
LAST |= {"written a moment ago": (13.5, 16.0), "in time": (9, 14.0), "a little below 1 s before": (12.949, 16.0)}


@pytest.mark.parametrize("way", CATCH_UPS)
def test_a_partition_that_has_not_caught_up_some_time_after_a_step(tmp_path: Path, way: str) -> None:
    """Records are late 1 s after they are written, or after 1.2 times the wait of offset 5; the bound ends at 14 s."""
    h = HistoryBuilder(tmp_path, 2)
    heals_s = 13.9 if way == "the load ends" else 20.0
    h.phases = {"warm-up": (0.0, 1.0), "heal": (heals_s, heals_s + 0.1), "drain": (20.2, 40.0)}
    written, last = LAST.get(way, (9, 16.0))
    h.write(5, at=0.5 if way == "nothing before" else 2)
    h.write(1, at=0.5 if way in ("before, while the group got warm", "nothing before") else 2)
    recent = ("written a moment ago", "a little below 1 s before")
    h.write(2, at=written if way in recent else 9, acked=way != "not acknowledged")
    h.write(2, at=written, acked=way != "not acknowledged")
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    b.assigned(1, 1)
    heals = way != "nothing to heal"
    at, until = (BEGUN.get(way, 4), 10) if heals else (10, None)
    fault = "pause" if heals else "move_coordinator"
    h.fault(fault, at, until, members=("member-9.1",), healed=way != "not healed")
    if way.startswith("another step"):
        begin = 14 if way == "another step begins" else 15.5
        h.fault("black_hole", begin, begin + 1, step=1)
    a.process(range(5), 2.5)
    a.process([5], FIFTH.get(way, 2.6))
    if way == "nothing waits":
        a.process(range(6, 10), 9.5)
    elif way == "nobody owns it":
        a.revoked(9)
        a.assigned(15.9)
    if way == "no leader":
        h.leader(-1, 12)
    if way == "declared":
        h.act("reset-offsets", 9.5)
    if way == "below the start":
        h.log_starts[0] = 10
    if way not in ("nothing waits", "never"):
        a.process([6, 7], LATER.get(way, 16))
        a.process([8, 9], last)
    a.commit(10, 19.5)
    ended(a, b)
    assert shown(h, "slow-catch-up", Bounds() if way == "no promise" else CATCHES_UP) == CATCH_UPS[way]


# cause, partitions and counts of what was processed again after each step, where nothing of it was promised.
Counts = list[tuple[str, int, int]]
KILL, AGAIN = "step 0 (kill)", "step 1 (pause)"
DUPLICATES: Mapping[str, Counts] = {
    "wrong": [(KILL, 0, 2)],
    "nothing is done again": [],
    "no step": [],
    "before the step": [],
    "a declared act": [],
    "delivered again, not done": [],
    "done three times": [(KILL, 0, 3)],
    "after each of two steps": [(KILL, 0, 1), (AGAIN, 0, 1)],
    "of two partitions": [(KILL, 0, 2), (KILL, 1, 3)],
}


@pytest.mark.parametrize("way", DUPLICATES)
def test_records_that_are_processed_again_count_for_the_last_step_that_had_begun(tmp_path: Path, way: str) -> None:
    h = HistoryBuilder(tmp_path, 2)
    h.write(10)
    h.write(5, 1)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.assigned(1, 1)
    a.process(range(6), 2)
    a.process(range(5), 2, 1)
    a.commit(4, 3)
    a.commit(2 if way == "of two partitions" else 5, 3, 1)
    if way != "no step":
        h.fault("kill", 11 if way == "before the step" else 5, members=(A,))
    a.die(5)
    a.evicted(9)
    if way == "a declared act":
        h.act("reset_offsets", 9.5)
    b.assigned(10)
    b.assigned(10, 1)
    first, second = b.poll([4, 5], 10.5)
    if way not in ("nothing is done again", "delivered again, not done"):
        first.begin(10.5).end(10.6)
        second.begin(10.6).end(10.7)
    if way == "nothing is done again":
        b.rows.clear()
        b.ords.clear()
    if way == "done three times":
        b.process([5], 10.8)
    if way == "after each of two steps":
        h.fault("pause", 10.55, 12, step=1, members=("member-9.1",))
        second.delivered_ns += NS // 5
        second.begin(10.8).end(10.9)
    if way == "of two partitions":
        b.process(range(2, 5), 11, 1)
    b.process(range(6, 10), 15)
    b.commit(10, 16)
    b.commit(5, 16, 1)
    ended(b)
    run = h.seal()
    assert counted(run, 0) == DUPLICATES[way]
    most = sum(count for cause, _, count in DUPLICATES[way] if cause == KILL)
    assert KILL not in {cause for cause, *_ in counted(run, most)}, "as many as are promised"
    assert not most or KILL in {cause for cause, *_ in counted(run, most - 1)}, "one more"
    assert counted(run, -1) == [], "nothing is promised"


def counted(run: Path, most: int) -> Counts:
    found = agreed(run, Bounds(done_again=most))[0]
    return sorted((a.cause, a.partition, a.count) for a in found if a.kind == "too-many-duplicates")


@pytest.mark.parametrize(
    ("promise", "validity"),
    [
        ({"first_record_within_s": 5}, Validity.VALID),
        ({"lag_normal_within_s": 5, "duplicates_per_disruption": 2}, Validity.VALID),
        ({"lag_normal_within_s": 5, "duplicates_per_disruption": 1}, Validity.INVALID),
        ({"lag_normal_within_s": 34}, Validity.UNKNOWN),
        ({"first_record_within_s": 34}, Validity.UNKNOWN),
    ],
)
def test_a_fault_is_judged_if_it_is_over_for_as_long_as_is_promised(
    tmp_path: Path, promise: Mapping[str, float], validity: Validity
) -> None:
    h = HistoryBuilder(tmp_path, promises=[{"type": "recovers", **promise}])
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(4, 3)
    h.fault("kill", 5, members=(A,))
    a.die(5)
    a.evicted(6)
    b.assigned(7)
    b.process(range(4, 10), 8)
    b.commit(10, 16)
    ended(b)
    run = h.seal()
    check = next(check for check in judge(run, oracle.detect).checks if check.check == "recovers")
    assert check.validity is validity
    assert check.facts_judged == faults_measured(load(run)) == (validity is not Validity.UNKNOWN)
    if validity is Validity.UNKNOWN:
        assert "leave more time between faults" in check.reason


def test_nobody_is_accused_where_records_may_always_wait_so_long(tmp_path: Path) -> None:
    """Each record waits for 2.9 s, and the first step begins 1.2 s after the warm-up."""
    h = HistoryBuilder(tmp_path, promises=[{"type": "recovers", "lag_normal_within_s": 5}])
    h.phases = {"warm-up": (0.0, 1.0), "heal": (20.0, 20.1), "drain": (20.2, 40.0)}
    a = h.member(0)
    a.assigned(0.8)
    for at in range(1, 17):
        h.write(1, at=at)
    for at in range(1, 17):
        a.process([at - 1], at + 2.9)
    h.fault("move_coordinator", 2.2)
    a.commit(16, 20)
    ended(a)
    check = next(check for check in judge(h.seal(), oracle.detect).checks if check.check == "recovers")
    assert check.validity is Validity.UNKNOWN
    assert "let the load go on for longer before the first fault" in check.reason


def test_each_promise_has_its_own_bound(tmp_path: Path) -> None:
    """The partition is served again after 6 s: that is too late for one of two promises."""
    promises = [{"type": "progress", "recovers_within_s": 4}, {"type": "recovers", "first_record_within_s": 30}]
    h = HistoryBuilder(tmp_path, promises=promises)
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(6), 2)
    b.pause(4, 9)
    a.process(range(6, 10), 15)
    a.commit(10, 16)
    ended(a)
    found = {check.check: check.validity for check in judge(h.seal(), oracle.detect).checks}
    assert found["progress"] is Validity.INVALID
    assert found["recovers"] is not Validity.INVALID
