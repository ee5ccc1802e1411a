"""Who or what stood still, by records and evidence, and everything that excuses it: one story, told in many ways.

``wrong`` must show exactly what is listed first; each other way differs from it in one thing. Every way is judged by
the oracle, and by the kernel with whole partitions and with ranges of a few records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.explanations import example
from fencepost.checkers.spark.detector import find_here
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.history import RecordState
from history.builder import HistoryBuilder, MemberTeller

A, B = "member-0.1", "member-1.1"
Told = tuple[str, str, tuple[str, ...], int, int, float, float]  # cause, excuse, members, partition, offset, from, to
BOUNDS = Bounds(stuck_ns=10 * NS)


def shown(h: HistoryBuilder, kind: str, bounds: Bounds = BOUNDS) -> list[Told]:
    """What the oracle finds of a kind, and the kernel too; times in seconds since the run's start."""
    run = h.seal()
    tables = load(run)
    found, facts = oracle.detect(run, tables, bounds)
    assert not facts.failed
    assert find_here(run, tables, bounds)[0] == found
    assert find_here(run, tables, bounds, 3)[0] == found
    own = [a for a in found if a.kind == kind]
    assert all(a.count == 1 for a in own)
    for anomaly in own:
        sentence = str(example(tables, anomaly)["sentence"])
        assert all(part in sentence for part in (*anomaly.members, "orders-"))
        assert not re.search(r"an unknown|unknown members|  |\(\)|-\d+\.\d+ s|\.\.", sentence), sentence

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


# Members.

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
        a.rows[9].begin(6).done_ns, a.rows[9].state = 0, RecordState.BEGUN
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


# Partitions, after a step that was over, and beside one. The steps' bound is shorter than that of standing still.

RECOVERS = Bounds(stuck_ns=30 * NS, recovers_ns=5 * NS)
SLOW: Told = ("step 0 (pause)", "", (A,), 0, 6, 10.01, 16.0)
RECOVERIES: Mapping[str, Sequence[Told]] = {
    "wrong": [SLOW],
    "no promise": [],
    "in time": [],
    "nothing waits": [],
    "what waits came late": [],
    "what waits came a little late": [("step 0 (pause)", "", (A,), 0, 6, 10.501, 16.0)],
    "slow only later": [],
    "another partition": [("step 0 (pause)", "", (B,), 1, 0, 10.01, 16.0)],
    "nobody owns it": [("step 0 (pause)", "", (), 0, 6, 10.01, 16.0)],
    "no leader": [("step 0 (pause)", "no leader", (A,), 0, 6, 10.01, 16.0)],
    "nothing to heal": [("step 0 (move_coordinator)", "", (A,), 0, 6, 10.0, 16.0)],
    "not proven": [],
    "not healed": [],
    "another step begins": [],
    "another step begins late": [("step 0 (pause)", "", (A,), 0, 6, 10.01, 15.5)],
    "another step is in effect": [],
    "another step was over": [SLOW],
    "all leave": [],
    "no drain": [],
}


@pytest.mark.parametrize("way", RECOVERIES)
def test_a_partition_that_is_not_delivered_soon_enough_after_a_step(tmp_path: Path, way: str) -> None:
    h = HistoryBuilder(tmp_path, 2)
    h.phases = {"warm-up": (0.0, 1.0), "heal": (20.0, 20.1), "drain": (20.2, None if way == "no drain" else 40.0)}
    h.write(10)
    h.write(3, 1)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    b.assigned(1, 1)
    a.process(range(10 if way == "nothing waits" else 6), 2)
    delay = {"what waits came late": 10.9, "what waits came a little late": 10.0}.get(way, 0)
    h.produced[6:10] = [p._replace(acked_ns=p.acked_ns + round(delay * NS)) for p in h.produced[6:10]]
    fault = "move_coordinator" if way == "nothing to heal" else "pause"
    until = None if way == "nothing to heal" else 10
    at = 10 if way == "nothing to heal" else 4
    h.fault(fault, at, until, members=("member-9.1",), proven=way != "not proven", healed=way != "not healed")
    if way.startswith("another step"):
        begin, end = {"begins": (15, 17), "begins late": (15.5, 17), "is in effect": (9, 12), "was over": (5, 9)}[
            way.removeprefix("another step ")
        ]
        h.fault("black_hole", begin, end, step=1)
    if way == "nobody owns it":
        a.revoked(9)
    if way == "no leader":
        h.leader(-1, 12)
    if way == "slow only later":
        a.process([6], 11)
    b.process(range(3), 16 if way == "another partition" else 12, 1)
    if way == "nobody owns it":
        a.assigned(15.9)
    late = {"another partition": 12, "in time": 15, "all leave": 15, "slow only later": 17}
    if way != "nothing waits":
        rest = range(7 if way == "slow only later" else 6, 10)
        a.process(rest, late.get(way, 16))
    a.commit(10, 18)
    if way == "all leave":  # before the bound is over
        h.phases["drain"] = (11.0, 40.0)
        a.rows[6:], a.ords[0] = [], 6
        a.revoked(14)
        a.close(14.5)
    else:
        ended(a)
    ended(b)
    assert shown(h, "slow-recovery", Bounds() if way == "no promise" else RECOVERS) == RECOVERIES[way]


