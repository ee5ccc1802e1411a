"""When a step of a plan, or a member that does not poll, obliges the group to something: to the nanosecond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.detections import Detection
from fencepost.checkers.group_rules.poll_gaps import (
    SLOW_HANDLER,
    Activity,
    HeldRecord,
    PollGap,
    poll_gaps,
    stuck_members,
)
from fencepost.checkers.group_rules.recovery import Bystander, another_cause, bystanders, recoveries
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.requests import LATE_NS, Heartbeat
from fencepost.checkers.tables.rows import FOREVER, NS, Interval, Life, PerformedStep, Rebalance, Window
from history.builder import ns
from history.test_callback_moments import PARTITIONS, had
from history.test_coordination import A, B, C

BOUND_NS = 5 * NS
END_NS = ns(40)  # of the drain
PAUSE = PerformedStep(
    0,
    "pause",
    members=(B,),
    heals=True,
    begun_ns=ns(4),
    proven_ns=ns(4.1),
    undone_ns=ns(9.9),
    healed_ns=ns(10),
)
OTHER = replace(PAUSE, step=1, begun_ns=ns(15), proven_ns=ns(15), healed_ns=ns(39))


def tables(*steps: PerformedStep, end_ns: int = END_NS, protocol: str = "cooperative", **rows: Any) -> Tables:
    phases = {"warm-up": Window(ns(0), ns(1)), "heal": Window(ns(1), ns(2)), "drain": Window(ns(2), end_ns)}
    scenario = {"scenario": {"group": {"protocol": protocol}}}
    return Tables(Path(), steps=steps, phases=phases, scenario=scenario, partitions=PARTITIONS, **rows)


# After a step.


@pytest.mark.parametrize(
    ("of", "until_ns"),
    [
        (tables(PAUSE), END_NS),
        (tables(PAUSE, end_ns=ns(15) + 1), ns(15) + 1),
        (tables(PAUSE, end_ns=ns(15)), 0),
        (tables(PAUSE, end_ns=0), 0),
        (tables(replace(PAUSE, proven_ns=0)), 0),
        (tables(replace(PAUSE, begun_ns=0)), 0),
        (tables(PAUSE, OTHER), 0),
        (tables(PAUSE, replace(OTHER, begun_ns=ns(15) + 1)), ns(15) + 1),
        (tables(OTHER, replace(OTHER, begun_ns=ns(30)), PAUSE), 0),
        (tables(PAUSE, replace(OTHER, begun_ns=0)), END_NS),
        (tables(PAUSE, replace(OTHER, begun_ns=ns(5), healed_ns=ns(10))), 0),
        (tables(PAUSE, replace(OTHER, begun_ns=ns(5), healed_ns=ns(10) - 1)), END_NS),
    ],
)
def test_a_recovery_goes_from_the_end_of_a_step_that_was_alone_to_the_next(of: Tables, until_ns: int) -> None:
    found = [one for one in recoveries(of, BOUND_NS) if one[0].step == PAUSE.step]
    assert found == [(PAUSE, Window(ns(10), until_ns))] * bool(until_ns)
    assert recoveries(of, 0) == []


def test_two_steps_that_end_together_were_not_alone() -> None:
    assert recoveries(tables(PAUSE, replace(PAUSE, step=1)), BOUND_NS) == []


# Beside a step, which is certain from 4.1 s to 10 s.

PROVEN = Window(ns(4.1), ns(10))


def owned(from_ns: int = ns(1), until_ns: int = ns(30), name: str = A, tp: int = 0) -> Interval:
    """Certainly, from then to then."""
    return had(name, from_ns - 1, (until_ns, until_ns), tp=tp)


@pytest.mark.parametrize(
    ("of", "window"),
    [
        (tables(PAUSE, intervals=(owned(),)), PROVEN),
        (tables(PAUSE, intervals=(owned(),), protocol="consumer"), PROVEN),
        (tables(PAUSE, intervals=(owned(),), protocol="eager"), None),
        (tables(PAUSE, intervals=(owned(),), protocol=""), None),
        (tables(PAUSE, intervals=(owned(),), end_ns=0), None),
        (tables(replace(PAUSE, proven_ns=0), intervals=(owned(),)), None),
        (tables(replace(PAUSE, begun_ns=0), intervals=(owned(),)), None),
        (tables(replace(PAUSE, proven_ns=ns(5) - 1), intervals=(owned(),)), Window(ns(5) - 1, ns(10))),
        (tables(replace(PAUSE, proven_ns=ns(5)), intervals=(owned(),)), None),
        (tables(PAUSE, intervals=(owned(ns(5) - 1),)), Window(ns(5) - 1, ns(10))),
        (tables(PAUSE, intervals=(owned(ns(5)),)), None),
        (tables(PAUSE, intervals=(owned(until_ns=ns(9.1) + 1),)), Window(ns(4.1), ns(9.1) + 1)),
        (tables(PAUSE, intervals=(owned(until_ns=ns(9.1)),)), None),
        (tables(PAUSE, intervals=(owned(name=B),)), None),
        (tables(PAUSE, intervals=(owned(name="member-1.7"),)), None),  # another life of who was hit
        (tables(replace(PAUSE, members=(C, A)), intervals=(owned(),)), None),
        (tables(replace(PAUSE, members=()), intervals=(owned(),)), None),
        (tables(PAUSE, replace(OTHER, begun_ns=ns(10), members=(A,)), intervals=(owned(),)), None),
        (tables(PAUSE, replace(OTHER, begun_ns=ns(10) + 1, members=(A,)), intervals=(owned(),)), PROVEN),
        (tables(PAUSE, replace(OTHER, begun_ns=ns(1), healed_ns=ns(2), members=(A,)), intervals=(owned(),)), PROVEN),
        (tables(PAUSE, replace(OTHER, begun_ns=0, members=(A,)), intervals=(owned(),)), PROVEN),
        (tables(PAUSE, replace(OTHER, begun_ns=ns(8), members=(C,)), intervals=(owned(),)), PROVEN),
    ],
)
def test_a_bystander_owned_a_partition_for_long_enough_while_only_others_were_hit(
    of: Tables, window: Window | None
) -> None:
    found = [one for one in bystanders(of, BOUND_NS).get(0, []) if one.step.step == PAUSE.step]
    assert found == ([Bystander(of.steps[0], A, window)] if window else [])


def test_one_owner_that_is_no_bystander_hides_no_other() -> None:
    """Of partition 0 the first was too short, of partition 1 it was hit; the second step is too short."""
    short = replace(PAUSE, step=1, begun_ns=ns(20), proven_ns=ns(20), healed_ns=ns(20) + BOUND_NS)
    intervals = (owned(until_ns=ns(4.2)), owned(ns(4.3), name=C), owned(until_ns=ns(30), name=B, tp=1))
    found = bystanders(tables(short, PAUSE, intervals=intervals), BOUND_NS)
    assert found == {0: [Bystander(PAUSE, C, Window(ns(4.3), ns(10)))]}


# Another cause of a rebalance from 5 s to 9 s.

WINDOW, BLUR_NS = Window(ns(5), ns(9)), 1_000
CAME = "rebalance: other members came or went"


def rebalanced(begin_ns: int = ns(6), end_ns: int = ns(7), reason: str = "") -> Rebalance:
    return Rebalance(1, 2, begin_ns, end_ns, (A, B), reason, BLUR_NS)


def came(started_ns: int = ns(6), ended_ns: int = 0, name: str = C) -> Mapping[str, Life]:
    return {name: Life(name, started_ns=started_ns, ended_ns=ended_ns)}


@pytest.mark.parametrize(
    ("rounds", "lives", "cause"),
    [
        ([], {}, ""),
        ([], came(), ""),
        ([rebalanced()], {}, ""),
        ([rebalanced()], came(), CAME),
        ([rebalanced(end_ns=ns(5) - BLUR_NS, begin_ns=ns(3))], came(), CAME),
        ([rebalanced(end_ns=ns(5) - BLUR_NS - 1, begin_ns=ns(3))], came(), ""),
        ([rebalanced(ns(9), ns(10))], came(), CAME),
        ([rebalanced(ns(9) + 1, ns(10))], came(), ""),
        ([rebalanced()], came(ns(4)), CAME),
        ([rebalanced()], came(ns(4) - 1), ""),
        ([rebalanced()], came(ns(9)), CAME),
        ([rebalanced()], came(ns(9) + 1), ""),
        ([rebalanced()], came(ns(1), ns(6)), CAME),
        ([rebalanced()], came(ns(1), FOREVER), ""),
        ([rebalanced()], came(name=B), ""),
        ([rebalanced()], came(name="member-1.2"), ""),
        ([rebalanced()], {**came(name=B), **came()}, CAME),
        ([rebalanced(reason="cached metadata has changed")], came(), "rebalance: cached metadata has changed"),
        ([rebalanced(reason="its subscription changed")], {}, "rebalance: its subscription changed"),
        ([rebalanced(reason="rejoining")], {}, ""),
        ([rebalanced(reason="rejoining"), rebalanced(reason="new metadata")], {}, "rebalance: new metadata"),
    ],
)
def test_a_rebalance_has_another_cause_than_a_step(
    rounds: Sequence[Rebalance], lives: Mapping[str, Life], cause: str
) -> None:
    assert another_cause(tables(PAUSE, rounds=tuple(rounds), lives=lives), PAUSE, WINDOW) == cause


# A does not poll from 10 s to 30 s, and owns partition 0 all the time.

GAP = Window(ns(10), ns(30))
BEATS = [ns(at) for at in range(1, 40)]


def still(
    *gaps: Window,
    life: Mapping[str, Any] | None = None,
    intervals: Sequence[Interval] = (had(A, ns(1)),),
    beats: Sequence[int] = BEATS,
    end_ns: int = END_NS,
) -> Tables:
    lives = {name: Life(name, started_ns=ns(0.5)) for name in (B, A)}
    lives[A] = replace(lives[A], unpolled=gaps or (GAP,), **(life or {}))
    heard = tuple(Heartbeat(A, 1, at + LATE_NS, at + LATE_NS, 0, at % 2 == 0) for at in beats)
    return tables(PAUSE, end_ns=end_ns, lives=lives, intervals=tuple(intervals), heartbeats=heard)


@pytest.mark.parametrize(
    ("of", "windows"),
    [
        (still(), [GAP]),
        (still(Window(ns(10), ns(15))), []),
        (still(Window(ns(10), ns(15) + 1)), []),  # not heard of in that nanosecond
        (still(Window(ns(10) - 1, ns(15))), [Window(ns(10) - 1, ns(15))]),
        (still(Window(ns(3), ns(9)), Window(ns(1), ns(2)), GAP), [Window(ns(3), ns(9)), GAP]),
        (still(Window(ns(1), ns(7) + 1), beats=[ns(7) + 1]), [Window(ns(2), ns(7) + 1)]),  # calm since 2 s
        (still(end_ns=ns(16)), [Window(ns(10), ns(16))]),
        (still(end_ns=ns(15)), []),
        (still(beats=()), []),
        (still(beats=[ns(15)]), []),
        (still(beats=[ns(15) + 1]), [Window(ns(10), ns(15) + 1)]),
        (still(beats=[ns(9)]), []),
        (still(life={"paused": (Window(ns(9), ns(10) - 1),)}), [GAP]),
        (still(life={"paused": (Window(ns(9), ns(12)),)}), [Window(ns(12), ns(30))]),
        (still(life={"paused": (Window(ns(9), ns(12)), Window(ns(11), ns(11.5)))}), [Window(ns(12), ns(30))]),
        (still(life={"paused": (Window(ns(24), ns(25)),)}), []),
        (still(life={"paused": (Window(ns(30) + 1, ns(31)),)}), [GAP]),
        (still(intervals=()), []),
        (still(intervals=[had(B, ns(1))]), []),
        (still(intervals=[had(A, ns(1), returned_ns=0)]), []),
        (still(intervals=[had(A, ns(1), (ns(16), ns(17)))]), [Window(ns(10), ns(16))]),
        (still(intervals=[had(A, ns(1), (ns(15), ns(17)))]), []),
        (
            still(intervals=[had(A, ns(1), (ns(16), ns(16)), "died")], life={"ended_ns": ns(20)}),
            [Window(ns(10), ns(20))],
        ),
        (still(intervals=[had(A, ns(1))], life={"ended_ns": ns(20)}), [Window(ns(10), ns(20))]),
        (still(intervals=[had(A, ns(24), returned_ns=ns(24))]), [Window(ns(24), ns(30))]),
        (
            still(intervals=[had(A, ns(1), (ns(14), ns(14))), had(A, ns(13), (ns(19), ns(19)), tp=1)]),
            [Window(ns(10), ns(19))],
        ),
        (
            still(intervals=[had(A, ns(1), (ns(14), ns(14)), tp=1), had(A, ns(13), (ns(19), ns(19)), tp=0)]),
            [Window(ns(10), ns(19))],
        ),
        (
            still(intervals=[had(A, ns(1), (ns(14), ns(14))), had(A, ns(14) - 1, (ns(19), ns(19)), tp=1)]),
            [Window(ns(10), ns(19))],
        ),
        (still(intervals=[had(A, ns(1), (ns(14), ns(14))), had(A, ns(14), (ns(19), ns(19)), tp=1)]), []),
        (
            still(intervals=[had(A, ns(1), (ns(19), ns(19))), had(A, ns(2), (ns(12), ns(12)), tp=1)]),
            [Window(ns(10), ns(19))],
        ),
        (
            still(intervals=[had(A, ns(1), (ns(16), ns(16))), had(A, ns(17), (ns(29), ns(29)), returned_ns=ns(17))]),
            [Window(ns(10), ns(16)), Window(ns(17), ns(29))],
        ),
    ],
)
def test_a_member_did_not_poll_while_it_owned_something_and_was_heard_of(of: Tables, windows: Sequence[Window]) -> None:
    assert poll_gaps(of, BOUND_NS) == [PollGap(A, window) for window in windows]


def test_members_that_did_not_poll_come_in_the_order_of_their_names() -> None:
    of = still(intervals=[had(A, ns(1)), had(B, ns(1), tp=1)])
    lives = {name: replace(of.lives[name], unpolled=(GAP,)) for name in (B, A)}
    beats = tuple(Heartbeat(name, 1, ns(30) + LATE_NS, ns(31), 0) for name in (A, B))
    assert poll_gaps(replace(of, lives=lives, heartbeats=beats), BOUND_NS) == [PollGap(A, GAP), PollGap(B, GAP)]


# What remains of that, given the records that it worked on.

NOBODY_HAD = (-1, "", -1)


@pytest.mark.parametrize(
    ("signs", "hands", "left"),
    [
        ([], [], [(GAP, NOBODY_HAD)]),
        ([Window(ns(15), ns(25))], [], []),
        ([Window(ns(15) + 1, ns(25))], [], [(Window(ns(10), ns(15) + 1), NOBODY_HAD)]),
        ([Window(ns(15), ns(25) - 1)], [], [(Window(ns(25) - 1, ns(30)), NOBODY_HAD)]),
        (
            [Window(ns(22), ns(23)), Window(ns(16), ns(16))],
            [],
            [
                (Window(ns(10), ns(16)), NOBODY_HAD),
                (Window(ns(16), ns(22)), NOBODY_HAD),
                (Window(ns(23), ns(30)), NOBODY_HAD),
            ],
        ),
        ([Window(ns(11), ns(25)), Window(ns(12), ns(13))], [], []),
        ([], [HeldRecord(GAP, 2, 7)], [(GAP, (2, SLOW_HANDLER, 7))]),
        ([], [HeldRecord(Window(ns(1), FOREVER), 0, 0)], [(GAP, (0, SLOW_HANDLER, 0))]),
        ([], [HeldRecord(GAP, 2, 7), HeldRecord(GAP, 2, 3), HeldRecord(GAP, 3, 1)], [(GAP, (2, SLOW_HANDLER, 3))]),
        ([], [HeldRecord(Window(ns(10) + 1, ns(30)), 2, 7)], [(GAP, NOBODY_HAD)]),
        ([], [HeldRecord(Window(ns(10), ns(30) - 1), 2, 7)], [(GAP, NOBODY_HAD)]),
        (
            [Window(ns(16), ns(16))],
            [HeldRecord(Window(ns(10), ns(16)), 2, 7)],
            [(Window(ns(10), ns(16)), (2, SLOW_HANDLER, 7)), (Window(ns(16), ns(30)), NOBODY_HAD)],
        ),
    ],
)
def test_a_member_is_stuck_where_neither_polls_nor_records_went_on(
    signs: list[Window], hands: list[HeldRecord], left: Sequence[tuple[Window, tuple[int, str, int]]]
) -> None:
    """The second of two times; in the first one it worked."""
    works = [Activity([Window(ns(1), ns(9))], []), Activity(signs, hands)]
    times = [PollGap(B, Window(ns(1), ns(9))), PollGap(A, GAP)]
    assert [*stuck_members(times, BOUND_NS, works.__getitem__)] == [
        Detection("stuck-member", tp, (A,), cause, "", offset, *window) for window, (tp, cause, offset) in left
    ]
