"""Kernel rules about what a fault leaves behind: records that wait, and records that are processed again."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fencepost.checkers.detections import blamed
from fencepost.checkers.group_rules.recovery import LEAST_NORMAL_NS, NormalWait, before_faults, begun_steps
from fencepost.checkers.kernel.aggregates import Aggregates, Label, Totals
from fencepost.checkers.kernel.arrays import Array
from fencepost.checkers.kernel.stalls import acknowledged_ns, owner_at
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.promises.recovers import NO_BASELINE

KIND, AGAIN = "too-many-duplicates", "#done-again"


def slow_catch_up(part: TaskData) -> None:
    """``slow-catch-up``: some time after a step was over, records have been waiting for longer than normal."""
    if not part.judged.catch_ups:
        return
    normal, offsets, late_ns, seen_ns = _late(part)
    order = np.argsort(late_ns, kind="stable")
    order = order[late_ns[order] < seen_ns[order]]
    offsets, late_ns, seen_ns = offsets[order], late_ns[order], seen_ns[order]
    latest_ns = np.maximum.accumulate(seen_ns)
    for step, recovery in part.judged.catch_ups:
        due_ns = recovery.begin_ns + part.judged.bounds.catches_up_ns
        at_due = (late_ns <= due_ns) & (due_ns < seen_ns)
        if not at_due.any():
            continue
        ends = np.maximum(latest_ns, due_ns)
        gaps = np.flatnonzero(late_ns[1:] > ends[:-1])
        end_ns = min(int(ends[gaps[0] if len(gaps) else -1]), recovery.end_ns)
        leader = "no leader" if part.tables.leaderless(part.tp, recovery.begin_ns, end_ns) else ""
        excuse = part.tables.declared(part.tp, end_ns) or leader or ("" if normal.known else NO_BASELINE)
        first = int(offsets[at_due].min())
        label = Label(blamed(owner_at(part, due_ns)), step.name, excuse)
        part.aggregates.put("slow-catch-up", part.tp, label, Totals(1, first, first, recovery.begin_ns, end_ns))


def _late(part: TaskData) -> tuple[NormalWait, Array, Array, Array]:
    """How long records wait as a rule; and those that waited for longer: offsets, since when they were late, and their
    first deliveries."""
    before, longest_ns, unfinished_ns = before_faults(part.tables), -1, 0
    found = [(np.empty(0, np.int64),) * 3]
    for lot in part.lots:
        acked_ns, seen_ns = acknowledged_ns(lot), lot.delivered_ns
        waits = lot.visible & (acked_ns >= 0)
        waits[: lot.places.below(part.start)] = False
        calm = waits & (acked_ns >= before.begin_ns) & (acked_ns < before.end_ns)
        ended = calm & (seen_ns < before.end_ns)
        longest_ns = max(longest_ns, int(np.maximum(seen_ns[ended] - acked_ns[ended], 0).max(initial=-1)))
        unfinished_ns = max(unfinished_ns, int((before.end_ns - acked_ns[calm & ~ended]).max(initial=0)))
        places = np.flatnonzero(waits & (seen_ns - acked_ns > LEAST_NORMAL_NS))
        found.append((lot.places.offsets(places), acked_ns[places], seen_ns[places]))
    offsets, acked_ns, seen_ns = (np.concatenate(columns) for columns in zip(*found, strict=True))
    normal = NormalWait.of(longest_ns, unfinished_ns)
    return normal, offsets, acked_ns + normal.bound_ns, seen_ns


def done_again(part: TaskData) -> None:
    """``#done-again``, which ``too_many_duplicates`` adds up: the records that were processed again after each step."""
    begun = begun_steps(part.tables) if part.judged.bounds.done_again >= 0 else []
    if not begun or not len(part.refinished):
        return
    rows = part.rows.in_turn(part.refinished)
    names = np.argsort(np.argsort(rows.names))[rows.who]
    rows = rows.take(np.lexsort((rows.ord, names, rows.delivered_ns, rows.done_ns, rows.offset)))
    repeated = np.diff(rows.offset, prepend=-1) == 0
    again, first = rows.take(np.flatnonzero(repeated)), np.flatnonzero(~repeated)
    who = rows.who[first[np.cumsum(~repeated)[repeated] - 1]]
    before = np.searchsorted([s.begun_ns for s in begun], again.delivered_ns, "right")
    counts = np.flatnonzero((before > 0) & (part.declared(again.delivered_ns)[0] == 0))
    again, before, who = again.take(counts), before[counts], who[counts]

    def after(number: int, who: int) -> Label:
        return Label((rows.names[who],), begun[number - 1].name)

    times = again.done_ns
    part.aggregates.put_many(AGAIN, part.tp, [before, who], after, first=again.offset, from_ns=times, to_ns=times)


def too_many_duplicates(aggregates: Aggregates, most: int) -> None:
    """``too-many-duplicates``: the records that tasks found with ``done_again``, for steps with more than ``most``."""
    found = {key: numbers for key, numbers in aggregates.items() if key[0] == AGAIN}
    totals: Counter[str] = Counter()
    for (_, _, _, cause, _), numbers in found.items():
        totals[cause] += numbers.count
    for (_, tp, members, cause, _), numbers in found.items():
        if totals[cause] > most:
            aggregates.put(KIND, tp, Label(members, cause), numbers)
