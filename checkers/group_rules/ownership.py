"""Rules about the owners of partitions in the coordinator's log, and whether the members' callbacks agree with it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.interval_index import IntervalIndex
from fencepost.checkers.tables.rows import FOREVER, NS, AssignmentChange, Window

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule

REST_NS = 5 * NS  # callbacks and assignment are compared only after a time of this length in which nothing happened
REPORTED_NS = NS  # a healthy client calls its callbacks within this time after the heartbeat that notified it


def coordinator_overlap(tables: Tables) -> Iterator[Detection]:
    """``coordinator-overlap``: after a record batch of the coordinator, one partition belongs to two member ids.

    members: both incarnations (or the member id, if the incarnation is unknown), sorted by member id; times: when the
    batch was written; excuse: an act that recreated the partition (the consumer protocol identifies topics by id, so
    the coordinator does not wait for the owner of the deleted partition, KIP-848).
    """
    for both in tables.doubled:
        excuse, times = tables.recreated(both.tp, both.at_ns), (both.at_ns, both.at_ns)
        yield Detection("coordinator-overlap", both.tp, blamed(*both.incarnations), "", excuse, -1, *times)


def generation_regression(tables: Tables) -> Iterator[Detection]:
    """``generation-regression``: a generation (or epoch) is below the one that the coordinator wrote before it.

    Generations may restart after the group was deleted or empty; that does not count. members: the members of the
    rebalance; times: its start and end.
    """
    for before, now in pairwise(tables.rounds):
        if now.generation < before.generation and not now.restarted:
            yield Detection("generation-regression", -1, now.members, "", "", -1, now.begin_ns, now.end_ns)


def assignment_mismatch(tables: Tables) -> Iterator[Detection]:
    """``assignment-mismatch``: in a stable group, a member does not own a partition that was assigned to it.

    Judged for the last 5 s (plus the work of one poll) before the first member left because the drain was over, or
    before the end of the drain. The group must have been at rest in that time: no fault was in effect, the host did not
    stand still, no process started or ended, no callback and no commit was running, and no record of an assignment, a
    removal or a rebalance may have been written.

    One detection for each partition whose last assignment record before that time names a known incarnation, if the
    incarnation certainly has no open interval of the partition, and if the coordinator accepted a heartbeat of it in
    that time: in the generation of the last rebalance, and at least 1 s (plus the work of one poll) before the end.
    (Without such a heartbeat, the member may be waiting for a rebalance that other members delay.)

    members: that incarnation, then the other incarnations with an open interval; times: when the partition was
    assigned to it, and the end.
    """
    end_ns, work_ns = tables.calm.end_ns, _poll_work_ns(tables)
    rest = Window(end_ns - REST_NS - work_ns, end_ns)
    if not tables.quiet.end_ns or _unrest(tables, rest):
        return
    for tp, rows in tables.given_of.items():
        last = [g for g in rows if g.at_ns < rest.begin_ns][-1:]
        open_ = sorted(i.incarnation for i in tables.intervals_by_tp.get(tp, ()) if i.possible_at(end_ns))
        for owner in last:
            if (
                owner.incarnation
                and owner.incarnation not in open_
                and _well(tables, owner, rest, REPORTED_NS + work_ns)
            ):
                members = blamed(owner.incarnation, *open_)
                yield Detection("assignment-mismatch", tp, members, "", "", -1, owner.at_ns, end_ns)


def _poll_work_ns(tables: Tables) -> int:
    """How long the program works on the records of one poll: until the next poll, its client calls no callback."""
    workload = tables.asked.get("workload") or {}
    return round(float(workload.get("batch") or 0) * float(workload.get("handler_ms") or 0) * 1_000_000)


def _unrest(tables: Tables, rest: Window) -> bool:
    """Whether anything may have happened in a window that moves partitions or delays the members' callbacks."""
    marks = [Window(g.at_ns - g.uncertainty_ns, g.at_ns + g.uncertainty_ns) for g in tables.given]
    marks += [Window(g.at_ns - g.uncertainty_ns, g.at_ns + g.uncertainty_ns) for g in tables.gone]
    marks += [Window(r.begin_ns - r.uncertainty_ns, r.end_ns + r.uncertainty_ns) for r in tables.rounds]
    marks += tables.stalls
    for step in tables.steps:
        if step.begun_ns:
            marks.append(step.in_effect)
    for life in tables.lives.values():
        marks += [Window(life.started_ns, life.started_ns), Window(life.last_sign_ns, life.ended_ns or FOREVER)]
    for i in tables.intervals:
        if i.assigned_end_ns or not i.how:
            marks.append(Window(i.assigned_begin_ns, i.assigned_end_ns or FOREVER))
        if i.how:
            marks.append(Window(i.given_up_begin_ns, i.given_up_end_ns))
    marks += [Window(c.begin_ns, c.end_ns or FOREVER) for c in tables.commits if not c.end_ns or c.end_ns > rest.end_ns]
    return any(mark.meets(rest) for mark in marks)


def _well(tables: Tables, owner: AssignmentChange, rest: Window, reported_ns: int) -> bool:
    """Whether the coordinator certainly accepted a heartbeat of an owner at rest, and its process lived on.

    The heartbeat has the generation of the last rebalance and was answered ``reported_ns`` before the end, or earlier.
    """
    life = tables.lives.get(owner.incarnation)
    if life is None or (life.ended_ns and life.ended_ns <= rest.end_ns):
        return False  # heartbeats that it sent before it ended may arrive late
    last = next((r.generation for r in reversed(tables.rounds) if r.end_ns < rest.begin_ns), None)
    own = (h for h in tables.heartbeats_of.meeting(owner.incarnation, rest) if h.generation == last)
    return any(rest.begin_ns <= h.served.begin_ns and h.served.end_ns <= rest.end_ns - reported_ns for h in own)


def duplicate_instance(tables: Tables) -> Iterator[Detection]:
    """``duplicate-instance``: two live processes have one static id, and the group keeps the older after the newer.

    The coordinator answered an accepted heartbeat of the newer process. It certainly received a heartbeat of the older
    process after that and accepted it, and the older process had not ended. One detection for each such pair. members:
    the older, the newer; times: the answer to the newer process, and the answer to the last such heartbeat of the
    older one.
    """
    known = sorted((x for x in tables.lives.values() if x.instance_id), key=lambda x: (x.started_ns, x.incarnation))
    joined = {name: min(h.served.end_ns for h in beats) for name, beats in tables.heartbeats_of.items()}
    for lives in IntervalIndex(known, lambda life: life.instance_id, lambda life: life.alive).values():
        for n, older in enumerate(lives):
            own = tables.heartbeats_of.get(older.incarnation)  # in the order in which brokers received them
            for newer in (lives[m] for m in range(n + 1, len(lives))):
                since = joined.get(newer.incarnation, FOREVER)
                if not own or newer.started_ns > own[-1].served.begin_ns:
                    break  # no process can join before it starts
                after = own[bisect_right(own, since, key=lambda h: h.served.begin_ns) :]
                lived = not older.ended_ns or older.ended_ns > since
                if after and lived and newer.started_ns != older.started_ns:
                    times = (since, max(h.end_ns for h in after))
                    yield Detection(
                        "duplicate-instance", -1, (older.incarnation, newer.incarnation), "", "", -1, *times
                    )


RULES: dict[Rule, tuple[str, ...]] = {
    coordinator_overlap: ("coordinator-overlap",),
    generation_regression: ("generation-regression",),
    assignment_mismatch: ("assignment-mismatch",),
    duplicate_instance: ("duplicate-instance",),
}
