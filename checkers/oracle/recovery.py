"""Rules about what a fault leaves behind: records that wait, and records that are processed again."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.group_rules.recovery import NormalWait, before_faults, begun_steps, under_load
from fencepost.checkers.oracle.progress import owner_at
from fencepost.checkers.promises.recovers import NO_BASELINE
from fencepost.checkers.tables.rows import FOREVER, Window

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule

FIRST_DONE = attrgetter("done_ns", "delivered_ns", "incarnation", "ord")


def slow_catch_up(history: History) -> Iterator[Detection]:
    """``slow-catch-up``: ``bounds.catches_up_ns`` after a step was over, a partition has not caught up.

    A record *waits* from its acknowledgement to its first delivery by any member; records that are not visible, not
    acknowledged or below the group's start do not count. It is *late* while it has been waiting for at least as long
    as is normal in its partition: 1.2 times the longest wait that began after the warm-up and ended before the first
    step began, and at least 1 s.

    For each recovery (see ``slow-recovery``; it ends with the heal phase, when the load ends), one detection for each
    partition in which a record is late at the moment when the bound is over. offset: the smallest such record; times:
    from when the step was over to the first moment from then on at which no record is late, or to the end of the
    recovery.

    members: the owner at that moment, as in ``stuck-partition``; cause: the step's name. excuse, the first that holds:
    a declared act on the partition; ``no leader``: the partition had possibly no leader at some time between;
    ``NO_BASELINE``: no wait ended before the first step, or one had lasted for longer than normal by then.
    """
    bound_ns, tables = history.bounds.catches_up_ns, history.tables
    windows = under_load(tables, bound_ns)
    for tp in history.log if windows else ():
        waits = _waits(history, tp)
        normal = _normal(history, waits)
        late = {o: Window(w.begin_ns + normal.bound_ns, w.end_ns) for o, w in waits.items()}
        late = {o: w for o, w in late.items() if w.begin_ns < w.end_ns}
        for step, recovery in windows:
            due_ns = end_ns = recovery.begin_ns + bound_ns
            at_due = [offset for offset, w in late.items() if w.begin_ns <= due_ns < w.end_ns]
            if not at_due:
                continue
            for window in sorted(late.values()):
                if window.begin_ns <= end_ns:
                    end_ns = max(end_ns, window.end_ns)
            times = (recovery.begin_ns, min(end_ns, recovery.end_ns))
            leader = "no leader" if tables.leaderless(tp, *times) else ""
            excuse = tables.declared(tp, times[1]) or leader or ("" if normal.known else NO_BASELINE)
            owner = owner_at(history, tp, due_ns)
            yield Detection("slow-catch-up", tp, blamed(owner), step.name, excuse, min(at_due), *times)


def _waits(history: History, tp: int) -> Mapping[int, Window]:
    """The time in which each record of a partition waits, by offset."""
    waits = {}
    for offset in history.log[tp]:
        sent, rows = history.acknowledged.get((tp, offset)), history.of_offset.get((tp, offset))
        if sent and offset >= history.start(tp):
            waits[offset] = Window(sent.acked_ns, rows[0].delivered_ns if rows else FOREVER)
    return waits


def _normal(history: History, waits: Mapping[int, Window]) -> NormalWait:
    before = before_faults(history.tables)
    calm = [wait for wait in waits.values() if before.begin_ns <= wait.begin_ns < before.end_ns]
    ended = (max(0, wait.length_ns) for wait in calm if wait.end_ns < before.end_ns)
    others = (before.end_ns - wait.begin_ns for wait in calm if wait.end_ns >= before.end_ns)
    return NormalWait.of(max(ended, default=-1), max(others, default=0))


def too_many_duplicates(history: History) -> Iterator[Detection]:
    """``too-many-duplicates``: after a step, more than ``bounds.done_again`` records were processed again.

    Every finish of an offset but the first (by ``done_ns``, ``delivered_ns``, incarnation, ``ord``) counts for the last
    step that had begun when the record was delivered to it; it does not count if there was none, or if a declared act
    excuses it. If those of one step are too many in all partitions together, each is a detection. members: the
    incarnation that finished the offset first; cause: the step's name; times: ``done_ns``.
    """
    most = history.bounds.done_again
    begun = begun_steps(history.tables)
    again: dict[str, list[Detection]] = defaultdict(list)
    for tp, offset in history.of_offset if most >= 0 else ():
        rows = sorted(history.finished(tp, offset), key=FIRST_DONE)
        for row in rows[1:]:
            before = bisect_right(begun, row.delivered_ns, key=attrgetter("begun_ns"))
            if before and not history.declared(tp, row.delivered_ns):
                name, times = begun[before - 1].name, (row.done_ns, row.done_ns)
                again[name].append(
                    Detection("too-many-duplicates", tp, (rows[0].incarnation,), name, "", offset, *times)
                )
    for found in again.values():
        yield from found if len(found) > most else ()


RULES: dict[Rule, tuple[str, ...]] = {
    slow_catch_up: ("slow-catch-up",),
    too_many_duplicates: ("too-many-duplicates",),
}
