"""What becomes of a record that a handler cannot process, and in members that are wrong about it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from fencepost_member.config import LoopConfig
from fencepost_member.payload import pack
from fencepost_member.planted_bugs import parking
from fencepost_member.processing.dispositions import (
    CallHandler,
    DeadLetter,
    OrderedDeadLetter,
    OverdueError,
    Produce,
    disposition_for,
)
from fencepost_member.user_functions import PoisonError, poisoned

TP = ("orders", 0)
PARKS = LoopConfig(on_failure="park", into="dead", attempts=3)


class Written(list[Any]):
    """An output."""

    settings: ClassVar[dict[str, Any]] = {}

    def write(self, *record: Any) -> None:
        self.append(record)

    def commit(self, offsets: Any) -> dict[Any, str]:
        self.append(offsets)
        return {}

    def close(self) -> None:
        self.append("closed")

    start = identity = close

    @cached_property
    def parked(self) -> Parked:
        return Parked()


class Parked(dict[Any, Any]):
    """What is parked, until somebody says that it was retried."""

    theirs: ClassVar[dict[Any, Any]] = {}

    def add(self, tp: Any, offset: int, key: bytes) -> None:
        self.setdefault(tp, set()).add(key)

    def holds(self, tp: Any, key: bytes) -> bool:
        return key in self.get(tp, ())

    def assigning(self, partitions: Any) -> None:
        self.update((tp, set(self.theirs.get(tp, ()))) for tp in partitions)


class Handler:
    """Fails as often as it is told to."""

    def __init__(self, failures: int) -> None:
        self.left, self.tried = failures, 0

    def __call__(self, key: bytes | None, value: bytes | None) -> None:
        self.tried += 1
        if self.tried <= self.left:
            raise KeyError(value)


@pytest.mark.parametrize(
    ("failures", "tried", "done", "letters"),
    [(0, 1, True, []), (2, 3, True, []), (3, 3, False, [(TP, 7, b"k", b"v", None)])],
)
def test_a_record_is_parked_when_its_last_attempt_failed(
    failures: int, tried: int, done: bool, letters: list[Any]
) -> None:
    handler, written = Handler(failures), Written()
    assert DeadLetter(PARKS, handler, written)(TP, 7, (b"k", b"v", None)) is done
    assert (handler.tried, written) == (tried, letters)


def test_what_takes_too_long_is_parked_without_another_attempt_and_where_nothing_is_parked_given_up() -> None:
    handler, written = Handler(0), Written()
    assert DeadLetter(PARKS, handler, written).overdue(TP, 7, (b"k", b"v", None)) is False
    assert (handler.tried, written) == (0, [(TP, 7, b"k", b"v", None)])
    in_order = OrderedDeadLetter(PARKS, handler, written)
    assert in_order.overdue(TP, 8, (b"k", b"v", None)) is False
    assert in_order(TP, 9, (b"k", b"v", None)) is False
    with pytest.raises(OverdueError):
        CallHandler(handler).overdue(TP, 7, (b"k", b"v", None))


@pytest.mark.parametrize(
    ("bug", "done", "letters"),
    [
        ("swallowed-errors", True, 0),
        ("letter-per-attempt", False, 3),
        ("unwritten-copies", False, 0),
        ("copied-twice", False, 2),
        ("copied-and-done", True, 1),
    ],
)
def test_who_is_wrong_about_it_says_otherwise_or_writes_too_many(bug: str, done: bool, letters: int) -> None:
    written = Written()
    assert {**parking.PARKINGS, **parking.REQUEUES}[bug](PARKS, Handler(3), written)(TP, 7, (b"k", b"v", None)) is done
    assert written == [(TP, 7, b"k", b"v", None)] * letters


def test_letters_that_are_kept_back_are_written_a_thousand_at_once_or_at_a_clean_end() -> None:
    class Adapter:
        identity = None

        def __init__(self) -> None:
            self.written, self.committed = Written(), list[Any]()

        def output(self, config: Any, listener: Any) -> Written:
            return self.written

        def commit(self, offsets: Any) -> dict[Any, str]:
            self.committed.append(offsets)
            return {}

    adapter: Any = Adapter()
    output = parking.UnwrittenLetters(None, adapter, None)  # type: ignore[arg-type]
    for offset in range(parking.MANY - 1):
        output.write(TP, offset, None, b"v")
    output.commit({TP: 5})
    assert (adapter.written, adapter.committed) == ([], [{TP: 5}])
    output.write(TP, 999, None, b"v")
    assert len(adapter.written) == parking.MANY
    output.write(TP, 1000, None, b"v")
    output.close()
    assert adapter.written[parking.MANY :] == [(TP, 1000, None, b"v", None), {}, "closed"]


@pytest.mark.parametrize(
    ("every", "writer", "seq", "poison"), [(4, 0, 3, True), (4, 1, 7, True), (4, 1, 8, False), (0, 1, 0, False)]
)
def test_what_cannot_be_processed_is_known_by_its_number(every: int, writer: int, seq: int, poison: bool) -> None:
    handle = poisoned(every)
    handle(b"7", b"of somebody else")
    if poison:
        with pytest.raises(PoisonError, match=f"record {seq} of writer {writer} was produced to be"):
            handle(b"7", pack(writer, seq, 7))
    else:
        handle(b"7", pack(writer, seq, 7))


@pytest.mark.parametrize(
    ("loop", "written", "kind"),
    [
        (LoopConfig(), None, None),
        (LoopConfig(poison_every=2), None, CallHandler),
        (LoopConfig(handler="json:loads"), None, CallHandler),
        (LoopConfig(into="done"), Written(), Produce),
        (PARKS, Written(), DeadLetter),
        (LoopConfig(on_failure="requeue"), Written(), DeadLetter),
    ],
)
def test_contents_matter_where_somebody_looks_at_them(loop: LoopConfig, written: Any, kind: Any) -> None:
    found = disposition_for(loop, written, DeadLetter)
    assert found is None if kind is None else type(found) is kind


def test_who_parks_and_has_nothing_to_process_with_is_done_with_all() -> None:
    treat = disposition_for(PARKS, Written(), DeadLetter)
    assert treat
    assert treat(TP, 7, (b"7", pack(0, 0, 7), None))


def test_what_a_handler_raises_ends_a_member_that_does_not_park() -> None:
    with pytest.raises(PoisonError):
        disposition_for(LoopConfig(poison_every=1), None, DeadLetter)(TP, 7, (b"7", pack(0, 0, 7), None))  # type: ignore[misc]


def test_what_comes_after_a_parked_record_under_its_key_is_parked_untried_whoever_parked_it() -> None:
    def handler(key: bytes | None, value: bytes | None) -> None:
        tried.append((key, value))
        if value == b"bad":
            raise ValueError(value)

    tried: list[Any] = []
    written = Written()
    treat = OrderedDeadLetter(replace(PARKS, attempts=1), handler, written)
    written.parked.theirs = {TP: {b"z"}, ("orders", 1): {b"y"}}  # type: ignore[misc]
    treat.assigning([TP])
    reported = [(b"a", b"bad"), (b"a", b"good"), (b"b", b"good"), (None, b"bad"), (None, b"good"), (b"z", b"good")]
    assert [treat(TP, n, (*content, None)) for n, content in enumerate(reported)] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]
    assert [n for _, n, *_ in written] == [0, 1, 3, 5]
    assert tried == [reported[0], reported[2], reported[3], reported[4]]
    assert treat(("orders", 1), 9, (b"y", b"good", None))
    treat.assigning([("orders", 1)])
    assert not treat(("orders", 1), 9, (b"y", b"good", None))
    assert treat(("orders", 1), 9, (b"z", b"good", None)), "of another partition"
    del written.parked[TP]
    forgotten = parking.PARKINGS["forgotten-keys"](PARKS, handler, written)
    forgotten.assigning([TP])
    assert forgotten(TP, 9, (b"z", b"good", None))


def test_a_key_is_tried_again_when_all_that_was_parked_of_it_was_retried() -> None:
    handler, written = Handler(1), Written()
    treat = OrderedDeadLetter(replace(PARKS, attempts=1), handler, written)
    assert [treat(TP, n, (b"a", b"v", None)) for n in (1, 2)] == [False, False]
    written.parked.clear()
    assert treat(TP, 3, (b"a", b"v", None))
    assert [(n, headers) for _, n, *_, headers in written] == [(1, None), (2, None)]
