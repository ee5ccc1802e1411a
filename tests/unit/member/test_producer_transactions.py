"""What becomes of the records of a producer's transactions, as far as anybody can know."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka as ck
import pytest

from fencepost_member.config import ProducerConfig
from fencepost_member.producing import producer_transactions

ERRORS: dict[str, dict[str, bool]] = {"abort": {"txn_requires_abort": True}, "fatal": {"fatal": True}}


class Lane(list[Any]):
    """What is recorded."""

    def __getattr__(self, end: str) -> Callable[..., None]:
        return lambda index, *offset: self.append((end, index, *offset))


class Producer:
    """Does what it is asked, or fails in the way that is named."""

    def __init__(self, **failing: str) -> None:
        self.failing, self.calls = failing, list[str]()

    def __getattr__(self, call: str) -> Callable[..., None]:
        def called(*_: float) -> None:
            self.calls.append(call.removesuffix("_transaction"))
            if way := self.failing.get(self.calls[-1]):
                raise ck.KafkaException(ck.KafkaError(ck.KafkaError._STATE, "no", **ERRORS[way]))

        return called


def transactions(producer: Producer, abort_every: int = 0) -> tuple[Any, Lane]:
    config = ProducerConfig("producer-0", 0, "", "", {}, transaction_records=3, abort_every=abort_every)
    lane = Lane()
    return producer_transactions.ProducerTransactions(config, producer, lane, threading.Event()), lane  # type: ignore[arg-type]


def write(of: Any) -> None:
    """Three records: where the second one is nobody tells."""
    assert of.reserve(2) == (2, "")
    assert of.reserve(2) == (1, "")
    for index in range(3):
        of.sent(index)
    of.written(0, 70)
    of.written(1, None)
    of.written(2, 72)
    of.written(9, 79)  # of an earlier one


@pytest.mark.parametrize(
    ("failing", "calls", "ends", "error"),
    [
        ({}, ["begin", "flush", "commit"], [("acked", 0, 70), ("unknown", 1), ("acked", 2, 72)], ""),
        ({"commit": "abort"}, ["begin", "flush", "commit", "abort"], [("aborted", n) for n in range(3)], ""),
        ({"commit": "fatal"}, ["begin", "flush", "commit"], [("unknown", n) for n in range(3)], "LOCAL_STATE"),
        (
            {"commit": "abort", "abort": "fatal"},
            ["begin", "flush", "commit", "abort"],
            [("unknown", n) for n in range(3)],
            "LOCAL_STATE",
        ),
    ],
)
def test_records_are_what_their_transaction_came_to(
    failing: dict[str, str], calls: list[str], ends: list[Any], error: str
) -> None:
    producer = Producer(**failing)
    of, lane = transactions(producer)
    write(of)
    counts, reported = of.end()
    assert (producer.calls, lane, reported) == (calls, ends, error)
    names = {"acked": "ok", "aborted": "aborted", "unknown": "info"}
    assert {end: count for end, count in counts.items() if count} == {
        names[end]: sum(one[0] == end for one in ends) for end, *_ in ends
    }
    assert of.room == 0


def test_each_so_many_th_is_aborted_on_purpose_once_it_is_written() -> None:
    producer = Producer()
    of, _ = transactions(producer, abort_every=2)
    for _ in range(4):
        of.reserve(1)
        of.end()
    committed, aborted = ["begin", "flush", "commit"], ["begin", "flush", "abort"]
    assert producer.calls == [*committed, *aborted, *committed, *aborted]


def test_one_that_cannot_begin_takes_nothing_and_says_why() -> None:
    of, lane = transactions(Producer(begin="fatal"))
    assert of.reserve(5) == (0, "LOCAL_STATE")
    assert (of.room, lane) == (0, [])


def test_a_producer_that_cannot_have_any_says_why() -> None:
    assert transactions(Producer())[0].start() == ""
    assert transactions(Producer(init_transactions="fatal"))[0].start() == "LOCAL_STATE"
