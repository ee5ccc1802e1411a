"""The part of ``stuck-member`` that all detectors share: gaps between polls, without the work on records in them.

Each detector determines the work from the records itself. The oracle's rule has the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from fencepost.checkers.detections import Detection
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, Life, Window

SLOW_HANDLER = "slow handler"


class PollGap(NamedTuple):
    """A time in which a member owned partitions, was not paused, sent heartbeats, and did not poll."""

    incarnation: str
    window: Window


class HeldRecord(NamedTuple):
    """A record that a member had begun and not finished, and the window in which that was so."""

    window: Window
    tp: int
    offset: int


class Activity(NamedTuple):
    """The work of a member in one poll gap.

    Attributes:
        signs: windows in which it began or finished records, at intervals shorter than the bound.
        hands: the records that it was processing.
    """

    signs: list[Window]
    hands: list[HeldRecord]


def poll_gaps(tables: Tables, bound_ns: int) -> list[PollGap]:
    """The poll gaps longer than the bound in ``tables.calm``, sorted by incarnation and time."""
    calm, found = tables.calm, []
    lives = sorted(tables.lives.values(), key=lambda life: life.incarnation)
    gaps = [(life, gap) for life in lives for gap in (gap.common(calm) for gap in life.unpolled)]
    long = [(life, gap) for life, gap in gaps if gap.length_ns > bound_ns]  # nearly always none
    owned = _owned(tables, {life.incarnation: life for life, _ in long})
    for life, gap in long:
        for window in owned[life.incarnation]:
            alive = _alive(tables, life, gap.common(window))
            if alive.length_ns > bound_ns:
                found.append(PollGap(life.incarnation, alive))
    return found


def _owned(tables: Tables, lives: Mapping[str, Life]) -> Mapping[str, list[Window]]:
    """The windows in which each member owned any partition.

    A client calls callbacks only during a poll, so a member that stopped polling keeps its partitions until it ends.
    """
    found: dict[str, list[Window]] = {incarnation: [] for incarnation in lives}
    own = [i for i in tables.intervals if i.incarnation in lives and i.assigned_end_ns]
    for i in sorted(own, key=lambda i: i.assigned_end_ns):
        windows, ended_ns = found[i.incarnation], lives[i.incarnation].ended_ns or FOREVER
        end_ns = ended_ns if i.how in ("", "died") else i.given_up_begin_ns
        if windows and i.assigned_end_ns <= windows[-1].end_ns:
            windows[-1] = Window(windows[-1].begin_ns, max(windows[-1].end_ns, end_ns))
        else:
            windows.append(Window(i.assigned_end_ns, end_ns))
    return found


def _alive(tables: Tables, life: Life, window: Window) -> Window:
    """The part of a window after all pauses, up to the last heartbeat that the coordinator answered as a member's."""
    awake_ns = max([window.begin_ns, *(pause.end_ns for pause in life.paused if pause.meets(window))])
    own = (h.served.begin_ns for h in tables.heard_of.meeting(life.incarnation, window))
    return Window(awake_ns, max(own, default=0))


def stuck_members(times: Iterable[PollGap], bound_ns: int, work: Callable[[int], Activity]) -> Iterator[Detection]:
    """The parts of poll gaps, longer than the bound, in which a member neither began nor finished a record.

    Args:
        times: the poll gaps.
        bound_ns: the longest permitted time without work.
        work: returns the work in a poll gap by its number.
    """
    for number, (incarnation, window) in enumerate(times):
        signs, hands = work(number)
        reached_ns = window.begin_ns
        for sign in [*sorted(signs), Window(window.end_ns, window.end_ns)]:
            still = Window(reached_ns, sign.begin_ns)
            if still.length_ns > bound_ns:
                held = [(h.tp, h.offset) for h in hands if h.window.common(still) == still]
                tp, offset = min(held, default=(-1, -1))
                yield Detection("stuck-member", tp, (incarnation,), SLOW_HANDLER if held else "", "", offset, *still)
            reached_ns = max(reached_ns, sign.end_ns)
