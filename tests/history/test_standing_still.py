"""Who or what stood still, by records and evidence, and everything that excuses it: one story, told in many ways.

``wrong`` must show exactly what is listed first; each other way differs from it in one thing. Every way is judged by
the oracle, and by the kernel with whole partitions and with ranges of a few records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.facts import Bounds
from fencepost.checkers.sentences import example
from fencepost.checkers.spark.finder import find_here
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.history import State
from history.builder import HistoryBuilder, MemberTeller

A, B = "member-0.1", "member-1.1"
Told = tuple[str, str, tuple[str, ...], int, int, float, float]  # cause, excuse, members, partition, offset, from, to
BOUNDS = Bounds(stuck_ns=10 * NS)


def shown(h: HistoryBuilder, kind: str, bounds: Bounds = BOUNDS) -> list[Told]:
    """What the oracle finds of a kind, and the kernel too; times in seconds since the run's start."""
    run = h.seal()
    tables = load(run)
    found, facts = oracle.judge(run, tables, bounds)
    assert not facts.failed
    assert find_here(run, tables, bounds)[0] == found
    assert find_here(run, tables, bounds, 3)[0] == found
    own = [a for a in found if a.kind == kind]
    assert all(a.count == 1 for a in own)
    for anomaly in own:
        print(example(tables, anomaly)["sentence"])

    def second(at_ns: int) -> float:
        return round((at_ns - tables.origin_ns) / NS, 3)

    return [
        (a.cause, a.excuse, a.members, a.partition, a.first_offset, second(a.from_ns), second(a.to_ns)) for a in own
    ]


def idle(h: HistoryBuilder) -> tuple[MemberTeller, MemberTeller]:
    """Two members with a partition each, of which everything is consumed; the quiet window is from 1 s to 40 s."""
    h.write(10)
    h.write(4, 1)
    a, b = h.member(0), h.member(1)
    a.assigned(0.8)
    b.assigned(0.8, 1)
    a.process(range(10), 2)
    b.process(range(4), 2, 1)
    a.commit(10, 3)
    b.commit(4, 3, 1)
    return a, b


def ended(*members: MemberTeller) -> None:
    for member in members:
        for tp in sorted(member.held):
            member.revoked(38, tp)
        member.close(39)


STILL: Told = ("", "", (A,), -1, -1, 5.0, 25.0)
STUCK: Mapping[str, Sequence[Told]] = {
    "wrong": [STILL],
    "polls in time": [],
    "polls late in the middle": [("", "", (A,), -1, -1, 5.0, 16.0)],
    "never polls again": [("", "", (A,), -1, -1, 5.0, 29.0)],
    "never polls again, and dies": [("", "", (A,), -1, -1, 5.0, 25.0)],
    "owns nothing": [],
    "owned nothing for long enough": [],
    "sends no heartbeats": [],
    "stops to send heartbeats": [],
    "heartbeats are refused": [],
    "heartbeats tell it to join": [STILL],
    "paused in it": [],
    "paused at its begin": [("", "", (A,), -1, -1, 7.0, 25.0)],
    "finishes records": [],
    "finishes a record": [("", "", (A,), -1, -1, 12.0, 25.0)],
    "works on one record": [("slow handler", "", (A,), 0, 9, 6.0, 22.0)],
    "hangs in a record": [("slow handler", "", (A,), 0, 9, 6.0, 25.0)],
    "another works": [STILL],
    "before the quiet window": [],
    "ends in the quiet window": [("", "", (A,), -1, -1, 14.1, 25.0)],
    "others leave": [],
    "no drain": [],
}


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("way", STUCK)
def test_a_member_that_stops_to_poll_and_what_excuses_it(tmp_path: Path, way: str, classic: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=classic)
    a, b = idle(h)
    if way == "owns nothing":
        a.revoked(4)
    if way == "owned nothing for long enough":
        a.revoked(14.9)
    error = {"heartbeats are refused": "UNKNOWN_MEMBER_ID", "heartbeats tell it to join": "REBALANCE_IN_PROGRESS"}
    if way != "sends no heartbeats":
        for at in range(1, 15 if way == "stops to send heartbeats" else 31):
            a.heartbeat(at, error=error.get(way) if at > 5 else None)  # received up to a second earlier
    if not way.startswith("never polls again"):
        a.unpolled(5, 14.9 if way == "polls in time" else 16 if way == "polls late in the middle" else 25)
    if way in ("paused in it", "paused at its begin"):
        a.pause(14 if way == "paused in it" else 6, 15.5 if way == "paused in it" else 7)
        h.phases["heal"] = (4.0, 4.5)  # as if a pause could outlast the healing
    work(a, b, way)
    surround(h, way)
    if way == "others leave":
        h.phases["drain"] = (4.0, 40.0)
        b.revoked(14, 1)
        b.close(14.5)
    else:
        ended(b)
    if way == "never polls again, and dies":
        a.die(25, polled=5)
    elif way == "never polls again":
        a.die(45, polled=5)
    else:
        ended(a)
    assert shown(h, "stuck-member") == STUCK[way]


def work(a: MemberTeller, b: MemberTeller, way: str) -> None:
    """What is done with records while A does not poll."""
    if way == "finishes records":
        a.rows[8].begin(4).end(14)
        a.rows[9].begin(14).end(15.5)
    if way == "finishes a record":
        a.rows[9].begin(4).end(12)
    if way == "works on one record":
        a.rows[9].begin(6).end(22)
        a.rows[8].begin(4).end(6)
    if way == "hangs in a record":
        a.rows[9].begin(6).done_ns, a.rows[9].state = 0, State.BEGUN
    if way == "ends in the quiet window":
        a.rows[9].begin(2.5).end(14)
    if way == "another works":
        b.rows[3].begin(12).end(14)


def surround(h: HistoryBuilder, way: str) -> None:
    if way in ("before the quiet window", "ends in the quiet window"):
        h.fault("move_coordinator", 4)
        h.phases["heal"] = (14.0, 24.0 if way == "before the quiet window" else 14.1)
    if way == "no drain":
        h.phases["drain"] = (20.1, None)
