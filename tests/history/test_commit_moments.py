"""On which side of a definition a moment or an offset is, for the rules about what the coordinator took for committed:
small tables in which one row differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.detections import Detection
from fencepost.checkers.group_rules.commits import commit_above_end
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.requests import LATE_NS, Request
from fencepost.checkers.tables.rows import AssignmentChange, Commit, DeclaredAction, Life, OffsetCommit, PerformedStep
from history.builder import ns
from history.test_callback_moments import LIVES, PARTITIONS, had
from history.test_coordination import A, B, C
from history.test_coordination_moments import shown

BLUR_NS = 1_000


def log(*written: tuple[int, str], tp: int = 0, **rows: Any) -> Tables:
    """Accepted commits of a partition, offsets with their writers (empty: not known), every 10 s from 10 s on."""
    accepted, asked = [], []
    for number, (offset, writer) in enumerate(written, 1):
        at_ns = ns(10 * number)
        accepted.append(OffsetCommit(tp, offset, 10 * number, at_ns, BLUR_NS))
        asked += [Request(tp, offset, writer, at_ns, at_ns, 0)] if writer else []
    return Tables(
        Path(),
        **{
            "partitions": PARTITIONS,
            "lives": LIVES,
            "accepted": tuple(accepted),
            "asked_commits": tuple(asked),
            **rows,
        },
    )


# The committed offset goes back.

REGRESSION = "commit-regression"


@pytest.mark.parametrize(
    ("written", "members"),
    [
        ([(10, A), (4, B)], [(B, A)]),
        ([(10, A), (0, B)], [(B, A)]),
        ([(10, A), (9, A)], [(A,)]),
        ([(10, A), (10, B)], []),
        ([(10, A), (-1, B)], []),
        ([(10, A), (-1, ""), (4, B)], []),
        ([(10, ""), (4, B)], [(B,)]),
        ([(10, A), (4, "")], [()]),
        ([(10, A), (4, B), (3, C)], [(B, A), (C, B)]),
    ],
)
def test_an_accepted_commit_below_the_one_before_it_is_a_regression(
    written: Sequence[tuple[int, str]], members: Sequence[tuple[str, ...]]
) -> None:
    numbers = range(1 + len(written) - len(members), 1 + len(written))
    found = shown(log(*written, tp=1), REGRESSION)
    assert found == [
        Detection(REGRESSION, 1, those, "", "", written[number - 1][0], ns(10 * number), ns(10 * number))
        for number, those in zip(numbers, members, strict=True)
    ]


def told(offset: int, begin_ns: int, end_ns: int, name: str = B, tp: int = 0) -> dict[str, Any]:
    """A broker told somebody a committed offset in that time."""
    return {"fetched": (Request(tp, offset, name, begin_ns + LATE_NS, end_ns, 0),)}


LOW_NS = ns(20) - BLUR_NS, ns(40) + BLUR_NS  # when the committed offset may have been low


@pytest.mark.parametrize(
    ("written", "rows", "causes"),
    [
        ([(10, A), (4, A), (9, A), (10, A)], {}, ["own retry"]),
        ([(10, A), (4, A), (9, A), (11, A)], {}, ["own retry"]),
        ([(10, A), (4, A), (9, A), (9, A)], {}, [""]),
        ([(10, A), (4, B), (9, A), (10, A)], {}, [""]),
        ([(10, A), (4, A), (9, B), (10, A)], {}, [""]),
        ([(10, A), (4, A), (9, A), (10, B)], {}, [""]),
        ([(10, B), (4, A), (9, A), (10, A)], {}, [""]),
        ([(10, ""), (4, ""), (9, ""), (10, "")], {}, [""]),
        ([(10, A), (4, B), (10, B)], {}, [""]),
        ([(10, A), (4, A), (10, A), (5, A)], {}, ["own retry", ""]),
        ([(10, A), (4, A), (9, A), (10, A)], told(4, ns(25), ns(26)), [""]),
        ([(10, A), (4, A), (9, A), (10, A)], told(9, ns(25), ns(26)), [""]),
        ([(10, A), (4, A), (9, A), (10, A)], told(10, ns(25), ns(26)), ["own retry"]),
        ([(10, A), (4, A), (9, A), (10, A)], told(4, ns(25), ns(26), "another"), ["own retry"]),
        ([(10, A), (4, A), (9, A), (10, A)], told(4, ns(25), ns(26), tp=1), ["own retry"]),
        ([(10, A), (4, A), (9, A), (10, A)], told(4, ns(15), LOW_NS[0]), [""]),
        ([(10, A), (4, A), (9, A), (10, A)], told(4, ns(15), LOW_NS[0] - 1), ["own retry"]),
        ([(10, A), (4, A), (9, A), (10, A)], told(4, LOW_NS[1], ns(45)), [""]),
        ([(10, A), (4, A), (9, A), (10, A)], told(4, LOW_NS[1] + 1, ns(45)), ["own retry"]),
    ],
)
def test_a_writer_puts_its_own_retry_right_before_anybody_is_told(
    written: Sequence[tuple[int, str]], rows: Mapping[str, Any], causes: Sequence[str]
) -> None:
    assert [s.cause for s in shown(log(*written, **rows), REGRESSION)] == causes


def dropped(begin_ns: int = ns(15), end_ns: int = ns(25), by: str = A) -> PerformedStep:
    return PerformedStep(0, "drop_packets", members=(by,), heals=True, begun_ns=begin_ns, healed_ns=end_ns)


@pytest.mark.parametrize(
    ("written", "connections", "step", "excused"),
    [
        # By the older connection, which brings nothing while the newer one brings 4, 10.
        ([(3, A), (4, A), (10, A), (4, A)], "1221", dropped(), True),
        ([(3, A), (4, A), (10, A), (4, A)], "1222", dropped(), False),
        ([(3, A), (4, A), (10, A), (4, A)], "1223", dropped(), False),  # it brings its first
        ([(3, A), (4, A), (10, A), (4, A)], "2221", dropped(), False),
        ([(3, A), (4, A), (10, A), (4, A)], "1121", dropped(ns(25), ns(26)), True),
        ([(3, A), (4, A), (10, A), (4, A)], "2121", dropped(), False),  # it is used beside the other one
        ([(3, A), (4, A), (10, A), (4, A)], "2121", dropped(ns(5)), False),
        ([(3, A), (4, A), (10, A), (4, A)], ["", "2", "2", ""], dropped(), False),
        ([(3, A), (4, A), (10, B), (4, A)], "1221", dropped(), False),
        ([(3, A), (4, A), (10, ""), (4, A)], "1221", dropped(), False),
        ([(3, A), (4, A), (10, A), (4, A)], "1221", dropped(by=B), False),
        ([(3, A), (4, A), (10, A), (4, A)], "1221", dropped(ns(20) - 1), True),
        ([(3, A), (4, A), (10, A), (4, A)], "1221", dropped(ns(20)), False),
        ([(3, A), (4, A), (10, A), (4, A)], "1221", dropped(ns(5), ns(10)), True),
        ([(3, A), (4, A), (10, A), (4, A)], "1221", dropped(ns(5), ns(10) - 1), False),
    ],
)
def test_a_request_is_late_that_a_connection_held_when_it_was_given_up_for_another_one(
    written: Sequence[tuple[int, str]], connections: Sequence[str], step: PerformedStep, excused: bool
) -> None:
    asked = log(*written)
    by_name = zip(
        asked.asked_commits, [name for name, (_, by) in zip(connections, written, strict=True) if by], strict=True
    )
    requests = tuple(request._replace(connection=name) for request, name in by_name)
    tables = replace(asked, asked_commits=requests, steps=(step,))
    assert [s.excuse for s in shown(tables, REGRESSION)] == ["drop_packets was in effect" if excused else ""]


def test_a_request_is_not_late_behind_a_commit_that_another_one_may_have_written() -> None:
    asked = log((3, A), (4, A), (10, A), (4, A))
    requests = [request._replace(connection=name) for request, name in zip(asked.asked_commits, "1221", strict=True)]
    tables = replace(asked, asked_commits=(*requests, requests[2]._replace(incarnation=B)), steps=(dropped(),))
    assert [s.excuse for s in shown(tables, REGRESSION)] == [""]


# Another one's partition: it is given to A at 5 s, and B commits at 10 s.

GIVEN = AssignmentChange(0, 5, ns(5), BLUR_NS, "a", A)
AT_NS = ns(10)


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (log((4, B), given=(GIVEN,)), "foreign-commit"),
        (log((4, B), given=(GIVEN._replace(order=9),)), "foreign-commit"),
        (log((4, B), given=(GIVEN._replace(order=11),)), ""),
        (log((4, B), given=(GIVEN._replace(tp=1),)), ""),
        (log((4, B), given=(GIVEN._replace(incarnation=""),)), ""),
        (log((4, A), given=(GIVEN,)), ""),
        (log((4, ""), given=(GIVEN,)), ""),
        (log((4, B), given=(GIVEN._replace(order=4, incarnation=B), GIVEN)), "foreign-commit"),
        (log((4, B), given=(GIVEN, GIVEN._replace(order=6, incarnation=B))), ""),
        (log((4, B), given=(GIVEN, GIVEN._replace(order=11, incarnation=B))), "foreign-commit"),
        (log((4, B), given=(GIVEN,), intervals=(had(B, ns(5) + BLUR_NS),)), "zombie-commit"),
        (log((4, B), given=(GIVEN,), intervals=(had(B, ns(5) + BLUR_NS + 1),)), "foreign-commit"),
        (log((4, B), given=(GIVEN,), intervals=(had(B, ns(1)), had(B, ns(7), number=1))), "zombie-commit"),
        (log((4, B), given=(GIVEN,), intervals=(had(B, ns(1), tp=1),)), "foreign-commit"),
    ],
)
def test_who_writes_a_commit_of_a_partition_that_was_given_to_another(of: Tables, kind: str) -> None:
    found = [s for name in ("foreign-commit", "zombie-commit") for s in shown(of, name)]
    assert found == ([Detection(kind, 0, (B, A), "", "", 4, AT_NS, AT_NS)] if kind else [])


def test_one_commit_that_is_right_hides_no_other() -> None:
    found = shown(log((3, ""), (4, A), (5, B), given=(GIVEN,)), "foreign-commit")
    assert [s.offset for s in found] == [5]


# Above the end.


@pytest.mark.parametrize(
    ("offset", "end", "reached", "above"),
    [
        (6, 5, {}, True),
        (5, 5, {}, False),
        (8, 5, {0: 7}, True),
        (7, 5, {0: 7}, False),
        (6, 5, {0: 3, 1: 9}, True),
        (1, 0, {}, True),
        (6, -1, {}, False),
        (6, None, {}, False),
    ],
)
def test_a_commit_is_above_the_end_of_the_log_and_all_that_there_was(
    offset: int, end: int | None, reached: Mapping[int, int], above: bool
) -> None:
    partitions = {} if end is None else {0: replace(PARTITIONS[0], log_end=end)}
    found = [*commit_above_end(log((offset, B), partitions=partitions), reached)]
    assert found == [Detection("commit-beyond-end", 0, (B,), "", "", offset, AT_NS, AT_NS)] * above


@pytest.mark.parametrize(("gap_ns", "excuse"), [(0, "declared act: set-offset"), (1, "")])
def test_a_declared_act_by_then_excuses_a_commit(gap_ns: int, excuse: str) -> None:
    acts = (DeclaredAction("set-offset", 0, AT_NS + gap_ns),)
    ended = {0: replace(PARTITIONS[0], log_end=1)}
    (above,) = commit_above_end(log((4, B), partitions=ended, acts=acts), {})
    (foreign,) = shown(log((4, B), given=(GIVEN,), acts=acts), "foreign-commit")
    back = (DeclaredAction("set-offset", 0, ns(20) + gap_ns),)
    (regression,) = shown(log((10, A), (4, B), acts=back), REGRESSION)
    assert [above.excuse, foreign.excuse, regression.excuse] == [excuse] * 3


# Told ok: A's commit of offset 5 of partition 0, from 14 s to 16 s. The coordinator's log is whole from 12 s on.

SILENT, MISSING = "silent-commit-failure", "acknowledged-commit-missing"
SAID_OK = Commit(0, 5, A, "a", 1, ns(14), ns(16), "ok", "", "sync")
BEFORE = (OffsetCommit(0, 3, 1, ns(11)), OffsetCommit(1, 8, 2, ns(11)), OffsetCommit(1, 9, 3, ns(12)))
REFUSED = Request(0, 5, A, ns(15), ns(15), BLUR_NS, "UNKNOWN_MEMBER_ID")


def said(*asked: Request, accepted: Sequence[OffsetCommit] = BEFORE, commit: Commit = SAID_OK, **rows: Any) -> Tables:
    return Tables(
        Path(),
        partitions=PARTITIONS,
        lives=LIVES,
        commits=(commit,),
        accepted=tuple(accepted),
        asked_commits=asked,
        **rows,
    )


def superseded(at_ns: int) -> tuple[OffsetCommit, ...]:
    """From when on the log is whole; one of other partitions is so only later, or never had two."""
    later = (OffsetCommit(2, 1, 4, ns(11)), OffsetCommit(2, 2, 5, ns(30)))
    return (*BEFORE[:2], BEFORE[2]._replace(at_ns=at_ns - BLUR_NS, uncertainty_ns=BLUR_NS), *later)


def written(at_ns: int, **changes: Any) -> tuple[OffsetCommit, ...]:
    return (*BEFORE, OffsetCommit(0, 5, 9, at_ns, BLUR_NS)._replace(**changes))


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (said(), MISSING),
        (said(accepted=()), MISSING),
        (said(accepted=BEFORE[:1]), ""),
        (said(accepted=BEFORE[1:2]), MISSING),
        (said(commit=SAID_OK._replace(outcome="info")), ""),
        (said(commit=SAID_OK._replace(outcome="fail")), ""),
        (said(commit=SAID_OK._replace(offset=-1)), ""),
        (said(accepted=written(ns(14) - BLUR_NS)), ""),
        (said(accepted=written(ns(14) - BLUR_NS - 1)), MISSING),
        (said(accepted=written(ns(16) + BLUR_NS)), ""),
        (said(accepted=written(ns(16) + BLUR_NS + 1)), MISSING),
        (said(accepted=written(ns(15), tp=1)), MISSING),
        (said(accepted=written(ns(15), offset=6)), MISSING),
        (said(accepted=superseded(ns(14))), MISSING),
        (said(accepted=superseded(ns(14) + 1)), ""),
        (said(REFUSED._replace(error=""), accepted=superseded(ns(14))), MISSING),
        (said(REFUSED._replace(begin_ns=ns(16), error=""), accepted=superseded(ns(15))), MISSING),
        (said(REFUSED._replace(begin_ns=ns(16), error=""), accepted=superseded(ns(15) + 1)), ""),
        (said(REFUSED), SILENT),
        (said(REFUSED, accepted=()), SILENT),
        (said(REFUSED, accepted=superseded(ns(20))), SILENT),
        (said(REFUSED._replace(error="REQUEST_TIMED_OUT")), MISSING),
        (said(REFUSED._replace(incarnation=B)), MISSING),
        (said(REFUSED._replace(tp=1)), MISSING),
        (said(REFUSED._replace(offset=6)), MISSING),
        (said(REFUSED, REFUSED._replace(begin_ns=ns(15.5), error="")), MISSING),
        (said(REFUSED._replace(begin_ns=ns(14.5), error=""), REFUSED), SILENT),
        (said(REFUSED._replace(begin_ns=ns(14) - BLUR_NS)), SILENT),
        (said(REFUSED._replace(begin_ns=ns(14) - BLUR_NS - 1)), MISSING),
        (said(REFUSED._replace(begin_ns=ns(16) + LATE_NS)), SILENT),
        (said(REFUSED._replace(begin_ns=ns(16) + LATE_NS + 1)), MISSING),
    ],
)
def test_what_the_client_was_told_and_the_coordinator_did(of: Tables, kind: str) -> None:
    found = [s for name in (SILENT, MISSING) for s in shown(of, name)]
    cause = "UNKNOWN_MEMBER_ID" if kind == SILENT else ""
    assert found == ([Detection(kind, 0, (A,), cause, "", 5, ns(14), ns(16))] if kind else [])


def test_offset_0_is_committed_like_any_other_and_one_that_was_written_hides_no_other() -> None:
    commits = (SAID_OK._replace(offset=3, begin_ns=ns(10), end_ns=ns(12)), SAID_OK._replace(offset=0))
    found = shown(replace(said(), commits=commits), MISSING)
    assert [s.offset for s in found] == [0]


STARTED_NS = ns(2)


@pytest.mark.parametrize(
    ("at_ns", "mode", "lives", "missing"),
    [
        (STARTED_NS - BLUR_NS, "auto", {A: Life(A, started_ns=STARTED_NS)}, False),
        (STARTED_NS - BLUR_NS - 1, "auto", {A: Life(A, started_ns=STARTED_NS)}, True),
        (STARTED_NS - BLUR_NS - 1, "auto", {}, False),
        (STARTED_NS, "sync", {A: Life(A, started_ns=STARTED_NS)}, True),
    ],
)
def test_an_automatic_commit_may_have_begun_since_its_incarnation_started(
    at_ns: int, mode: str, lives: Mapping[str, Life], missing: bool
) -> None:
    """The log is whole from 1 s on."""
    whole = (OffsetCommit(1, 8, 1, ns(0.5)), OffsetCommit(1, 9, 2, ns(1)))
    commit = SAID_OK._replace(mode=mode, begin_ns=SAID_OK.end_ns)
    of = said(accepted=(*whole, OffsetCommit(0, 5, 9, at_ns, BLUR_NS)), commit=commit)
    assert bool(shown(replace(of, lives=lives), MISSING)) == missing


@pytest.mark.parametrize(("gap_ns", "excuse"), [(0, "declared act: set-offset"), (1, "")])
def test_a_declared_act_before_its_begin_excuses_a_commit_that_is_missing(gap_ns: int, excuse: str) -> None:
    (found,) = shown(said(acts=(DeclaredAction("set-offset", 0, ns(14) + gap_ns),)), MISSING)
    assert found.excuse == excuse
