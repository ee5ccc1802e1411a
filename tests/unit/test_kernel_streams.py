"""Rules of the kernel about the order of one member's deliveries, on small tables: each edge on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_parts import MOVES, STRETCH, TP, owned, part, rows

from fencepost.checkers.kernel import streams
from fencepost.checkers.kernel.before import Before
from fencepost.checkers.kernel.rows import Rows
from fencepost.checkers.kernel.tallies import Numbers
from fencepost.checkers.kernel.whole import between
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Act
from fencepost.checkers.tables.seeks import Seek

VISIBLE = [np.array([10, 11, 12]), np.array([15, 16, 17, 18])]


def deliveries(given: Rows, before: Before | None = None, **tables: Any) -> Any:
    whole = SimpleNamespace(between=partial(between, VISIBLE))
    return part(Tables(Path(), **tables), given, STRETCH, before=before, whole=whole)


# Back, and ahead.


def moved(
    offsets: Sequence[int], polls: Sequence[int] = (), before: Before | None = None, **tables: Any
) -> dict[Any, Numbers]:
    """Of deliveries in one interval from 100 on, at 110, 120, 130 and so on."""
    at = [110 + 10 * n for n in range(len(offsets))]
    given = rows(offset=offsets, poll=polls or range(len(offsets)), delivered_ns=at)
    of = deliveries(given, before, intervals=(owned("a", 0, 100, 900),), **tables)
    streams.streams(of)
    assert {key[1:3] for key in of.tallies} <= {(TP, ("a",))}
    return {(key[0], *key[3:]): numbers for key, numbers in of.tallies.items()}


SKIP, BACK = ("poll-skip", "", ""), ("rewind", "", "")


@pytest.mark.parametrize(
    ("offsets", "found"),
    [
        ([10, 11, 12, 15, 16], {}),
        ([10, 12], {SKIP: Numbers(1, 11, 11, 110, 120)}),
        ([10, 12, 11, 12], {SKIP: Numbers(1, 11, 11, 110, 120), BACK: Numbers(2, 11, 12, 130, 140)}),
        ([10, 10], {BACK: Numbers(1, 10, 10, 120, 120)}),
        ([10, 17], {SKIP: Numbers(4, 11, 16, 110, 120)}),
        ([12, 10, 15], {BACK: Numbers(1, 10, 10, 120, 120)}),
        ([12, 10, 16], {BACK: Numbers(1, 10, 10, 120, 120), SKIP: Numbers(1, 15, 15, 120, 130)}),
        ([10, 12, 15, 17], {SKIP: Numbers(2, 11, 16, 110, 140)}),
        ([12, 14, 15], {}),
    ],
)
def test_a_stream_goes_back_to_what_it_had_and_skips_what_it_did_not_get(
    offsets: Sequence[int], found: Mapping[Any, Numbers]
) -> None:
    assert moved(offsets) == found


@pytest.mark.parametrize(
    ("offsets", "polls", "causes"),
    [
        ([10, 12], [0, 0], {"poll-skip": "inside one poll"}),
        ([10, 12], [0, 1], {"poll-skip": ""}),
        ([11, 10], [0, 0], {"rewind": "inside one poll"}),
        ([11, 10], [0, 1], {"rewind": ""}),
        ([11, 10, 12], [0, 1, 1], {"rewind": ""}),
        ([12, 10, 11], [0, 1, 1], {"rewind": ""}),
        ([10, 12, 16], [0, 0, 1], {"poll-skip": ", inside one poll"}),
    ],
)
def test_what_is_odd_inside_of_one_poll_is_told_so(
    offsets: Sequence[int], polls: Sequence[int], causes: Mapping[str, str]
) -> None:
    found: dict[str, list[str]] = {}
    for kind, cause, _ in moved(offsets, polls):
        found.setdefault(kind, []).append(cause)
    assert {kind: ", ".join(those) for kind, those in found.items()} == causes


@pytest.mark.parametrize(("seek", "cause"), MOVES)
@pytest.mark.parametrize(("offsets", "kind"), [([10, 12], "poll-skip"), ([10, 10], "rewind")])
def test_who_moved_its_position_by_then_is_told_so(seek: Seek, cause: str, offsets: Sequence[int], kind: str) -> None:
    """It did, if it went to where it was given a record."""
    there = seek if seek.aborted else seek._replace(offset=offsets[1])
    assert [*moved(offsets, seeks=(there,))] == [(kind, cause, "")]


@pytest.mark.parametrize(("since_ns", "excuse"), [(120, "declared act: reset"), (121, "")])
@pytest.mark.parametrize(("offsets", "kind"), [([10, 12], "poll-skip"), ([10, 10], "rewind")])
def test_a_declared_act_by_then_excuses_it(since_ns: int, excuse: str, offsets: Sequence[int], kind: str) -> None:
    assert [*moved(offsets, acts=(Act("reset", TP, since_ns),))] == [(kind, "", excuse)]


@pytest.mark.parametrize(
    ("back_ns", "found"),
    [
        (115, {}),
        (111, {}),
        (121, {BACK: Numbers(1, 10, 10, 120, 120), SKIP: Numbers(1, 10, 10, 120, 130)}),
        (131, {BACK: Numbers(2, 10, 11, 120, 130)}),
    ],
)
def test_who_goes_back_as_its_transaction_was_aborted_does_not_rewind(
    back_ns: int, found: Mapping[Any, Numbers]
) -> None:
    assert moved([12, 10, 11], seeks=(Seek(TP, "a", 10, back_ns, aborted=True),)) == found


def test_records_in_order_are_skipped_over_after_a_transaction_went_back_further() -> None:
    """The first of them comes right after the highest one, and what was aborted is not had."""
    found = moved([10, 11, 12], seeks=(Seek(TP, "a", 10, 125, aborted=True),))
    assert found == {SKIP: Numbers(2, 10, 11, 120, 130)}


def test_deliveries_in_no_interval_are_in_no_order() -> None:
    given = rows(offset=[12, 10, 17, 10, 12], interval=[-1, -1, -1, 0, 0], delivered_ns=[1, 2, 3, 4, 5])
    of = deliveries(given)
    streams.streams(of)
    assert {key[0]: n.count for key, n in of.tallies.items()} == {"poll-skip": 1}


@pytest.mark.parametrize(("fresh", "kinds"), [(1, ["rewind", "poll-skip"]), (2, ["poll-skip"]), (3, [])])
def test_what_was_judged_before_is_not_judged_again(fresh: int, kinds: Sequence[str]) -> None:
    """Of 10, 10, 12 so many are remembered."""
    remembered = rows(offset=[10, 10, 12][:fresh])
    before = Before(remembered, 11, fresh - 1, 110, 10, 110)
    assert sorted(key[0] for key in moved([10, 10, 12], before=before)) == sorted(kinds)


# In no interval, or without a place in the count.


@pytest.mark.parametrize(
    ("at_ns", "possible"), [(99, False), (100, True), (200, True), (201, False), (299, False), (300, True)]
)
def test_a_delivery_in_no_interval_is_outside_when_its_member_had_none(at_ns: int, possible: bool) -> None:
    given = rows(offset=[10, 11, 12], interval=[-1, 0, 9], delivered_ns=[at_ns, 50, at_ns])
    of = deliveries(given, intervals=(owned("a", 0, 100, 200), owned("a", 1, 300, 400), owned("b", 0, 0, 999)))
    streams.delivery_outside(of)
    key = ("delivery-outside-assignment", TP, ("a",), "", "")
    assert of.tallies == ({} if possible else {key: Numbers(2, 10, 12, at_ns, at_ns)})


def test_a_delivery_outside_is_told_once_over_all_stretches() -> None:
    remembered = rows(offset=[10], interval=[-1])
    before = Before(remembered, 11, 0, 110, 10, 110)
    given = rows(("a", "b"), who=[0, 0, 1], offset=[10, 11, 12], interval=[-1, -1, -1], delivered_ns=[1, 2, 3])
    of = deliveries(given, before)
    streams.delivery_outside(of)
    assert {key[2]: numbers for key, numbers in of.tallies.items()} == {
        ("a",): Numbers(1, 11, 11, 2, 2),
        ("b",): Numbers(1, 12, 12, 3, 3),
    }
