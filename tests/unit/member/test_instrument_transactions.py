"""Transactions of a program's own producer: a commit of the consumer that owns what it is about, as it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.member.test_instrument import SUBSCRIBED, WITHIN_S, Started, started  # noqa: F401 (a fixture)
from unit.member.test_member_api import Members, given, members  # noqa: F401 (a fixture)

from fencepost_member.instrument.transactions import InstrumentedTransactions
from fencepost_member.recording.events import read

ZERO, ONE = ("orders", 0), ("orders", 1)
COMMITS = pytest.mark.parametrize("members", ["commit"], indirect=True)


class RefusedError(Exception):
    """By the coordinator."""


@pytest.fixture
def transactions(members: Members) -> InstrumentedTransactions:  # noqa: F811
    return InstrumentedTransactions(members.program, lambda error: "ILLEGAL_GENERATION")


def told(run: Path) -> list[tuple[Any, ...]]:
    """Each commit in a transaction: by whom, offsets, how it ended."""
    found = [event for path in sorted((run / "events").glob("member-*.jsonl")) for event in read(path).events]
    begun_and_ended = {(event["actor"], event["id"]): event for event in found if event["kind"] == "commit"}
    commits = begun_and_ended.values()
    assert {event["detail"]["mode"] for event in commits} <= {"transaction"}
    return [
        (e["actor"], {partition: offset for _, partition, offset in e["partitions"]}, e.get("outcome"), e.get("error"))
        for e in commits
    ]


@COMMITS
def test_what_is_sent_is_processed_and_committed_when_the_transaction_is(
    members: Members,  # noqa: F811
    transactions: InstrumentedTransactions,
) -> None:
    given(members.consumer(), 0, 1, 2, 3)
    transactions.begun()
    with transactions.sending({ZERO: 3, ("payments", 0): 9}):
        pass
    assert members.done() == {"member-0.1": {(0, 1), (0, 2)}}
    with transactions.ending(committed=True):
        pass
    assert told(members.run) == [("member-0.1", {0: 3}, "ok", None)]


@COMMITS
def test_one_that_is_aborted_is_not(members: Members, transactions: InstrumentedTransactions) -> None:  # noqa: F811
    given(members.consumer(), 0, 1, 2)
    for error in ("", "ILLEGAL_GENERATION"):
        transactions.begun()
        try:
            with transactions.sending({ZERO: 3}):
                if error:
                    raise RefusedError
        except RefusedError:
            pass
        with transactions.ending(committed=False):
            pass
    assert [end for *_, end in told(members.run)] == ["LOCAL_PURGE_QUEUE", "ILLEGAL_GENERATION"]
    assert {outcome for *_, outcome, _ in told(members.run)} == {"fail"}


@COMMITS
def test_to_try_again_is_one_commit(members: Members, transactions: InstrumentedTransactions) -> None:  # noqa: F811
    given(members.consumer(), 0, 1, 2)
    transactions.begun()
    for call in (lambda: transactions.sending({ZERO: 3}), lambda: transactions.ending(committed=True)):
        with pytest.raises(RefusedError), call():
            raise RefusedError
        with call():
            pass
    assert told(members.run) == [("member-0.1", {0: 3}, "ok", None)]


@COMMITS
def test_each_partition_is_committed_by_the_consumer_that_owns_it(
    members: Members,  # noqa: F811
    transactions: InstrumentedTransactions,
) -> None:
    first, second = members.consumer(), members.consumer()
    given(first, 0, 1)
    given(second, 1, 5)
    with transactions.sending({ZERO: 2, ONE: 6}):
        pass
    with transactions.ending(committed=True):
        pass
    assert told(members.run) == [("member-0.1", {0: 2}, "ok", None), ("member-0b.1", {1: 6}, "ok", None)]


@COMMITS
def test_one_whose_end_is_not_known_is_not_told_as_ended(
    members: Members,  # noqa: F811
    transactions: InstrumentedTransactions,
) -> None:
    given(members.consumer(), 0, 1, 2)
    with transactions.sending({ZERO: 2}):
        pass
    transactions.begun()
    with transactions.sending({ZERO: 3}), transactions.ending(committed=True):
        pass
    assert [(offsets, outcome) for _, offsets, outcome, _ in told(members.run)] == [({0: 2}, None), ({0: 3}, "ok")]


@pytest.mark.parametrize(
    "call",
    [
        "producer.begin_transaction()",
        "producer.send_offsets_to_transaction([TopicPartition('orders', 0, 1)], consumer.consumer_group_metadata(), 1)",
        "producer.send_offsets_to_transaction()",
        "producer.commit_transaction(0.1)",
        "producer.abort_transaction(0.1)",
        "print(type(producer), type(producer).__name__)",
    ],
)
def test_a_producer_without_transactions_says_what_it_does_without_us(started: Started, call: str) -> None:  # noqa: F811
    more = (
        "from confluent_kafka import KafkaException, Producer, TopicPartition\nproducer = Producer({'log_level': 0})\n"
    )
    text = f"{SUBSCRIBED}{more}\ntry:\n    {call}\nexcept (KafkaException, TypeError) as error:\n    print(error)\n"
    recorded, alone = started.says(text, text, 0)
    assert recorded == alone
