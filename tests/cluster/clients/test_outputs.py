"""What an output promises its member, asked of the real client on the real cluster; and what others see of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import confluent_kafka as ck
import pytest

from cluster.clients.test_adapters import Told
from cluster.worlds import LONG_S
from fencepost.clock import NS, clock_pair, eventually
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.evidence import output_topics
from fencepost.group import retry_service
from fencepost.history import EventKind
from fencepost.model.run_names import RunNames
from fencepost.scenario import scenario
from fencepost.workloads import DeadLetters
from fencepost_member import adapters
from fencepost_member.adapters.confluent import parked_keys, retries, topic_reader
from fencepost_member.config import REQUEUE, TRANSACTION, LoopConfig, MemberConfig
from fencepost_member.payload import HEADER, SOURCE, letter_id, pack, source
from fencepost_member.recording.events import EventLog, read

pytestmark = pytest.mark.cluster

PARTITIONS = 2
A, B = 0, 1
_NUMBERS = itertools.count()


@dataclass
class Open:
    """What the audit needs to know of a workload."""

    into: str = "another topic"
    transaction_timeout_ms: float = 10_000
    holds: ClassVar[EventKind] = EventKind.DEAD_LETTER


@dataclass
class Back(Open):
    """Of one whose members re-queue records."""

    into: str = ""
    holds: ClassVar[EventKind] = EventKind.REQUEUED


@dataclass
class Names:
    """Those of topics, as a run has them."""

    effect_topics: list[str]
    retried: str = ""


class Cast:
    """A group that owns one topic, and writes another one."""

    def __init__(self, cluster: ManagedCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.name = f"outputs-{next(_NUMBERS)}"
        self.into = f"{self.name}-into"
        self.told = Told()
        self.opened: list[Any] = []
        cluster.admin.create_topics([scenario.Topic(name, partitions=PARTITIONS) for name in (self.name, self.into)])
        producer = ck.Producer({"bootstrap.servers": cluster.bootstrap()})
        for number in range(10 * PARTITIONS):
            producer.produce(self.name, b"v", str(number).encode(), number % PARTITIONS)
        assert producer.flush(LONG_S) == 0

    def member(self, commit: str = TRANSACTION, number: int = 0, life: int = 1, **more: Any) -> Any:
        """Its output, started."""
        topics = {self.name: {str(p): p for p in range(PARTITIONS)}}
        where = {"into": self.into, "transaction_timeout_ms": Open.transaction_timeout_ms, **more}
        loop = LoopConfig(commit=commit, **where)
        actor, bootstrap = f"member-{number}.{life}", self.cluster.bootstrap(number)
        config = MemberConfig(actor, number, number, "", self.name, topics, bootstrap, loop=loop)
        adapter = adapters.connect(config, self.told)
        output = adapters.written(config, adapter, self.told)
        output.start()
        self.opened += [output, adapter]
        return output

    def owner(self, commit: str = TRANSACTION, **more: Any) -> Any:
        """The output of a member that owns everything and has been given all of it."""
        output = self.member(commit, **more)
        adapter = output._adapter
        adapter.subscribe([self.name])
        given: list[Any] = []

        def all_given() -> bool:
            given.extend(adapter.poll(100, 0.2))
            return len(given) == 10 * PARTITIONS

        eventually(all_given, LONG_S, "all records", every_s=0)
        return output

    def seen(self) -> list[tuple[int, int, str]]:
        """(partition, offset, actor) of what whoever reads committed records sees, and what the audit says besides."""
        log = EventLog(self.folder / "harness.jsonl", "harness")
        output_topics.collect(Open(), Names([self.into]), self.cluster, [clock_pair()], log)
        log.close()
        events = read(self.folder / "harness.jsonl").events
        assert not [e["detail"] for e in events if e["kind"] == "unrecorded"]
        return sorted((*e["partitions"][0][1:], e["actor"]) for e in events)

    def committed(self) -> dict[int, int]:
        return {tp.partition: offset for tp, offset in self.cluster.admin.committed(self.name).items()}

    def tp(self, partition: int) -> tuple[str, int]:
        return self.name, partition


@pytest.fixture
def cast(cluster: ManagedCluster, tmp_path: Path) -> Iterator[Cast]:
    found = Cast(cluster, tmp_path)
    yield found
    for each in found.opened:
        each.close()


def write(output: Any, cast: Cast, partition: int, *offsets: int) -> None:
    for offset in offsets:
        output.write(cast.tp(partition), offset, b"k", b"v")


def test_what_was_written_and_its_offsets_are_there_together(cast: Cast) -> None:
    output = cast.owner()
    write(output, cast, A, 0, 1)
    write(output, cast, B, 0)
    assert output.commit({cast.tp(A): 2, cast.tp(B): 1}) == {cast.tp(A): "", cast.tp(B): ""}
    eventually(lambda: cast.committed() == {A: 2, B: 1}, LONG_S, "both offsets", state=lambda: str(cast.committed()))
    assert cast.seen() == [(A, 0, "member-0.1"), (A, 1, "member-0.1"), (B, 0, "member-0.1")]


def test_what_is_not_committed_is_dropped_and_nobody_sees_it(cast: Cast) -> None:
    output = cast.owner()
    write(output, cast, A, 0)
    output.close()
    assert cast.seen() == []
    assert cast.committed() == {}


def test_who_is_no_longer_a_member_has_nothing_committed_and_may_go_on(cast: Cast) -> None:
    """The coordinator knows no such member any more: what was written is taken back."""
    output = cast.owner()
    adapter, then = output._adapter, output._adapter.group()
    adapter.group = lambda: then
    adapter._consumer.unsubscribe()

    def gone() -> bool:
        adapter.poll(1, 0.1)
        return not cast.cluster.admin.describe(cast.name).members

    eventually(gone, LONG_S, "it to have left the group")
    write(output, cast, A, 0)
    assert output.commit({cast.tp(A): 1}) == {cast.tp(A): "UNKNOWN_MEMBER_ID"}
    assert cast.seen() == []

    write(output, cast, A, 1)
    assert output.commit({}) == {}
    assert cast.seen() == [(A, 1, "member-0.1")]


def test_who_is_of_no_generation_has_nothing_committed_either(cast: Cast) -> None:
    """As whose client has left the group by itself, or has not joined yet: Kafka would accept it."""
    output = cast.member()
    write(output, cast, A, 0)
    assert output.commit({cast.tp(A): 1}) == {cast.tp(A): "UNKNOWN_MEMBER_ID"}
    assert (cast.seen(), cast.committed()) == ([], {})

    output.has_left = lambda group: False
    write(output, cast, A, 0)
    assert output.commit({cast.tp(A): 1}) == {cast.tp(A): ""}
    eventually(lambda: cast.committed() == {A: 1}, LONG_S, "its offset", state=lambda: str(cast.committed()))


def test_what_is_dropped_before_it_was_sent_says_nothing_of_what_is_written_next(cast: Cast) -> None:
    """The client tells of it while the transaction is aborted."""
    output = cast.owner()
    write(output, cast, A, 0)
    output._failed = ck.KafkaError(ck.KafkaError._FAIL)
    output.commit({})
    write(output, cast, A, 0)
    assert output.commit({cast.tp(A): 1}) == {cast.tp(A): ""}
    assert cast.seen() == [(A, 0, "member-0.1")]


def test_the_next_life_takes_back_what_the_one_before_left_open_and_fences_it(cast: Cast) -> None:
    output = cast.owner()
    write(output, cast, A, 0)
    output._producer.flush(LONG_S)
    cast.member(life=2)
    assert list(output.commit({cast.tp(A): 1}).values()) == ["PRODUCER_FENCED"]
    assert ("PRODUCER_FENCED", True) in cast.told.errors
    assert cast.seen() == []


def test_an_open_transaction_is_waited_for_until_the_brokers_end_it(cast: Cast) -> None:
    output = cast.owner()
    write(output, cast, A, 0)
    output._producer.flush(LONG_S)
    behind = cast.member(number=1)
    write(behind, cast, A, 1)
    assert behind.commit({}) == {}
    assert cast.seen() == [(A, 1, "member-1.1")], "it is behind what was never committed"


def test_without_transactions_what_was_written_is_there_before_its_offsets_are(cast: Cast) -> None:
    output = cast.owner("after-batch")
    write(output, cast, A, 0, 1)
    output._producer.flush(LONG_S)
    assert cast.seen() == [(A, 0, "member-0.1"), (A, 1, "member-0.1")]
    assert cast.committed() == {}
    assert output.commit({cast.tp(A): 2}) == {cast.tp(A): ""}
    assert cast.committed() == {A: 2}


def test_who_takes_a_partition_can_see_the_keys_of_what_others_wrote_of_it(cast: Cast) -> None:
    """But not of what was never committed, nor of other partitions, nor what has no key."""
    output = cast.owner("after-batch")
    for number, (partition, key) in enumerate([(A, b"a"), (A, b"c"), (A, None), (B, b"b"), (A, b"a")]):
        output.write(cast.tp(partition), number, key, b"v", [("theirs", b"h")])
    output.commit({cast.tp(A): 5})
    open_one = cast.member(number=1)
    open_one.write(cast.tp(A), 7, b"open", b"v")
    open_one._producer.flush(LONG_S)
    parked = cast.member("after-batch", number=2).parked
    parked.assigning([])
    assert not parked.holds(cast.tp(A), b"a"), "nobody has looked"
    parked.assigning([cast.tp(A), cast.tp(5)])
    assert [key for key in (b"a", b"b", b"c", b"open", b"v") if parked.holds(cast.tp(A), key)] == [b"a", b"c"]
    assert not parked.holds(cast.tp(5), b"a")
    assert not parked.holds(cast.tp(B), b"b"), "it took another partition"
    parked.add(cast.tp(B), 7, b"z")
    assert parked.holds(cast.tp(B), b"z")


def test_a_key_waits_until_all_its_letters_were_retried_whoever_has_the_partition(cast: Cast) -> None:
    redirect = f"{cast.into}-redirect"
    cast.cluster.admin.create_topics([scenario.Topic(redirect, partitions=PARTITIONS)])

    def member(number: int) -> Any:
        return cast.member("after-batch", number=number, redirect=redirect)

    def parks(output: Any, offset: int, key: bytes) -> bytes:
        output.parked.add(cast.tp(A), offset, key)
        output.write(cast.tp(A), offset, key, b"v")
        output.commit({cast.tp(A): offset + 1})
        return letter_id(*cast.tp(A), offset)

    def retries(*letters: bytes) -> None:
        for letter in letters:
            producer.produce(redirect, key=letter, value=None)
        assert producer.flush(LONG_S) == 0

    def waits(output: Any, *keys: bytes) -> Callable[[], bool]:
        return lambda: [key for key in (b"a", b"b", b"z") if output.parked.holds(cast.tp(A), key)] == list(keys)

    producer = ck.Producer({"bootstrap.servers": cast.cluster.bootstrap()})
    before, after, deaf = member(0), member(1), member(2)
    first, second, other = parks(before, 0, b"a"), parks(before, 1, b"a"), parks(before, 2, b"b")
    assert waits(before, b"a", b"b")()
    assert waits(after)(), "it has not taken the partition yet"
    after.parked.assigning([cast.tp(A)])
    assert waits(after, b"a", b"b")()
    retries(first, other)
    for output in (before, after):
        output.parked.assigning([cast.tp(A)])
        assert waits(output, b"a")()
    retries(second)
    eventually(waits(before), LONG_S, "the key to be free for who parked it, without another assignment")
    eventually(waits(after), LONG_S, "the key to be free for the next owner")
    # A tombstone may be there before the entry, which may have been on its way for longer.
    entry: dict[str, Any] = {}
    after.parked._write = lambda **record: entry.update(record)
    after.parked.add(cast.tp(A), 3, b"z")
    assert waits(after, b"z")()
    retries(letter_id(*cast.tp(A), 3))
    producer.produce(**entry)
    assert producer.flush(LONG_S) == 0
    for output in (before, after):
        output.parked.assigning([cast.tp(A)])
        assert waits(output)()
    # Its record was processed then: who is given it again, and parks it, has nothing to wait for.
    after.parked.add(cast.tp(A), 3, b"z")
    assert waits(after)()
    # Who never looks knows of its own alone.
    assert waits(deaf)()
    parks(deaf, 4, b"b")
    assert waits(deaf, b"b")()


def test_who_finds_no_end_of_what_waits_says_what_the_client_said(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    redirect = f"{cast.into}-redirect"
    cast.cluster.admin.create_topics([scenario.Topic(redirect, partitions=PARTITIONS)])
    monkeypatch.setattr(parked_keys, "READ_S", 1.0)
    parked = cast.member("after-batch", redirect=redirect).parked
    monkeypatch.setattr(parked, "_end", lambda partition, until_s: 1)
    with pytest.raises(TimeoutError, match=rf"the end of {redirect} \[0, 1\] was not reached within 1 s; the client's"):
        parked.assigning([cast.tp(A)])


@pytest.mark.parametrize("keep_order", [True, False])
def test_the_retry_program_is_done_with_letters_in_their_time_and_the_audit_tells_when(
    cast: Cast, keep_order: bool
) -> None:
    """In the topic are, besides, the entries of members that keep the order of keys."""
    workload = DeadLetters(into=cast.into, keep_order=keep_order, retried_after_ms=300)
    cast.cluster.admin.create_topics([scenario.Topic(workload.retried, partitions=PARTITIONS)])
    log = EventLog(cast.folder / "harness.jsonl", "harness")
    output = cast.owner("after-batch", redirect=workload.redirect)
    output.parked.assigning([cast.tp(A)])
    with retry_service.of(workload, cast.cluster, RunNames("g"), log):
        for offset, key in enumerate([b"a", None, b"b"]):
            if key and keep_order:
                output.parked.add(cast.tp(A), offset, key)
            output.write(cast.tp(A), offset, key, pack(3, offset, offset))
        output.commit({cast.tp(A): 3})
        reported = 3 + 2 * keep_order
        ends = cast.cluster.admin.end_offsets
        eventually(lambda: sum(ends(workload.retried).values()) == reported, LONG_S, "all letters to be retried")
        free = [lambda key=key: not output.parked.holds(cast.tp(A), key) for key in (b"a", b"b")]
        eventually(lambda: all(is_free() for is_free in free), LONG_S, "both keys to be free")
    with retry_service.of(workload, cast.cluster, RunNames("g", "no-such-"), log):
        pass
    with retry_service.of(
        replace(workload, keep_order=False, retried_after_ms=0), cast.cluster, RunNames("g", "no-such-"), log
    ):
        pass
    output_topics.collect(workload, Names([cast.into], workload.retried), cast.cluster, [clock_pair()], log)
    log.close()
    failed, *letters = read(cast.folder / "harness.jsonl").events
    assert failed["detail"]["text"].startswith("the retry program failed: ")
    waited_s = {e["partitions"][0][2]: (e["detail"].get("retried_ns", 0) - e["begin_ns"]) / NS for e in letters}
    assert waited_s.keys() == {0, 1, 2}
    assert 0.3 <= min(waited_s.values()) <= max(waited_s.values()) < LONG_S


def test_an_effect_bears_the_number_of_its_records_key_and_the_headers_that_this_had(cast: Cast) -> None:
    output = cast.owner("after-batch")
    output.write(cast.tp(A), 0, b"k", pack(3, 4, 77))
    output.write(cast.tp(A), 1, b"k", b"v", [(HEADER, pack(3, 5, 78))])
    output.write(cast.tp(A), 2, None, None)
    output.commit({cast.tp(A): 3})
    assert cast.seen() == [(A, offset, "member-0.1") for offset in range(3)]
    details = [e["detail"] for e in read(cast.folder / "harness.jsonl").events if e["kind"] == "dead-letter"]
    assert sorted(detail["key"] for detail in details) == [-1, 77, 78]


def test_what_is_requeued_lies_at_the_end_of_its_own_partition_and_names_where_it_was_last(cast: Cast) -> None:
    """Beside what producers wrote, which names nothing."""
    output = cast.member("after-batch", into="", on_failure=REQUEUE)
    output.write(cast.tp(A), 3, b"k", pack(3, 4, 77), [("theirs", b"h")])
    output.write(cast.tp(A), 10, b"k", pack(3, 4, 77), [("theirs", b"h"), (SOURCE, source("somebody", cast.tp(A), 3))])
    output.write(cast.tp(B), 0, None, None)
    output._producer.flush(LONG_S)
    log = EventLog(cast.folder / "harness.jsonl", "harness")
    output_topics.collect(Back(), Names([cast.name]), cast.cluster, [clock_pair()], log)
    log.close()
    reported = [(e["kind"], *e["partitions"][0], e["detail"]) for e in read(cast.folder / "harness.jsonl").events]
    assert [
        (kind, partition, offset, detail["again"], detail["key"]) for kind, _, partition, offset, detail in reported
    ] == [
        ("requeued", A, 3, 10, 77),
        ("requeued", A, 10, 11, 77),
        ("requeued", B, 0, 10, -1),
    ]
    reading = {"bootstrap.servers": cast.cluster.bootstrap()}
    *_, last = (dict(headers) for key, headers in topic_reader.contents(cast.name, reading) if key == b"k")
    assert (last["theirs"], last[SOURCE]) == (b"h", source("member-0.1", cast.tp(A), 10))


@pytest.mark.parametrize("stamp", ["LogAppendTime", "CreateTime"])
def test_what_brokers_with_other_clocks_stamped_is_unknown(cast: Cast, stamp: str) -> None:
    cast.into = f"{cast.name}-{stamp}"
    config = {"message.timestamp.type": stamp}
    cast.cluster.admin.create_topics([scenario.Topic(cast.into, partitions=PARTITIONS, config=config)])
    output = cast.owner("after-batch")
    output.write(cast.tp(A), 0, b"k", pack(3, 4, 77))
    output.commit({cast.tp(A): 1})
    log, asked = EventLog(cast.folder / "harness.jsonl", "harness"), (Open(), Names([cast.into]), cast.cluster)
    output_topics.collect(*asked, [clock_pair()], log, other_clocks=True)
    output_topics.collect(*asked, [clock_pair()], log)
    log.close()
    first, second = read(cast.folder / "harness.jsonl").events
    assert (first["kind"] == "unrecorded") == (stamp == "LogAppendTime")
    assert "other clocks" in str(first["detail"]) or stamp == "CreateTime"
    assert second["kind"] == "dead-letter"


def test_a_topic_that_nobody_tells_of_is_not_waited_for_for_ever(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_reader, "READ_S", 1.0)
    settings = {"bootstrap.servers": cast.cluster.bootstrap(), "allow.auto.create.topics": False}
    with pytest.raises(TimeoutError, match="no broker returned the partitions of no-such-topic within 1 s"):
        list(topic_reader.contents("no-such-topic", settings))


@pytest.mark.parametrize("commit", [TRANSACTION, "after-batch"])
def test_what_cannot_be_written_is_not_committed(cast: Cast, commit: str) -> None:
    """A record that is too large: without transactions that ends the member."""
    output = cast.owner(commit)
    output.write(cast.tp(A), 0, b"k", b"x" * 2_000_000)
    assert list(output.commit({cast.tp(A): 1}).values()) == ["MESSAGE_TOO_LARGE"]
    assert cast.committed() == {}
    assert cast.seen() == []
    assert (("MESSAGE_TOO_LARGE", True) in cast.told.errors) == (commit != TRANSACTION)


def test_a_topic_of_somebody_else_is_not_taken_for_effects(cast: Cast) -> None:
    producer = ck.Producer({"bootstrap.servers": cast.cluster.bootstrap()})
    producer.produce(cast.into, b"v")
    assert producer.flush(LONG_S) == 0
    with pytest.raises(
        AssertionError, match=r"cannot be read: b'' names no source|cannot be read: None names no source"
    ):
        cast.seen()


def test_a_call_that_may_be_tried_again_is_and_not_for_ever() -> None:
    calls: list[float] = []

    def call(timeout_s: float) -> None:
        calls.append(timeout_s)
        raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT, retriable=len(calls) < 3))

    with pytest.raises(ck.KafkaException):
        retries.tried(call, LONG_S)
    assert len(calls) == 3