BESIDE: Told = ("step 0 (pause)", "", (A,), 0, 6, 4.0, 15.0)
REASON = "rebalance: cached metadata has changed"
STOPS: Mapping[str, Sequence[Told]] = {
    "wrong": [BESIDE],
    "eager": [],
    "in time": [],
    "nothing waits": [],
    "hit itself": [],
    "hit in another life": [],
    "hit by another step": [],
    "another step of others": [BESIDE],
    "a broker's step": [],
    "nobody in particular": [],
    "a broker's step in it": [],
    "owned for too short": [],
    "not healed": [],
    "no drain": [],
    "no leader": [("step 0 (pause)", "no leader", (A,), 0, 6, 4.0, 15.0)],
    "paused by its owner": [("step 0 (pause)", "paused by its owner", (A,), 0, 6, 4.0, 15.0)],
    "paused and resumed": [BESIDE],
    "paused by another": [BESIDE],
    "a rebalance for another reason": [("step 0 (pause)", REASON, (A,), 0, 6, 4.0, 15.0)],
    "a rebalance": [BESIDE],
    "a rebalance when another came": [
        ("step 0 (pause)", "rebalance: other members came or went", (A,), 0, 6, 4.0, 15.0)
    ],
    "another came": [BESIDE],
}


@pytest.mark.parametrize("way", STOPS)
def test_a_partition_that_stops_while_a_fault_hits_others(tmp_path: Path, way: str) -> None:
    h = HistoryBuilder(tmp_path, protocol="eager" if way == "eager" else "cooperative", classic=True)
    h.phases = {"warm-up": (0.0, 1.0), "heal": (20.0, 20.1), "drain": (20.2, None if way == "no drain" else 40.0)}
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(10 if way == "nothing waits" else 6), 2)
    hit = {
        "hit itself": (A,),
        "hit in another life": ("member-0.7",),
        "nobody in particular": (),
        "a broker's step": (),
    }.get(way, (b.name,))
    brokers = (1,) if way == "a broker's step" else ()
    h.fault("pause", 4, 19, members=hit, brokers=brokers, healed=way != "not healed")
    beside(h, way)
    if way == "owned for too short":
        a.revoked(13.9)
        a.assigned(14)
    if way != "nothing waits":
        a.process(range(6, 10), 13.9 if way == "in time" else 15)
    a.commit(10, 21)
    ended(a, b)
    assert shown(h, "collateral-stall") == STOPS[way]


def beside(h: HistoryBuilder, way: str) -> None:
    """What happens while B is hit."""
    others = {"hit by another step": (A,), "another step of others": ("member-8.1",), "a broker's step in it": ()}
    if way in others:
        h.fault("bounce", 8, 9, step=1, members=others[way], brokers=() if others[way] else (2,))
    if way == "no leader":
        h.leader(-1, 8)
    if way.startswith("paused"):  # of the 11 s that records wait, 10 s are allowed
        by = h.members[1] if way == "paused by another" else h.members[0]
        by.pauses(3, 4.9 if way == "paused and resumed" else 5.1)
    if way.startswith("a rebalance"):
        a, b = h.members
        h.join(a, 8)
        if way == "a rebalance for another reason":
            h.requests[-1]["reason"] = "cached metadata has changed"
        h.round(9, (a, [0]), (b, []), generation=7)
    if way in ("a rebalance when another came", "another came"):
        h.member(2, at=7.5)
