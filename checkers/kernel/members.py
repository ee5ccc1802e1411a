"""Kernel rule ``stuck-member``: what members did while they did not poll; the driver combines it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import Detection
from fencepost.checkers.group_rules.poll_gaps import Activity, HeldRecord, stuck_members
from fencepost.checkers.kernel.aggregates import Aggregates, Label, Totals
from fencepost.checkers.kernel.context import KernelContext
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.rows import Window

Array = NDArray[Any]


def stuck_member(part: TaskData) -> None:
    """What ``stuck_member_of`` needs, for each poll gap of a member.

    ``#work``: when records of the partition were begun or finished; times that are at most the bound apart make one
    window. ``#hand``: which ones were in hand for longer than the bound.
    """
    for number, (incarnation, window) in enumerate(part.judged.unpolled):
        if incarnation in part.rows.names:
            report = _report_of_effects if part.tables.by_effect else _report
            report(part, str(number), incarnation, window)


def _report_of_effects(part: TaskData, number: str, incarnation: str, window: Window) -> None:
    """By the rule ``effect`` the time of processing is unknown: a member that was delivered any record may have worked
    all the time."""
    rows = part.rows
    own = rows.who == rows.names.index(incarnation)
    if (rows.delivered_ns[own] < window.end_ns).any():
        numbers = Totals(from_ns=window.begin_ns, to_ns=window.end_ns)
        part.aggregates.put("#work", part.tp, Label((incarnation,), number, str(window.begin_ns)), numbers)


def _report(part: TaskData, number: str, incarnation: str, window: Window) -> None:
    rows, bound_ns = part.rows, part.judged.bounds.stuck_ns
    who = rows.names.index(incarnation)
    own = slice(*rows.bounds[who : who + 2])
    begin_ns, done_ns = rows.begin_ns[own], rows.done_ns[own]
    times = np.unique(np.concatenate([begin_ns, done_ns]))
    times = times[(times > window.begin_ns) & (times < window.end_ns)]
    firsts = times[np.diff(times, prepend=window.begin_ns - bound_ns - 1) > bound_ns]
    lasts = times[np.diff(times, append=window.end_ns + bound_ns + 1) > bound_ns]
    for from_ns, to_ns in zip(firsts.tolist(), lasts.tolist(), strict=True):
        label = Label((incarnation,), number, str(from_ns))
        part.aggregates.put("#work", part.tp, label, Totals(from_ns=from_ns, to_ns=to_ns))
    done_ns = np.where(done_ns == 0, window.end_ns, done_ns)
    long = np.minimum(done_ns, window.end_ns) - begin_ns > bound_ns
    held = np.flatnonzero((begin_ns > 0) & (done_ns > window.begin_ns) & long)
    since = np.concatenate([[window.begin_ns], lasts])[np.searchsorted(firsts, begin_ns[held], "right")]
    until = np.concatenate([firsts, [window.end_ns]])[np.searchsorted(lasts, done_ns[held], "left")]
    offsets = rows.offset[own][held]
    for from_ns, to_ns in sorted({*zip(since.tolist(), until.tolist(), strict=True)}):
        first = int(offsets[(since == from_ns) & (until == to_ns)].min())
        label = Label((incarnation,), number, f"{from_ns} {to_ns}")
        part.aggregates.put("#hand", part.tp, label, Totals(1, first, first, from_ns, to_ns))


def stuck_member_of(aggregates: Aggregates, judged: KernelContext) -> Iterator[Detection]:
    """``stuck-member``: the parts of the poll gaps without work, by the aggregates of all tasks."""
    works: dict[int, Activity] = defaultdict(lambda: Activity([], []))
    for (kind, tp, _, number, _), n in aggregates.items():
        if kind == "#work":
            works[int(number)].signs.append(Window(n.from_ns, n.to_ns))
        elif kind == "#hand":
            works[int(number)].hands.append(HeldRecord(Window(n.from_ns, n.to_ns), tp, n.first))
    return stuck_members(judged.unpolled, judged.bounds.stuck_ns, works.__getitem__)
