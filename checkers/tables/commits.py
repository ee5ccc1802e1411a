"""Questions about commits that several rules ask of the small tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencepost.checkers.tables.answers import KIND, NOT_SEEN, answers, unseen
from fencepost.checkers.tables.rows import FOREVER, Accepted, Commit, Interval, Window
from fencepost.checkers.tables.tables import Tables

NOT_A_MEMBER = ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID")  # as by a coordinator that does not know the member
FENCES = ("ILLEGAL_GENERATION", *NOT_A_MEMBER)


def is_fence(commit: Commit) -> bool:
    """Whether the answer to a commit says that its member is out of the generation in which it committed.

    Not of one that the client made by itself: nobody was told whose poll, or loop, could stop.
    """
    return commit.error in FENCES and commit.mode != "auto"


def told_offsets(tables: Tables, interval: Interval, first_ns: int) -> tuple[tuple[int, ...], bool]:
    """Every committed offset that an owner may have been told before its first delivery at ``first_ns``.

    That is from its assigned callback on; if a broker logged that it fetched offsets in that time, to the answer of
    the last of these fetches (nobody knows which one the client went by, nor when it began). -1 stands for none; and
    whether the client may have reset its position: there was none, or one above the end that the log has.
    """
    asked = Window(interval.assigned_begin_ns, first_ns)
    until_ns = 0
    for fetch in tables.fetched_of.meeting((interval.incarnation, interval.tp), asked):
        until_ns = max(until_ns, fetch.served.end_ns)
        if until_ns >= first_ns:
            break
    asked = Window(asked.begin_ns, min(until_ns or first_ns, first_ns))
    offsets = tables.committed_between(interval.tp, *asked)
    return offsets, may_reset(tables, interval.tp, offsets)


def may_reset(tables: Tables, tp: int, offsets: Sequence[int]) -> bool:
    """Whether a client that was told one of these offsets may have reset its position."""
    return min(offsets) < 0 or max(offsets) > tables.log_end(tp) >= 0


def answered_offsets(
    tables: Tables, interval: Interval, first_ns: int, begins: Callable[[Sequence[int], bool], bool]
) -> tuple[str, str] | None:
    """What became of an interval that began, at its first delivery at ``first_ns``, where no offset in force sends it:
    the kind and cause of the finding; None: it began where a broker had told it to, and nothing shows that this was
    wrong.

    Args:
        begins: whether who is told one of some offsets, and may reset its position or not, begins there.
    """
    told = answers(tables, interval, first_ns)
    right = [answer for answer in told if begins((answer.offset,), may_reset(tables, interval.tp, (answer.offset,)))]
    if any(answer in tables.stale for answer in right):
        return KIND, "wrong-start"
    if right:
        return None
    may = () if told else unseen(tables, interval.tp, Window(interval.assigned_begin_ns, first_ns))
    return "wrong-start", NOT_SEEN if may and begins(may, False) else ""


def tried_past(tables: Tables, final: Accepted) -> bool:
    """Whether any member ever tried to commit past an offset, with whatever outcome."""
    return tables.highest_tried.get(final.tp, -1) > final.offset


def back_ns(tables: Tables, fence: Commit) -> int:
    """When the first generation after that of a refused commit began that its incarnation was in; else never.

    One of the same number comes after it, too, if it was written after the refusal: a coordinator that had counted so
    far did not live to write it down, and the next one counts on from what was written. Where nobody told which
    generation that was, it may have been back at once.
    """
    if fence.generation < 0:
        return 0
    since = tables.rounds_of.meeting(fence.incarnation, Window(fence.generation, FOREVER))
    after = (one for _, one in since if one.generation > fence.generation or one.end_ns > fence.end_ns)
    return next((one.begin_ns for one in after), FOREVER)


def hindrance(tables: Tables, incarnation: str, after_ns: int) -> tuple[int, str]:
    """What first kept a member from hearing of the group from ``after_ns`` on, and since when; else never.

    A fault that was in effect, on the member or on a broker; or a stall of the host.
    """
    found = [(w.begin_ns, "the host stood still") for w in tables.stalls if w.end_ns >= after_ns]
    for step in tables.steps:
        if step.begun_ns and step.in_effect.end_ns >= after_ns and (incarnation in step.members or step.brokers):
            found.append((step.begun_ns, f"{step.fault} was in effect"))
    return min(found, default=(FOREVER, ""))
