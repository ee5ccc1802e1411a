"""Lists of records show what a program takes out of them, and are lists in every other way."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

from fencepost_member.instrument.taken import TakenList, Taking

RECORDS = ["a", "b", "c", "d"]


def some() -> tuple[TakenList, Taking]:
    """A list of four records, at the positions 2 to 5 of a poll of seven."""
    taking = Taking(7, lambda taking, positions: None)
    return TakenList(RECORDS, taking, 2), taking


def taken(look: Callable[[Any], Any]) -> list[int]:
    """The positions in the poll that are taken after a look at the list."""
    records, taking = some()
    look(records)
    return [position for position, mark in enumerate(taking.marks) if mark]


def leave_after(count: int) -> Callable[[Any], None]:
    def look(records: Any) -> None:
        for number, _ in enumerate(records, 1):
            if number == count:
                break

    return look


EVERY = [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("look", "positions"),
    [
        (len, []),
        (bool, []),
        (repr, []),
        (lambda records: records == RECORDS, []),
        (leave_after(2), [2, 3]),
        (lambda records: next(iter(records)), [2]),
        (lambda records: records[0], [2]),
        (lambda records: records[-1], [5]),
        (lambda records: records[1:3], [3, 4]),
        (lambda records: records[::3], [2, 5]),
        (list, EVERY),
        (tuple, EVERY),
        (sorted, EVERY),
        (lambda records: [*records], EVERY),
        (lambda records: print(*records), EVERY),
        (lambda records: [].extend(records), EVERY),
        (lambda records: [*itertools.chain.from_iterable([records])], EVERY),
        (lambda records: list(map(str, records)), EVERY),
        (lambda records: list(reversed(records)), EVERY),
        (lambda records: [] + records, EVERY),  # noqa: RUF005 (the operator is what is tested)
        (lambda records: records + [], EVERY),  # noqa: RUF005
        (lambda records: records * 2, EVERY),
        (lambda records: records.copy(), EVERY),
        (copy.copy, EVERY),
        (pickle.dumps, EVERY),
        (lambda records: records.pop(), EVERY),
        (lambda records: records.sort(key=str), EVERY),
        (lambda records: records.append("e"), EVERY),
        (lambda records: random.Random(1).shuffle(records), EVERY),
    ],
)
def test_what_is_taken_is_marked(look: Callable[[Any], Any], positions: list[int]) -> None:
    assert taken(look) == positions


@pytest.mark.parametrize(
    "use",
    [
        list,
        len,
        repr,
        lambda records: records[1:],
        lambda records: records + ["e"],  # noqa: RUF005
        lambda records: ["e"] + records,  # noqa: RUF005
        lambda records: (records.pop(0), list(records)),
        lambda records: (records.insert(1, "x"), list(records)),
        lambda records: (records.sort(reverse=True), list(records)),
        lambda records: list(reversed(records)),
        lambda records: pickle.loads(pickle.dumps(records)),
        lambda records: copy.deepcopy(records),
        lambda records: "b" in records,
        lambda records: records == RECORDS,
        lambda records: isinstance(records, list),
    ],
)
def test_it_is_a_list(use: Callable[[Any], Any]) -> None:
    assert use(some()[0]) == use(list(RECORDS))


def test_a_copy_of_another_process_is_a_plain_list() -> None:
    assert type(pickle.loads(pickle.dumps(some()[0]))) is list


@pytest.mark.parametrize("wrong", [9, "a"])
def test_a_wrong_index_is_the_same_error(wrong: Any) -> None:
    records, taking = some()
    with pytest.raises((IndexError, TypeError)) as ours:
        records[wrong]
    with pytest.raises(type(ours.value)):
        list(RECORDS)[wrong]
    assert not any(taking.marks)


def test_the_first_iteration_of_each_list_is_reported_once_with_its_positions() -> None:
    seen = []
    taking = Taking(4, lambda taking, positions: seen.append(positions))
    first, second = TakenList(RECORDS[:2], taking, 0), TakenList(RECORDS[2:], taking, 2)
    assert (len(first), first[-1]) == (2, "b")
    assert seen == []
    list(second)
    list(second)
    assert seen == [range(2, 4)]
    next(iter(first))
    assert seen == [range(2, 4), range(2)]


def test_a_list_that_grows_is_read_to_its_end() -> None:
    taking = Taking(2, lambda taking, positions: None)
    records = TakenList(RECORDS[:2], taking)
    read = []
    for record in records:
        read.append(record)
        if len(records) < 5:
            records.append("x")
    assert read == ["a", "b", "x", "x", "x"]
    assert records[4] == "x"
    assert list(records) == read
