"""Rules of the kernel about who worked when, on small tables written here: each edge on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_parts import TP, WHOLE, columns, owned, part, rows

from fencepost.checkers.kernel import times
from fencepost.checkers.kernel.ranges import FIRST, LAST, Task
from fencepost.checkers.kernel.tallies import Numbers
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Given, Interval, Life, Window

NAMES = ("a", "b", "c")
Work = tuple[str, int, int, int, int]  # by whom, in which interval, at which offset, when it was begun, and done


def at_work(work: Sequence[Work], task: Task = WHOLE, **tables: Any) -> Any:
    given = [(NAMES.index(name), *rest) for name, *rest in work]
    told = columns(("who", "interval", "offset", "begin_ns", "done_ns"), given)
    return part(Tables(Path(), **tables), rows(NAMES, **told), task)


# At the same time.


def overlap(*work: Work, task: Task = WHOLE, **tables: Any) -> dict[Any, Numbers]:
    of = at_work(sorted(work, key=lambda one: one[0]), task, **tables)
    times.processing_overlap(of)
    assert {key[:4:3] for key in of.tallies} <= {("processing-overlap", "")}
    return {key[2::2]: numbers for key, numbers in of.tallies.items()}


@pytest.mark.parametrize(
    ("work", "found"),
    [
        ([], {}),
        ([("a", 0, 7, 10, 20), ("b", 0, 8, 20, 30)], {}),
        ([("a", 0, 7, 10, 21), ("b", 0, 8, 20, 30)], {("a", "b"): Numbers(1, 7, 7, 20, 21)}),
        ([("b", 0, 7, 10, 21), ("a", 0, 8, 20, 30)], {("a", "b"): Numbers(1, 8, 8, 20, 21)}),
        ([("a", 0, 7, 10, 0), ("b", 0, 8, 5, 30)], {}),
        ([("a", 0, 7, 0, 20), ("b", 0, 8, 5, 30)], {}),
        ([("a", 0, 7, 20, 20), ("b", 0, 8, 10, 30)], {}),
        ([("a", 0, 7, 10, 20), ("a", 1, 8, 10, 20)], {}),
        (
            [("a", 0, 7, 10, 40), ("b", 0, 8, 15, 20), ("b", 0, 9, 30, 50)],
            {("a", "b"): Numbers(1, 7, 7, 15, 40)},
        ),
        (
            [("a", 0, 7, 10, 20), ("a", 0, 9, 20, 30), ("b", 0, 8, 15, 25)],
            {("a", "b"): Numbers(2, 7, 9, 15, 25)},
        ),
        (
            [("a", 0, 7, 10, 20), ("b", 0, 8, 12, 13), ("c", 0, 9, 15, 25)],
            {("a", "b"): Numbers(1, 7, 7, 12, 13), ("a", "c"): Numbers(1, 7, 7, 15, 20)},
        ),
    ],
)
def test_records_of_two_are_worked_on_at_the_same_time_where_one_begins_before_the_other_is_done(
    work: Sequence[Work], found: Mapping[Any, Numbers]
) -> None:
    assert overlap(*work) == {(members, ""): numbers for members, numbers in found.items()}


@pytest.mark.parametrize(
    ("intervals", "stale"),
    [
        ((owned("a", 0, 100), owned("b", 0, 101)), ("a", "b")),
        ((owned("a", 0, 100), owned("b", 0, 100)), ("a", "b")),
        ((owned("a", 0, 101), owned("b", 0, 100)), ("b", "a")),
        ((owned("a", 0, 100),), ("b", "a")),
        ((owned("a", 1, 100), owned("b", 0, 100)), ("a", "b")),
    ],
)
def test_of_two_at_work_the_one_is_stale_that_was_assigned_it_first(
    intervals: tuple[Interval, ...], stale: tuple[str, str]
) -> None:
    work = ("a", 0, 7, 110, 130), ("b", 0, 8, 120, 140)
    first = 7 if stale[0] == "a" else 8
    assert overlap(*work, intervals=intervals) == {(stale, ""): Numbers(1, first, first, 120, 130)}


FROZEN = "in flight when frozen"


@pytest.mark.parametrize(
    ("begin_ns", "done_ns", "other", "found"),
    [
        (40, 70, (50, 60), None),
        (40, 70, (49, 60), ((49, 50), FROZEN)),
        (40, 70, (50, 61), ((60, 61), FROZEN)),
        (50, 70, (60, 65), ((60, 65), "")),
        (40, 60, (45, 55), ((45, 50), "")),
        (51, 59, (52, 58), None),
        (60, 70, (55, 65), ((60, 65), "")),
        (40, 50, (45, 55), ((45, 50), "")),
        (40, 95, (82, 88), None),
        (40, 95, (70, 72), ((70, 72), FROZEN)),
    ],
)
def test_nobody_works_while_it_is_frozen(
    begin_ns: int, done_ns: int, other: tuple[int, int], found: tuple[tuple[int, int], str] | None
) -> None:
    lives = {"a": Life("a", paused=(Window(80, 90), Window(50, 60)))}
    told = {(("a", "b"), found[1]): Numbers(1, 7, 7, *found[0])} if found else {}
    assert overlap(("a", 0, 7, begin_ns, done_ns), ("b", 0, 8, *other), lives=lives) == told
    older = (owned("a", 0, 30), owned("b", 0, 20))
    told = {(("b", "a"), ""): Numbers(1, 8, 8, *found[0])} if found else {}
    assert overlap(("a", 0, 7, begin_ns, done_ns), ("b", 0, 8, *other), lives=lives, intervals=older) == told


def test_the_pauses_of_one_are_not_those_of_another() -> None:
    lives = {name: Life(name, paused=(Window(20, 30),)) for name in "ac"}
    found = overlap(("a", 0, 6, 5, 8), ("b", 0, 7, 10, 40), ("c", 0, 8, 15, 35), lives=lives)
    assert found == {(("b", "c"), ""): Numbers(1, 7, 7, 15, 35)}


@pytest.mark.parametrize(
    ("spans", "met"), [((), False), (((15, 16),), True), (((20, 25),), False), (((5, 10),), False), (((5, 11),), True)]
)
def test_a_task_of_some_windows_looks_at_what_reaches_into_them(spans: Sequence[tuple[int, int]], met: bool) -> None:
    task = Task(TP, FIRST, LAST, "overlap", tuple(spans))
    found = overlap(("a", 0, 7, 10, 20), ("b", 0, 8, 10, 20), task=task)
    assert found == ({(("a", "b"), ""): Numbers(1, 7, 7, 10, 20)} if met else {})


def test_a_task_of_some_offsets_tells_when_each_stream_was_at_work() -> None:
    work = [("a", 0, 7, 10, 20), ("a", 0, 8, 9, 15), ("a", 2, 9, 30, 31), ("b", 0, 7, 12, 0), ("c", 0, 7, 11, 40)]
    of = at_work(work, Task(TP, 0, 10, "offsets"))
    times.processing_overlap(of)
    assert of.tallies == {
        ("#span", TP, ("a",), "0", ""): Numbers(from_ns=9, to_ns=20),
        ("#span", TP, ("a",), "2", ""): Numbers(from_ns=30, to_ns=31),
        ("#span", TP, ("c",), "0", ""): Numbers(from_ns=11, to_ns=40),
    }


# Although it was given up, or given away.


def stale(*work: tuple[int, int, int], how: str = "revoked", **tables: Any) -> dict[Any, Numbers]:
    """Of records (offset, begin, done) of an interval of ``b`` from 100 to 199."""
    more = tables.pop("intervals", ())
    found = at_work([("b", 0, *one) for one in work], intervals=(owned("b", 0, 100, how=how), *more), **tables)
    times.stale_work(found)
    return {(kind, *about): numbers for (kind, _, *about), numbers in found.tallies.items()}


def late(how: str) -> tuple[str, Any, str, str]:
    return "processing-after-revocation", ("b",), how, ""


@pytest.mark.parametrize("how", ["revoked", "lost", "closed", "died", "reassigned"])
@pytest.mark.parametrize(
    ("work", "found"),
    [
        ([(7, 199, 220)], None),
        ([(7, 200, 220)], Numbers(1, 7, 7, 200, 220)),
        ([(7, 200, 0)], Numbers(1, 7, 7, 200, 200)),
        ([(9, 210, 220), (7, 199, 230), (8, 200, 205)], Numbers(2, 8, 9, 200, 220)),
        ([(7, 0, 0)], None),
    ],
)
def test_work_that_was_begun_after_its_partition_was_given_up_or_lost_is_late(
    how: str, work: Sequence[tuple[int, int, int]], found: Numbers | None
) -> None:
    assert stale(*work, how=how) == ({late(how): found} if found and how in ("revoked", "lost") else {})


@pytest.mark.parametrize(
    ("name", "begin_ns", "count"), [("b", 205, 1), ("b", 210, 1), ("b", 206, 1), ("b", 211, 2), ("a", 205, 2)]
)
def test_work_that_was_begun_in_another_interval_of_its_member_is_not_late(
    name: str, begin_ns: int, count: int
) -> None:
    other = owned(name, 1, begin_ns)
    found = stale((7, 204, 220), (8, 210, 220), intervals=(other,))
    assert {key: numbers.count for key, numbers in found.items()} == {late("revoked"): count}


A_OWNS = Given(TP, 0, 150, 5, "id-a", "a")
BACKLOG = ("work-after-reassignment", ("b", "a"), "", "")


@pytest.mark.parametrize(
    ("given", "begin_ns", "is_stale"),
    [
        ((), 155, False),
        ((A_OWNS,), 154, False),
        ((A_OWNS,), 155, True),
        ((A_OWNS._replace(incarnation="b"),), 155, False),
        ((A_OWNS._replace(incarnation=""),), 155, False),
        ((A_OWNS, Given(TP, 1, 180, 5, "id-b", "b")), 174, True),
        ((A_OWNS, Given(TP, 1, 180, 5, "id-b", "b")), 175, False),
        ((A_OWNS, Given(TP, 1, 180, 5, "id-b", "b")), 185, False),
        ((A_OWNS,), 0, False),
    ],
)
def test_work_is_stale_that_was_begun_while_another_certainly_owned_it(
    given: tuple[Given, ...], begin_ns: int, is_stale: bool
) -> None:
    """One record alone, and one beside others that were begun before."""
    assert stale((7, begin_ns, 198), given=given) == ({BACKLOG: Numbers(1, 7, 7, begin_ns, 198)} if is_stale else {})
    both = stale((6, 110, 120), (7, begin_ns, 0), given=given)
    assert both == ({BACKLOG: Numbers(1, 7, 7, begin_ns, begin_ns)} if is_stale else {})


def test_work_is_late_or_else_stale() -> None:
    found = stale((7, 198, 199), (8, 200, 201), (9, 0, 0), given=(A_OWNS,))
    assert found == {BACKLOG: Numbers(1, 7, 7, 198, 199), late("revoked"): Numbers(1, 8, 8, 200, 201)}


def test_each_owner_meanwhile_is_told() -> None:
    given = (A_OWNS, Given(TP, 1, 180, 5, "id-c", "c"))
    found = stale((7, 160, 0), (8, 170, 0), (9, 190, 0), given=given)
    assert found == {
        BACKLOG: Numbers(2, 7, 8, 160, 170),
        ("work-after-reassignment", ("b", "c"), "", ""): Numbers(1, 9, 9, 190, 190),
    }


def test_what_was_delivered_in_no_interval_is_of_nobody() -> None:
    of = at_work([("a", -1, 7, 300, 310), ("b", 0, 8, 300, 310)], intervals=(owned("b", 0, 100),))
    times.stale_work(of)
    assert [key[2] for key in of.tallies] == [("b",)]
