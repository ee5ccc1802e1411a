"""Several consumers of one process: each is judged as an incarnation of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checkers.metrics import deals
from fencepost.checkers.tables import load
from history.builder import HistoryBuilder, MemberTeller
from history.test_kinds import Told, told_by

A, BESIDE, NEXT = "member-0.1", "member-0b.1", "member-0.1-2"


def two(h: HistoryBuilder) -> tuple[MemberTeller, MemberTeller]:
    """Ten records of one partition; two consumers of a process, of which the first has it, and processed six."""
    h.write(10)
    a, b = h.member(0), h.consumer(BESIDE, 0)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(6, 3.5)
    return a, b


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize(
    ("given_up", "found"), [(4.9, []), (5, [("assignment-overlap", "", "", (A, BESIDE), -1, -1, 1)])]
)
def test_two_of_them_that_own_a_partition_at_once_are_two_owners(
    tmp_path: Path, classic: bool, given_up: float, found: list[Told]
) -> None:
    h = HistoryBuilder(tmp_path, classic=classic)
    a, b = two(h)
    a.revoked(given_up)
    b.assigned(4.95, reported=False)
    b.process(range(6, 10), 15)
    b.commit(10, 16)
    b.revoked(38)
    for one in (a, b):
        one.close(39)
    assert told_by(h) == found


@pytest.mark.parametrize(("how", "found"), [("closed", []), ("crashed", [("dead-member", "", "", (A,), -1, -1, 1)])])
def test_one_that_came_after_another_is_the_next_life_and_who_was_not_closed_died(
    tmp_path: Path, how: str, found: list[Told]
) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(6, 3.5)
    if how == "closed":
        a.revoked(4.5)
        a.close(5)
    else:
        a.die(5, how)
        a.evicted(5.5)
    again = h.consumer(NEXT, 0, at=6)
    again.assigned(7)
    again.process(range(6, 10), 8)
    again.commit(10, 9)
    again.revoked(38)
    again.close(39)
    assert told_by(h) == found


def test_what_one_gives_to_another_one_moves_and_what_the_next_life_gets_does_not(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, partitions=2, classic=True)
    a, b, again = h.member(0), h.consumer(BESIDE, 0), h.consumer(NEXT, 0, at=6)
    for at, (first, second) in enumerate([(a, a), (a, b), (again, b)], start=1):
        first.assigned(at, 0, generation=at)
        second.assigned(at + 0.1, 1, generation=at)
    run = h.seal()
    assert sum(deal.moved for deal in deals(load(run))) == 1
