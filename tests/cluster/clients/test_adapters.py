"""What every adapter promises its member, asked of the real client on the real cluster: client x protocol.

What members promise, whatever they are made of, is in ``test_contract.py``. Clients whose members are programs of their
own have no adapter that could be asked: see ``test_lines.py``."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import confluent_kafka as ck
import pytest
from kafka.errors import KafkaTimeoutError

from cluster.worlds import LONG_S
from fencepost.clock import eventually
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.model.clients import KNOWN, Library
from fencepost.scenario import scenario
from fencepost_member import adapters
from fencepost_member.adapters import AdapterFeature
from fencepost_member.config import ConfigError, LoopConfig, MemberConfig

pytestmark = [
    pytest.mark.cluster,
    # Libraries leave sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

PARTITIONS, EACH = 4, 30
SHORT_S = 1.0
# How long a poll takes when nothing comes. Release 3.0.12 of kafka-python forgets a join that is answered between two
# polls, and joins again; of members that poll in turns, that could go on for ever.
POLL_S = {"kafka-python": 0.5}
SESSION_S = 30  # who leaves says so: nobody waits that long
SESSION_MIN_S = 6  # brokers take no less
EVERY = [
    pytest.param(library, protocol, id=f"{library.name}-{protocol}")
    for library in KNOWN.values()
    for protocol in library.assignors
    if not library.lines and not library.silent  # those have no adapter
]
CLASSIC = [one for one in EVERY if one.values[1] != "consumer"]
_NUMBERS = itertools.count()
Tp = tuple[str, int]


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """What libraries leave is collected here, and not in the midst of another file's test, which would be blamed."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@dataclass
class Told:
    """A listener: who owns what, and what was told in which order."""

    owned: set[Tp] = field(default_factory=set)
    callbacks: list[tuple[str, set[Tp]]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    commits: dict[Tp, int] = field(default_factory=dict)
    errors: list[tuple[str, bool]] = field(default_factory=list)
    inside: Callable[[str, set[Tp]], None] = lambda what, partitions: None

    def assigned(self, partitions: list[Tp], apply: Callable[[], None]) -> None:
        self._told("assigned", partitions, apply)
        self.owned |= set(partitions)

    def revoked(self, partitions: list[Tp], apply: Callable[[], None]) -> None:
        self._told("revoked", partitions, apply)
        self.owned -= set(partitions)

    def lost(self, partitions: list[Tp], apply: Callable[[], None]) -> None:
        self._told("lost", partitions, apply)
        self.owned -= set(partitions)

    def committed(self, offsets: Mapping[Tp, int], errors: Mapping[Tp, str]) -> None:
        self.threads.add(threading.get_ident())
        self.commits |= {tp: offset for tp, offset in offsets.items() if not errors[tp]}

    def error(self, name: str, text: str, fatal: bool) -> None:
        self.errors.append((name, fatal))

    def _told(self, what: str, partitions: list[Tp], apply: Callable[[], None]) -> None:
        self.threads.add(threading.get_ident())
        self.callbacks.append((what, set(partitions)))
        self.inside(what, set(partitions))
        apply()


@dataclass
class Member:
    """A client behind its adapter, and what it told."""

    adapter: Any
    told: Told
    records: list[adapters.Record] = field(default_factory=list)

    def poll(self, most: int = 100, timeout_s: float = 0.05) -> list[adapters.Record]:
        found: list[adapters.Record] = self.adapter.poll(most, timeout_s)
        self.records += found
        return found


class Cast:
    """Members of one client and protocol, of a group and a topic of their own."""

    def __init__(self, cluster: ManagedCluster, library: Library, protocol: str) -> None:
        self.cluster, self.library, self.protocol = cluster, library, protocol
        self.name = f"adapters-{library.name}-{protocol}-{next(_NUMBERS)}"
        self.members: list[Member] = []
        cluster.admin.create_topics([scenario.Topic(self.name, partitions=PARTITIONS)])
        producer = ck.Producer({"bootstrap.servers": cluster.bootstrap()})
        for number in range(EACH * PARTITIONS):
            producer.produce(self.name, str(number).encode(), b"key", number % PARTITIONS)
        assert producer.flush(LONG_S) == 0

    def config(self, **more: Any) -> MemberConfig:
        slot, classic = len(self.members), self.protocol != "consumer"
        times = {"session.timeout.ms": SESSION_S * 1000, "heartbeat.interval.ms": 500} if classic else {}
        options = {"bootstrap": self.cluster.bootstrap(slot), **more}
        config = {**times, **options.pop("client_config", {})}
        topics = {self.name: {str(p): p for p in range(PARTITIONS)}}
        actor, client = f"member-{slot}.1", self.library.name
        return MemberConfig(
            actor,
            slot,
            slot,
            "",
            self.name,
            topics,
            client=client,
            protocol=self.protocol,
            client_config=config,
            **options,
        )

    def joins(self, **more: Any) -> Member:
        reported = Told()
        member = Member(adapters.connect(self.config(**more), reported), reported)
        self.members.append(member)
        member.adapter.subscribe([self.name])
        return member

    def owner(self, **more: Any) -> Member:
        """A member that owns all partitions."""
        member = self.joins(**more)
        self.poll_until(lambda: len(member.told.owned) == PARTITIONS, "it to own everything")
        return member

    def poll_until(self, condition: Callable[[], object], what: str, most: int = 100) -> None:
        def polled() -> object:
            for member in self.members:
                member.poll(most, POLL_S.get(self.library.name, 0.05))
            return condition()

        eventually(polled, LONG_S, what, state=lambda: str([m.told for m in self.members]))

    def leaves(self, member: Member) -> None:
        self.members.remove(member)
        member.adapter.close()

    def tp(self, partition: int = 0) -> Tp:
        return self.name, partition

    def committed(self) -> dict[Tp, int]:
        return {(tp.topic, tp.partition): at for tp, at in self.cluster.admin.committed(self.name).items()}


@pytest.fixture
def cast(cluster: ManagedCluster, library: Library, protocol: str) -> Iterator[Cast]:
    cast = Cast(cluster, library, protocol)
    yield cast
    for member in [*cast.members]:
        cast.leaves(member)


def offsets(records: list[adapters.Record], partition: int) -> list[int]:
    return [record[2] for record in records if record[1] == partition]


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_polls_return_the_records_in_order_and_never_more_than_asked_for(cast: Cast) -> None:
    member = cast.joins()
    cast.poll_until(lambda: len(member.records) >= 10, "ten records", most=1)
    assert len(member.records) == 10
    for most in itertools.cycle((1, 7)):
        assert len(member.poll(most, SHORT_S)) <= most
        if len(member.records) == EACH * PARTITIONS:
            break
    for partition in range(PARTITIONS):
        assert offsets(member.records, partition) == list(range(EACH))
    assert {(topic, key, type(value)) for topic, _, _, key, value, _ in member.records} == {(cast.name, b"key", bytes)}
    assert {int(value) % PARTITIONS == p for _, p, _, _, value, _ in member.records if value} == {True}
    began_s = time.monotonic()
    assert member.poll(10, SHORT_S) == []
    assert SHORT_S / 2 < time.monotonic() - began_s < LONG_S


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_partitions_change_hands_and_callbacks_come_on_the_callers_thread(cast: Cast) -> None:
    first = cast.owner()
    member_id, generation = first.adapter.identity()
    assert (member_id != "", generation > 0) == (True, True)
    first.told.inside = lambda what, tps: reported.append(first.adapter.commit(dict.fromkeys(tps, 5)))
    reported: list[dict[Tp, str]] = []
    second = cast.joins()
    cast.poll_until(lambda: len(first.told.owned) == len(second.told.owned) == PARTITIONS // 2, "both to own a half")
    given = [partitions for what, partitions in first.told.callbacks if what == "revoked"]
    assert (len(set().union(*given)) == PARTITIONS) == (cast.protocol == "eager")
    assert {error for answer in reported for error in answer.values()} == {""}
    assert {tp: at for tp, at in cast.committed().items() if tp in second.told.owned} == dict.fromkeys(
        second.told.owned, 5
    )
    assert second.adapter.identity()[0] not in ("", member_id)
    assert first.adapter.identity()[1] > generation
    assert first.told.threads == second.told.threads == {threading.get_ident()}


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_commits_are_answered(cast: Cast) -> None:
    member = cast.owner()
    assert member.adapter.commit({cast.tp(0): 3, cast.tp(1): 4}) == {cast.tp(0): "", cast.tp(1): ""}
    assert cast.committed() == {cast.tp(0): 3, cast.tp(1): 4}
    assert member.adapter.committed([cast.tp(0), cast.tp(2)]) == {cast.tp(0): 3}
    assert member.adapter.commit({cast.tp(0): 3}, "x" * 5000) == {cast.tp(0): "OFFSET_METADATA_TOO_LARGE"}
    assert member.adapter.partitions([cast.name]) == [cast.tp(p) for p in range(PARTITIONS)]


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_commits_that_nobody_waits_for_arrive_in_order_and_later_calls_tell_the_answers(cast: Cast) -> None:
    member = cast.owner(loop=LoopConfig(commit="asynchronous"))
    answers: dict[int, dict[Tp, str]] = {}
    threads: set[int] = set()

    def begin(*numbers: int) -> None:
        for number in numbers:
            member.adapter.commit_async({cast.tp(0): number, cast.tp(1): 1}, partial(answered, number))

    def answered(number: int, answer: dict[Tp, str]) -> None:
        answers[number] = answer
        threads.add(threading.get_ident())

    begin(3, 4, 5)
    assert answers == {}
    cast.poll_until(lambda: len(answers) == 3, "all answers")
    assert answers == {number: {cast.tp(0): "", cast.tp(1): ""} for number in (3, 4, 5)}
    assert cast.committed() == {cast.tp(0): 5, cast.tp(1): 1}
    assert member.adapter.commit({cast.tp(0): 6}) == {cast.tp(0): ""}
    cast.cluster.admin.remove_member(cast.name, member.adapter.identity()[0])
    cast.joins()  # an empty group takes the commit of anybody
    begin(7)
    cast.poll_until(lambda: 7 in answers, "the answer to who was put out")
    assert set(answers[7].values()) < {"UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH"}
    assert cast.committed()[cast.tp(0)] == 6
    assert member.told.commits == {}, "it began all of them"
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_who_was_put_out_is_refused_by_name_and_told_and_comes_back(cast: Cast) -> None:
    quiet = {"client_config": {"heartbeat.interval.ms": 10_000}} if cast.protocol != "consumer" else {}
    member = cast.owner(**quiet)
    member_id, _ = member.adapter.identity()
    cast.cluster.admin.remove_member(cast.name, member_id)
    rejoined = cast.joins()  # an empty group takes the commit of anybody
    refused = member.adapter.commit({cast.tp(): 3})
    assert refused[cast.tp()] in ("UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH")
    before = len(member.told.callbacks)
    cast.poll_until(lambda: len(member.told.owned) == len(rejoined.told.owned) == PARTITIONS // 2, "both to own a half")
    (what, partitions), *_ = member.told.callbacks[before:]
    assert (what, len(partitions)) == ("revoked" if cast.library.name == "aiokafka" else "lost", PARTITIONS)
    assert not member.told.errors or cast.library.name == "confluent-kafka"


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_what_the_client_commits_by_itself_is_told_where_it_tells_it(cast: Cast) -> None:
    member = cast.owner(loop=LoopConfig(commit="auto", commit_every_ms=200))
    cast.poll_until(lambda: len(member.records) == EACH * PARTITIONS, "all records")
    everything = {cast.tp(p): EACH for p in range(PARTITIONS)}
    if AdapterFeature.STORE_OFFSETS in cast.library.extras:
        assert cast.committed() == {}
        member.adapter.store(everything)
    cast.poll_until(lambda: cast.committed() == everything, "the client to commit it")
    if AdapterFeature.REPORT_COMMITS in cast.library.extras:
        cast.poll_until(lambda: member.told.commits == everything, "the client to tell it")
    assert member.told.threads == {threading.get_ident()}


@pytest.mark.parametrize(("library", "protocol"), [one for one in EVERY if one.values[0] is KNOWN["confluent-kafka"]])
def test_the_end_of_a_partition_is_no_error_where_a_setting_asks_for_it(cast: Cast) -> None:
    member = cast.owner(client_config={"enable.partition.eof": True})
    cast.poll_until(lambda: len(member.records) == EACH * PARTITIONS, "all records")
    until_s = time.monotonic() + SHORT_S
    while time.monotonic() < until_s:  # the events come after the records
        member.poll()
    assert member.told.errors == []


@pytest.mark.parametrize(("library", "protocol"), [one for one in EVERY if one.values[0] is KNOWN["aiokafka"]])
def test_an_event_loop_keeps_its_member_in_the_group_while_a_record_takes_longer_than_a_session(cast: Cast) -> None:
    """The loop goes on between two polls; ``max.poll.interval.ms`` is far."""
    member = cast.owner(client_config={"session.timeout.ms": SESSION_MIN_S * 1000, "heartbeat.interval.ms": 500})
    cast.poll_until(lambda: member.records, "a record", most=1)
    _, partition, offset, *_ = member.records[0]
    before = member.adapter.identity(), [*member.told.callbacks]
    done_s = time.monotonic() + 1.5 * SESSION_MIN_S
    eventually(lambda: time.monotonic() > done_s, LONG_S, "a record to be processed")
    assert member.adapter.commit({cast.tp(partition): offset + 1}) == {cast.tp(partition): ""}
    cast.poll_until(lambda: len(member.records) == EACH * PARTITIONS, "all records")
    assert (member.adapter.identity(), member.told.callbacks) == before
    assert member.told.errors == []


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_a_seek_moves_the_position(cast: Cast) -> None:
    member = cast.owner()
    cast.poll_until(lambda: len(member.records) == EACH * PARTITIONS, "all records")
    member.records.clear()
    member.adapter.seek(cast.tp(2), EACH - 4)
    cast.poll_until(lambda: len(member.records) == 4, "the last four again")
    assert offsets(member.records, 2) == list(range(EACH - 4, EACH))


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_an_assignment_begins_where_the_member_wants_it_to(cast: Cast) -> None:
    """Also when the member takes its time to say so, in which a poll that waits could read from elsewhere."""
    member = cast.joins()

    def says(what: str, partitions: set[Tp]) -> None:
        if what == "assigned":
            assert not threading.Event().wait(SHORT_S)
            member.adapter.start_at(dict.fromkeys(partitions, 20))

    member.told.inside = says
    enough = 10 * PARTITIONS
    eventually(lambda: member.poll(100, 2 * SHORT_S) and len(member.records) >= enough, LONG_S, "the last ten of each")
    assert all(offsets(member.records, p) == list(range(20, EACH)) for p in range(PARTITIONS))


@pytest.mark.parametrize(("library", "protocol"), [one for one in EVERY if one.values[0] is KNOWN["aiokafka"]])
def test_what_is_paused_as_it_comes_stays_so(cast: Cast) -> None:
    """The adapter holds all of it until the member has heard of it, and lets go of the rest."""
    member = cast.joins()
    member.told.inside = lambda what, tps: what == "assigned" and member.adapter.pause(cast.tp(2))
    cast.poll_until(lambda: len(member.records) == EACH * (PARTITIONS - 1), "all of the others")
    assert member.poll(10, SHORT_S) == []
    member.adapter.resume(cast.tp(2))
    cast.poll_until(lambda: len(member.records) == EACH * PARTITIONS, "the rest")


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_a_paused_partition_returns_nothing_until_it_is_resumed(cast: Cast) -> None:
    """Of a partition that has begun to be returned, kafka-python 3.0.12 never returns the rest once it was paused."""
    member = cast.joins()
    cast.poll_until(lambda: member.records, "a record", most=1)
    begun = {record[1] for record in member.records}
    partition = next(p for p in range(PARTITIONS) if p not in begun)
    member.adapter.pause(cast.tp(partition))
    cast.poll_until(lambda: len(member.records) == EACH * (PARTITIONS - 1), "all of the others")
    assert member.poll(10, SHORT_S) == []
    member.adapter.resume(cast.tp(partition))
    cast.poll_until(lambda: len(member.records) == EACH * PARTITIONS, "the rest")
    assert offsets(member.records, partition) == list(range(EACH))


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_who_unsubscribes_gives_everything_up_before_it_leaves_and_may_come_back(cast: Cast) -> None:
    member = cast.owner()
    answers: list[dict[Tp, str]] = []

    def commits(what: str, partitions: set[Tp]) -> None:
        if what == "revoked":
            answers.append(member.adapter.commit(dict.fromkeys(partitions, 5)))

    member.told.inside = commits
    member.adapter.unsubscribe()
    cast.poll_until(lambda: not member.told.owned, "it to give up everything")
    everything = {cast.tp(p): 5 for p in range(PARTITIONS)}
    assert (answers, cast.committed()) == ([dict.fromkeys(everything, "")], everything)
    cast.poll_until(lambda: not cast.cluster.admin.describe(cast.name).members, "the group to be empty")
    member.records.clear()
    member.adapter.subscribe([cast.name])
    cast.poll_until(lambda: len(member.records) == (EACH - 5) * PARTITIONS, "what was not committed again")
    assert len(member.told.owned) == PARTITIONS
    assert member.told.threads == {threading.get_ident()}
    assert member.told.errors == []


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_a_static_member_that_comes_back_is_not_missed_meanwhile(cast: Cast) -> None:
    member = cast.owner(instance_id="one")
    generation = member.adapter.identity()[1]
    cast.leaves(member)
    assert len(cast.cluster.admin.describe(cast.name).members) == 1
    back = cast.owner(instance_id="one")
    assert back.adapter.identity()[1] == generation or cast.protocol == "consumer"


@pytest.mark.parametrize(("library", "protocol"), EVERY)
def test_where_no_broker_answers_polls_end_in_time_and_tell_an_error(cast: Cast) -> None:
    member = cast.joins(bootstrap="127.0.0.1:1")
    assert member.adapter.identity()[1] in (-1, 0)
    began_s = time.monotonic()
    cast.poll_until(lambda: member.told.errors, "an error")
    assert time.monotonic() - began_s < LONG_S
    assert {name for name, _ in member.told.errors} <= {
        "NETWORK_EXCEPTION",
        "LOCAL_ALL_BROKERS_DOWN",
        "LOCAL_TIMED_OUT",
    }
    assert not any(fatal for _, fatal in member.told.errors)


@pytest.mark.parametrize(("library", "protocol"), [one for one in EVERY if one.values[0] is KNOWN["kafka-python"]])
def test_who_subscribes_gets_on_without_an_answer_about_partitions(cast: Cast, monkeypatch: Any) -> None:
    member = cast.owner()

    def late(topic: str) -> None:
        raise KafkaTimeoutError

    monkeypatch.setattr(member.adapter._consumer, "partitions_for_topic", late)
    member.adapter.subscribe([cast.name])
    cast.poll_until(lambda: len(member.records) == EACH * PARTITIONS, "all records")


@pytest.mark.parametrize(("library", "protocol"), EVERY)
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"client_config": {"no.such.setting": 1}}, r"no\.such\.setting"),
        ({"client_config": {"enable.auto.commit": True}}, "the loop's commit policy decides"),
    ],
)
def test_a_setting_that_the_client_does_not_take_is_refused(cast: Cast, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        adapters.connect(cast.config(**more), Told())


@pytest.mark.parametrize(("library", "protocol"), CLASSIC)
def test_a_group_agrees_on_the_assignors_that_members_ask_for(cast: Cast) -> None:
    *_, last = names = KNOWN[cast.library.name].assignors[cast.protocol]
    member = cast.owner(assignors=",".join(reversed(names)))
    assert cast.cluster.admin.describe(cast.name).assignor == last
    assert member.adapter.settings["partition.assignment.strategy"].split(",")[0] == last


@pytest.mark.parametrize(("library", "protocol"), CLASSIC)
def test_an_assignor_that_the_client_does_not_have_is_refused(cast: Cast) -> None:
    with pytest.raises(ConfigError, match=r"no-such|assignment\.strategy"):
        adapters.connect(cast.config(assignors="no-such"), Told())
