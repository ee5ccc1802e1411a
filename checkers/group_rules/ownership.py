"""Rules about who owns what by the coordinator's log, and whether the members' callbacks agree with it."""

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

REST_NS = 5 * NS  # for so long nothing may have happened before callbacks and assignment are compared
REPORTED_NS = NS  # within so long a healthy client has told its program what a heartbeat told it


def coordinator_overlap(tables: Tables) -> Iterator[Detection]:
    """``coordinator-overlap``: after a record batch of the coordinator one partition belongs to two member ids.

    members: both incarnations (the member id where it is not known), by member id; times: when the batch was written;
    excuse: an act that made the partition (the consumer protocol knows topics by id: nobody waits for who has the one
    that is gone, KIP-848).
    """
    for both in tables.doubled:
        excuse, times = tables.recreated(both.tp, both.at_ns), (both.at_ns, both.at_ns)
        yield Detection("coordinator-overlap", both.tp, blamed(*both.incarnations), "", excuse, -1, *times)


def generation_regression(tables: Tables) -> Iterator[Detection]:
    """``generation-regression``: a generation (or epoch) is below the one that the coordinator wrote before it.

    Not after the group was deleted or empty, when it may begin anew. members: those of the round; times: its begin and
    end.
    """
    for before, now in pairwise(tables.rounds):
        if now.generation < before.generation and not now.restarted:
            yield Detection("generation-regression", -1, now.members, "", "", -1, now.begin_ns, now.end_ns)


def assignment_mismatch(tables: Tables) -> Iterator[Detection]:
    """``assignment-mismatch``: at rest, a member does not own what the coordinator's records give to it.

    Judged for the 5 s (plus one poll's work) before the end of the drain, or before the first member left because of
    it, if the group was at rest then: no fault was in effect, the host did not stand still, no process started or
    ended, no callback ran, and no record of an assignment or round may have been written.

    A sighting for a partition whose last record before gives it to a known incarnation which certainly has no open
    interval of it, and which the coordinator still told in that time that all is well: a heartbeat in the generation of
    the last round was accepted, 1 s (plus one poll's work) before the end or earlier. (Without that, it may be waiting
    for a round that others hold up.) A commit that was running excuses nothing but is no rest: then none.

    members: that incarnation, then who else has an open interval, if anybody; times: when it was given the partition,
    and the end.
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
    """How long the program works on what one poll returned, and so does not hear of its assignment."""
    workload = tables.asked.get("workload") or {}
    return round(float(workload.get("batch") or 0) * float(workload.get("handler_ms") or 0) * 1_000_000)


def _unrest(tables: Tables, rest: Window) -> bool:
    """Whether anything may have happened in a time that moves partitions or keeps members from hearing of it."""
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
    """Whether, at rest, the coordinator certainly took a heartbeat of the last round's generation from an owner, and
    answered it ``reported_ns`` before the end of that time; and its process lived on."""
    life = tables.lives.get(owner.incarnation)
    if life is None or (life.ended_ns and life.ended_ns <= rest.end_ns):
        return False  # what it sent before may arrive late
    last = next((r.generation for r in reversed(tables.rounds) if r.end_ns < rest.begin_ns), None)
    own = (h for h in tables.heartbeats_of.meeting(owner.incarnation, rest) if h.generation == last)
    return any(rest.begin_ns <= h.served.begin_ns and h.served.end_ns <= rest.end_ns - reported_ns for h in own)


def duplicate_instance(tables: Tables) -> Iterator[Detection]:
    """``duplicate-instance``: of two live processes with one static id, the older goes on after the newer was taken in.

    The coordinator accepted a heartbeat of the older one that it certainly received after it had answered an accepted
    one of the newer one, and its process had not ended. One sighting for each such pair; members: the older, the newer;
    times: that answer, and the last such heartbeat's answer.
    """
    known = sorted((x for x in tables.lives.values() if x.instance_id), key=lambda x: (x.started_ns, x.incarnation))
    taken_in = {name: min(h.served.end_ns for h in beats) for name, beats in tables.heartbeats_of.items()}
    for lives in IntervalIndex(known, lambda life: life.instance_id, lambda life: life.alive).values():
        for n, older in enumerate(lives):
            own = tables.heartbeats_of.get(older.incarnation)  # in the order in which they were received
            for newer in (lives[m] for m in range(n + 1, len(lives))):
                since = taken_in.get(newer.incarnation, FOREVER)
                if not own or newer.started_ns > own[-1].served.begin_ns:
                    break  # nobody is taken in before it starts
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
