"""Rules of the kernel about records that come again, on small tables written here: each edge on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_parts import TP, USUAL, columns, owned, part, rows

from fencepost.checkers.facts import Bounds
from fencepost.checkers.kernel import repeats
from fencepost.checkers.kernel.tallies import Numbers
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Accepted, Act, Commit, Gone, Interval, Step
from fencepost.history import State

NAMES = ("a", "b", "c")
Delivery = tuple[
    str, int, int, int, int
]  # by whom, in which interval, which offset, when it was got, and done (0: never)


def delivered(given: Sequence[Delivery], tables: Tables, bounds: Bounds = USUAL) -> Any:
    ordered = [(NAMES.index(name), *rest) for name, *rest in sorted(given, key=lambda row: row[0])]
    told = columns(("who", "interval", "offset", "delivered_ns", "done_ns"), ordered)
    told["state"] = np.where(told["done_ns"] > 0, State.DONE, State.DELIVERED)
    return part(tables, rows(NAMES, **told), bounds=bounds, log={"offset": np.arange(20)}, sent=[])


# In another interval.

FIRST_OWNED, *LATER = owned("a", 0, 100), owned("b", 0, 300), owned("a", 1, 500)


def again(
    *given: tuple[str, int, int, int], first: Interval = FIRST_OWNED, **more: Any
) -> dict[Any, tuple[int, int, int]]:
    """Of offset 7 (by whom, in which interval, when it was got, and done): how often, and when, by kind, members and
    excuse."""
    tables = Tables(Path(), intervals=(first, *LATER), **more)
    of = delivered([(name, number, 7, got, done) for name, number, got, done in given], tables)
    repeats.repeats(of)
    assert all((n.first, n.last) == (7, 7) for n in of.tallies.values())
    return {(kind, *about): (n.count, n.from_ns, n.to_ns) for (kind, _, *about), n in of.tallies.items()}


BY_A, BY_B = ("a", 0, 110, 150), ("b", 0, 310, 350)
AVOIDABLE, BELOW = "avoidable-redelivery", "redelivery-below-commit"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([BY_A], {}),
        ([BY_A, ("b", 0, 310, 0)], {}),
        ([BY_A, BY_B], {(AVOIDABLE, ("a", "b"), "", ""): (1, 350, 350)}),
        ([BY_A, ("a", 0, 120, 160)], {}),
        ([BY_A, ("a", 1, 510, 550)], {(AVOIDABLE, ("a",), "", ""): (1, 550, 550)}),
        ([("a", 0, 110, 650), BY_B], {(AVOIDABLE, ("a", "b"), "", ""): (1, 350, 350)}),
        (
            [BY_A, BY_B, ("a", 1, 510, 550)],
            {(AVOIDABLE, ("a", "b"), "", ""): (1, 350, 350), (AVOIDABLE, ("b", "a"), "", ""): (1, 550, 550)},
        ),
        ([BY_A, ("b", -1, 101, 350)], {(AVOIDABLE, ("a", "b"), "", ""): (1, 350, 350)}),
        ([BY_A, ("b", -1, 99, 350)], {("redelivery", ("b", "a"), "", ""): (1, 150, 150)}),
    ],
)
def test_what_was_finished_comes_again_in_an_interval_that_was_assigned_later(
    given: Sequence[tuple[str, int, int, int]], found: Mapping[Any, tuple[int, int, int]]
) -> None:
    assert again(*given) == found


def test_of_two_records_one_after_the_other_none_comes_again() -> None:
    of = delivered(
        [("a", 0, 7, 110, 150), ("a", 0, 7, 120, 160), ("b", 0, 8, 310, 350), ("b", 0, 8, 320, 360)], Tables(Path())
    )
    repeats.repeats(of)
    assert of.tallies == {}


@pytest.mark.parametrize(
    ("accepted", "kind"),
    [
        ([(8, 250, 260)], BELOW),
        ([(7, 250, 260)], AVOIDABLE),
        ([(8, 250, 300)], BELOW),
        ([(8, 250, 301)], AVOIDABLE),
        ([(8, 250, 260), (7, 310, 0)], AVOIDABLE),
        ([(8, 250, 260), (7, 311, 0)], BELOW),
    ],
)
def test_a_record_comes_again_below_all_that_its_new_owner_may_have_been_told(
    accepted: Sequence[tuple[int, int, int]], kind: str
) -> None:
    """By the first delivery of its interval, whatever that was of."""
    told = tuple(Accepted(TP, offset, n, at_ns, 0, ok_ns) for n, (offset, at_ns, ok_ns) in enumerate(accepted))
    members = ("b", "a") if kind == BELOW else ("a", "b")
    assert again(BY_A, BY_B, accepted=told) == {(kind, members, "", ""): (1, 350, 350)}
    later = [("a", 0, 7, 110, 150), ("b", 0, 7, 390, 395), ("b", 0, 2, 310, 0)]
    of = delivered([later[0], later[2], later[1]], Tables(Path(), intervals=(FIRST_OWNED, *LATER), accepted=told))
    repeats.repeats(of)
    assert [key[0] for key in of.tallies] == [kind]


@pytest.mark.parametrize(("at_ns", "kind"), [(310, AVOIDABLE), (311, BELOW)])
def test_who_has_no_interval_may_have_been_told_until_its_delivery(at_ns: int, kind: str) -> None:
    told = (Accepted(TP, 8, 0, 250, 0, 260), Accepted(TP, 7, 1, at_ns))
    assert [key[0] for key in again(BY_A, ("b", -1, 310, 350), accepted=told)] == [kind]


def commit(begin_ns: int, outcome: str) -> Commit:
    return Commit(TP, 5, "a", "id-a", 1, begin_ns, begin_ns + 1, outcome)


@pytest.mark.parametrize(
    ("how", "commits", "excuse"),
    [
        ("died", [], "former owner died"),
        ("lost", [], "former owner lost it"),
        ("revoked", [commit(150, "fail")], "final commit was refused"),
        ("closed", [commit(150, "fail")], "final commit was refused"),
        ("closed", [commit(150, "")], "final commit was not answered"),
        ("revoked", [commit(160, "info"), commit(150, "fail")], "final commit was not answered"),
        ("revoked", [commit(160, "ok"), commit(150, "fail")], ""),
        ("revoked", [commit(99, "fail")], ""),
        ("reassigned", [commit(150, "fail")], ""),
        ("", [commit(150, "fail")], None),
    ],
)
def test_why_the_former_owner_could_not_commit(how: str, commits: Sequence[Commit], excuse: str | None) -> None:
    kind = "redelivery" if excuse or excuse is None else AVOIDABLE
    found = again(BY_A, BY_B, first=owned("a", 0, 100, how=how), commits=tuple(commits))
    assert [*found] == [(kind, ("a", "b"), "", excuse or "")]


@pytest.mark.parametrize(
    ("how", "at_ns", "excuse"),
    [
        ("revoked", 199, "former owner was removed"),
        ("revoked", 200, ""),
        ("", 999, "former owner was removed"),
        ("died", 150, "former owner died"),
    ],
)
def test_a_former_owner_was_removed_before_it_gave_the_partition_up(how: str, at_ns: int, excuse: str) -> None:
    first = owned("a", 0, 100, how=how)
    found = again(BY_A, BY_B, first=first, gone=(Gone("id-a", "a", 1, at_ns, 0),))
    assert [key[-1] for key in found] == [excuse]


@pytest.mark.parametrize("how", ["revoked", "died"])
@pytest.mark.parametrize("since_ns", [310, 311])
def test_a_declared_act_by_the_delivery_excuses_it_before_all_else(how: str, since_ns: int) -> None:
    found = again(BY_A, BY_B, first=owned("a", 0, 100, how=how), acts=(Act("reset", TP, since_ns),))
    otherwise = "former owner died" if how == "died" else ""
    assert [key[-1] for key in found] == ["declared act: reset" if since_ns == 310 else otherwise]
    told = (Accepted(TP, 8, 0, 250, 0, 260),)
    below = again(BY_A, BY_B, accepted=told, acts=(Act("reset", TP, since_ns),))
    assert [*below] == [(BELOW, ("b", "a"), "", "declared act: reset" if since_ns == 310 else "")]


# For ever.


def loops(*given: tuple[str, int, int], deliveries: int = 4, **more: Any) -> dict[Any, Numbers]:
    """Of (by whom, offset, when): where 4 are enough, and 10 long."""
    of = delivered(
        [(name, 0, offset, at, 0) for name, offset, at in given],
        Tables(Path(), **more),
        Bounds(loop_deliveries=deliveries, loop_ns=10),
    )
    repeats.redelivery_loop(of)
    assert {(*key[:2], key[4]) for key in of.tallies} <= {("redelivery-loop", TP, "")}
    return {(key[2], key[3]): numbers for key, numbers in of.tallies.items()}


def sevens(*times: int) -> list[tuple[str, int, int]]:
    return [("a", 7, at) for at in times]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (sevens(100, 101, 102, 103), {}),
        (sevens(100, 101, 102, 103, 104), {(("a",), "count"): Numbers(1, 7, 7, 100, 104)}),
        (sevens(100, 105, 110), {}),
        (sevens(100, 105, 111), {(("a",), "standing"): Numbers(1, 7, 7, 100, 111)}),
        (sevens(100, 111), {}),
        (sevens(100, 105, 106, 107, 111), {(("a",), "count"): Numbers(1, 7, 7, 100, 111)}),
        ([("a", 7, 100), ("b", 7, 105), ("b", 7, 111)], {(("b",), "standing"): Numbers(1, 7, 7, 100, 111)}),
        ([("a", 7, 100), ("b", 7, 105), ("a", 7, 111)], {(("a",), "standing"): Numbers(1, 7, 7, 100, 111)}),
        (
            [("b", 0, at) for at in (90, 95, 101)] + [("a", 1, 100)] * 4 + [("a", 9, at) for at in range(100, 105)],
            {(("b",), "standing"): Numbers(1, 0, 0, 90, 101), (("a",), "count"): Numbers(1, 9, 9, 100, 104)},
        ),
    ],
)
def test_a_record_loops_that_comes_too_often_or_three_times_in_too_long_a_time(
    given: Sequence[tuple[str, int, int]], found: Mapping[Any, Numbers]
) -> None:
    assert loops(*given) == found


@pytest.mark.parametrize("deliveries", [1, 2, 3])
def test_few_deliveries_are_too_often_where_fewer_are_promised(deliveries: int) -> None:
    times = range(100, 101 + deliveries)
    assert [*loops(*sevens(*times), deliveries=deliveries)] == [(("a",), "count")]
    assert loops(*sevens(*times[1:]), deliveries=deliveries) == {}


@pytest.mark.parametrize(
    ("begun_ns", "times", "cause"),
    [
        (90, range(100, 106), None),
        (105, range(100, 106), None),
        (89, range(100, 106), "count"),
        (106, range(100, 106), "count"),
        (90, range(100, 107), "count"),
        (90, (100, 105, 111), None),
        (89, (100, 105, 111), "standing"),
        (111, (100, 105, 111), None),
        (112, (100, 105, 111), "standing"),
        (0, (100, 105, 111), "standing"),
        (90, (100, 105, 106, 107, 111), None),
    ],
)
def test_a_fault_around_it_lets_a_record_come_two_times_more_and_stand(
    begun_ns: int, times: Sequence[int], cause: str | None
) -> None:
    found = loops(*sevens(*times), steps=(Step(1, "pause", begun_ns=begun_ns),))
    assert [*found] == ([(("a",), cause)] if cause else [])


@pytest.mark.parametrize(
    ("offset", "at_ns", "stands"), [(8, 100, False), (8, 99, True), (7, 105, True), (8, 112, True)]
)
def test_a_record_does_not_stand_while_something_above_it_is_accepted(offset: int, at_ns: int, stands: bool) -> None:
    assert bool(loops(*sevens(100, 105, 111), accepted=(Accepted(TP, offset, 0, at_ns),))) == stands
