"""Lookups about commits in the small tables, shared by several rules. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencepost.checkers.tables.answers import KIND, NOT_SEEN, answers, unseen
from fencepost.checkers.tables.rows import FOREVER, Commit, Interval, OffsetCommit, Window
from fencepost.checkers.tables.tables import Tables

NOT_A_MEMBER = ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID")  # the coordinator does not know the member
FENCES = ("ILLEGAL_GENERATION", *NOT_A_MEMBER)


def is_fence(commit: Commit) -> bool:
    """Whether the answer to a commit says that its member is no longer in the generation in which it committed.

    False for an automatic commit of the client (``auto``): the program did not see the answer.
    """
    return commit.error in FENCES and commit.mode != "auto"


def reported_offsets(tables: Tables, interval: Interval, first_ns: int) -> tuple[tuple[int, ...], bool]:
    """Every committed offset that an owner may have fetched before its first delivery at ``first_ns``, and whether the
    client may have reset its position.

    These are the offsets that were in force between its assigned callback and its first delivery. If a broker logged
    fetches by the incarnation in that time, only offsets until the answer to the last fetch count (it is unknown which
    answer the client used). -1 stands for no committed offset. A client may reset its position if there was no
    committed offset, or one above the end of the log.
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
    """Whether a client that fetched one of these offsets may have reset its position."""
    return min(offsets) < 0 or max(offsets) > tables.log_end(tp) >= 0


def answered_offsets(
    tables: Tables, interval: Interval, first_ns: int, begins: Callable[[Sequence[int], bool], bool]
) -> tuple[str, str] | None:
    """The kind and cause of the finding about an interval, if no offset in force explains its first delivery at
    ``first_ns``; None: a broker's answer explains it, and nothing shows that the answer was wrong.

    Args:
        begins: called with offsets, and whether the client may reset its position; returns whether a client that
            fetched one of these offsets begins at the first delivery.
    """
    known = answers(tables, interval, first_ns)
    right = [answer for answer in known if begins((answer.offset,), may_reset(tables, interval.tp, (answer.offset,)))]
    if any(answer in tables.stale for answer in right):
        return KIND, "wrong-start"
    if right:
        return None
    possible = () if known else unseen(tables, interval.tp, Window(interval.assigned_begin_ns, first_ns))
    return "wrong-start", NOT_SEEN if possible and begins(possible, False) else ""


def tried_past(tables: Tables, final: OffsetCommit) -> bool:
    """Whether any member ever tried to commit past the final committed offset, with any outcome."""
    return tables.highest_tried.get(final.tp, -1) > final.offset


def back_ns(tables: Tables, fence: Commit) -> int:
    """When the first generation with the incarnation began after the generation of its refused commit; FOREVER: never.

    A generation of the same number also counts as later if it was written after the refusal: a coordinator may fail
    before it writes a generation, and the next coordinator continues from the last written number. Returns 0 if the
    commit's generation is unknown: the incarnation may have rejoined at once.
    """
    if fence.generation < 0:
        return 0
    since = tables.rounds_of.meeting(fence.incarnation, Window(fence.generation, FOREVER))
    after = (one for _, one in since if one.generation > fence.generation or one.end_ns > fence.end_ns)
    return next((one.begin_ns for one in after), FOREVER)


def hindrance(tables: Tables, incarnation: str, after_ns: int) -> tuple[int, str]:
    """The first fault or stall of the host that may have cut a member off from the group at or after ``after_ns``.

    Returns its start and a phrase; ``(FOREVER, "")`` if there is none. A fault counts if it was in effect on the member
    or on a broker.
    """
    found = [(w.begin_ns, "the host stood still") for w in tables.stalls if w.end_ns >= after_ns]
    for step in tables.steps:
        if step.begun_ns and step.in_effect.end_ns >= after_ns and (incarnation in step.members or step.brokers):
            found.append((step.begun_ns, f"{step.fault} was in effect"))
    return min(found, default=(FOREVER, ""))
