"""Options of the wrong type, and of things that are not there, are refused with a sentence before anything starts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost import MemberSpec
from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import (
    AddPartitions,
    BlackHole,
    DeleteRecords,
    Hold,
    Latency,
    LosePackets,
    MoveCoordinator,
    MoveLeaders,
    Pause,
    RateLimit,
    ResetOffsets,
    Slice,
)
from fencepost.model.topic import Topic
from fencepost.scenario import loader
from fencepost.scenario.overrides import override
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import PastSession, at, every, past_session
from fencepost.targets import leader_of, member, one_member, owner_of
from fencepost.workloads import PollLoop

PLAIN: dict[str, Any] = {
    "name": "tiny",
    "topics": [{"name": "orders", "partitions": 4}],
    "group": {"members": 3, "config": {"session.timeout.ms": 6000}},
    "workload": {"type": "poll_loop", "planted_in": [1]},
    "schedule": [
        {"at": 1, "fault": {"type": "black_hole", "brokers": [1]}, "target": "one_member", "heal_after": 4},
        {"every": 5, "until_s": 20, "fault": "pause", "target": {"type": "member", "index": 1}},
    ],
    "promises": [{"type": "delivery", "level": "at-least-once"}],
}


def scenario(**parts: Any) -> Scenario:
    """A scenario of three members and one topic with four partitions, but for ``parts``."""
    plain = {"name": "tiny", "topics": [Topic("orders", 4)], "group": Group(), "workload": PollLoop()}
    return Scenario(**{**plain, **parts})


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("group.members=2.5", "the group: members must be a whole number or a list, but found 2.5"),
        ("group.members=three", "the group: members must be a whole number or a list, but found 'three'"),
        ("group.members=true", "the group: members must be a whole number or a list, but found True"),
        ("group.static=1", "the group: static must be true or false, but found 1"),
        ("group.config=5", "the group: config must be a table, but found 5"),
        (
            'group.config={"session":{"timeout":1}}',
            r"the group: config.session must be text, a whole number, a number or",
        ),
        ("group.config.session.timeout.ms=soon", "session.timeout.ms must be a whole number of milliseconds"),
        ("group=5", "the group must be a table, but found 5"),
        ("topics=orders", "the scenario: topics must be a list, but found 'orders'"),
        ("topics.0=orders", "a topic must be a table, but found 'orders'"),
        ("topics.0.name=[7]", r"a topic: name must be text, but found \[7\]"),
        ("chaos_s=x", "the scenario: chaos_s must be a number, but found 'x'"),
        ("chaos_s=1e999", "the scenario: chaos_s must be a number, but found inf"),
        ("chaos_s=[1]", r"the scenario: chaos_s must be a number, but found \[1\]"),
        ("workload.rate_hz=true", "workload poll_loop: rate_hz must be a number, but found True"),
        ("workload.planted_in=1", "workload poll_loop: planted_in must be a list, but found 1"),
        ('workload.planted_in=["a"]', r"planted_in\[0\] must be a whole number, but found 'a'"),
        ("workload=5", "a workload must be a table, but found 5"),
        (
            "workload={}",
            "a workload needs its type; known are dead_letters, exclusive_writes, own_program, poll_loop, requeue, "
            "transform, worker_pool",
        ),
        ("schedule.0=1", "a step of the schedule must be a table, but found 1"),
        (
            "schedule.0.heal_after=soon",
            "found heal_after 'soon'; use seconds, { past_session = 1.5 } or { until = \"fenced\" }",
        ),
        ('schedule.0.heal_after={"past_session":"long"}', "past_session: factor must be a number, but found 'long'"),
        ("schedule.0.fault=1", "a fault must be a table, but found 1"),
        ("schedule.0.target=[]", r"a target must be a table, but found \[\]"),
        ("schedule.1.target.index=one", "target member: index must be a whole number, but found 'one'"),
        ("schedule.0.required=yes", "required must be true or false, but found 'yes'"),
        ("promises=5", "the scenario: promises must be a list, but found 5"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_what_was_wanted_and_what_came(setting: str, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        override(Scenario.from_json(PLAIN), [setting])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Group(members="3"), "Group.members must be a whole number or a list, but found '3'"),
        (lambda: Group(members=2.5), "Group.members must be a whole number or a list, but found 2.5"),
        (lambda: Topic("orders", partitions="4"), "Topic.partitions must be a whole number, but found '4'"),
        (lambda: PollLoop(rate_hz="fast"), "PollLoop.rate_hz must be a number, but found 'fast'"),
        (lambda: PollLoop(planted_in=1), "PollLoop.planted_in must be a list, but found 1"),
        (lambda: BlackHole(brokers=1), "BlackHole.brokers must be a list, but found 1"),
        (lambda: BlackHole(direction="up"), "found direction 'up'; use one of to, from, both"),
        (lambda: BlackHole(peers="leader"), "found peers 'leader'; use one of coordinator, others"),
        (lambda: BlackHole(peers="others", brokers=(1,)), r"found brokers=\(1,\) and peers='others'; use one of them"),
        (lambda: Hold(direction="up"), "found direction 'up'; use one of to, from, both"),
        (lambda: Latency(delay_ms=9), "found delay_ms=9 and jitter_ms=0; delay_ms minus jitter_ms must be at least 10"),
        (lambda: Latency(delay_ms=50, jitter_ms=41), "found delay_ms=50 and jitter_ms=41"),
        (lambda: Latency(jitter_ms=-1), "found delay_ms=200 and jitter_ms=-1"),
        (lambda: AddPartitions(count=0), "found count=0; use 1 or more"),
        (lambda: DeleteRecords(keep=0), "found keep=0; use 1 or more"),
        (lambda: ResetOffsets(to="first"), "found to='first'; use one of earliest, latest"),
        (lambda: ResetOffsets(to="latest", shift_by=-5), "found shift_by=-5 and to='latest'; use one of them"),
        (lambda: ResetOffsets(to=3), "ResetOffsets.to must be text, but found 3"),
        (lambda: MoveLeaders(("orders",)), "found the partition 'orders'; write topic and number, as in orders-3"),
        (lambda: LosePackets(share=0.04), "found share=0.04; use 0.05 to 0.95"),
        (lambda: LosePackets(share=1.0), "found share=1; use 0.05 to 0.95, or drop_packets to lose all"),
        (lambda: RateLimit(kb_per_s=0), "found kb_per_s=0; use 1 to 200"),
        (lambda: RateLimit(kb_per_s=201), "found kb_per_s=201; use 1 to 200"),
        (lambda: Slice(piece_bytes=0), "found piece_bytes=0 and pause_ms=2; use 1 or more of both"),
        (lambda: Slice(pause_ms=0), "found piece_bytes=100 and pause_ms=0; use 1 or more of both"),
        (lambda: Slice(piece_bytes=401, pause_ms=2), "up to 200 bytes for each ms of pause"),
        (lambda: member("one"), "Member.index must be a whole number, but found 'one'"),
        (lambda: owner_of(3), "OwnerOf.partition must be text, but found 3"),
        (lambda: past_session("long"), "PastSession.factor must be a number, but found 'long'"),
        (lambda: PastSession(-1), r"found past_session\(-1\); use a factor above 0"),
        (lambda: at("soon", Pause(), one_member()), "ScheduledFault.at_s must be a number, but found 'soon'"),
        (lambda: at(1, Pause, one_member()), "ScheduledFault.fault must be .* Fault, but found the class Pause itself"),
        (
            lambda: at(1, Pause(), one_member),
            "ScheduledFault.target must be .* Selector or nothing, but found the class OneMember itself",
        ),
        (lambda: at(1, Pause(), "one_member"), "ScheduledFault.target must be .*, but found 'one_member'"),
        (
            lambda: at(1, Pause(), one_member(), heal_after="soon"),
            "ScheduledFault.heal_after must be a number, .*PastSession, .*Until or",
        ),
        (lambda: scenario(topics="orders"), "Scenario.topics must be a list, but found 'orders'"),
        (
            lambda: scenario(topics=["orders"]),
            r"Scenario.topics\[0\] must be a value of the type Topic, but found 'orders'",
        ),
        (lambda: scenario(workload=None), "Scenario.workload must be a value of the type Workload, but found None"),
        (lambda: scenario(chaos_s="x"), "Scenario.chaos_s must be a number, but found 'x'"),
    ],
)
def test_python_is_told_the_same(make: Any, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        make()


def test_a_list_will_do_for_a_tuple() -> None:
    assert PollLoop(planted_in=[0, 2]) == PollLoop(planted_in=(0, 2))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Odd:
    """A workload whose annotations name what is nowhere."""

    what: Nowhere = 5  # type: ignore[name-defined]  # noqa: F821

    def member_config(self, member: int) -> dict[str, Any]:
        return {}

    def producer_config(self) -> dict[str, Any]:
        return {}

    def promises(self) -> tuple[()]:
        return ()


def test_annotations_that_cannot_be_resolved_check_nothing() -> None:
    assert scenario(workload=Odd()).workload == Odd()


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"schedule": [at(1, Pause(), member(3), heal_after=1)]}, "step 0 .*: there is no member 3; there are 0 to 2"),
        ({"schedule": [at(1, Pause(), member(-1), heal_after=1)]}, "there is no member -1"),
        ({"schedule": [at(1, Pause(), owner_of("orders-4"))]}, "there is no partition orders-4; orders has 0 to 3"),
        ({"schedule": [at(1, MoveLeaders(("orders-4",)))]}, "there is no partition orders-4; orders has 0 to 3"),
        ({"schedule": [at(1, DeleteRecords(("bills-0",)))]}, "there is no topic 'bills'; there are orders"),
        ({"schedule": [at(1, AddPartitions(("bills",)))]}, "there is no topic 'bills'; there are orders"),
        ({"schedule": [at(1, Pause(), leader_of("others-0"))]}, "there is no topic 'others'; there are orders"),
        ({"schedule": [at(1, BlackHole(brokers=(4,)), one_member())]}, "there is no broker 4; there are 1 to 3"),
        (
            {"schedule": [at(9, Pause(), one_member(), heal_after=2)], "chaos_s": 10},
            "over only after 11 s, but the chaos",
        ),
        ({"schedule": [at(9, MoveCoordinator())], "chaos_s": 8}, "over only after 9 s, but .* chaos_s = 8"),
        ({"schedule": [every(1e-9, MoveCoordinator(), until_s=100)]}, "fires more than 10000 times"),
        ({"workload": PollLoop(planted_bug="seek-back", planted_in=(3,))}, "the workload: there is no member 3"),
        (
            {"workload": PollLoop(rate_hz=750, handler_ms=4)},
            "the workload: 750 records/s of 4 ms each are 3 s of work a second, and 3 members have less than 3 s",
        ),
        (
            {"topics": [Topic("orders", 2)], "workload": PollLoop(rate_hz=600, handler_ms=4)},
            "and 2 members have less than 2 s for it",
        ),
        (
            {"workload": PollLoop(rate_hz=0, handler_ms=4)},
            "rate_hz is 0, as fast as producers can, and no handler of 4",
        ),
        ({"topics": [Topic("orders"), Topic("orders")]}, "the topic orders is there twice"),
        ({"topics": [Topic("a.b"), Topic("a_b")]}, "a.b and a_b differ only in dots and underscores"),
        ({"chaos_s": 0}, "needs chaos_s and drain_s above 0"),
        ({"drain_s": 0}, "needs chaos_s and drain_s above 0"),
        ({"min_records": -1}, "min_records of 0 or more"),
    ],
)
def test_what_the_scenario_does_not_have_is_refused_before_anything_starts(
    parts: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        scenario(**parts).plan(1)


def test_steps_that_end_with_the_chaos_phase_are_in_time() -> None:
    steps = [at(6, Pause(), one_member(), heal_after=4), at(10, MoveCoordinator())]
    assert len(scenario(schedule=steps, chaos_s=10).plan(1).steps) == 2


def test_a_repeated_step_begins_when_it_says() -> None:
    plain = {"at": 20, "every": 5, "until_s": 30, "fault": "move_coordinator"}
    plan = Scenario.from_json({**PLAIN, "schedule": [plain]}).plan(1)
    assert len(plan.steps) == 3
    assert all(abs(step.at_s - 20 - 5 * n) <= 1.25 for n, step in enumerate(plan.steps))


@pytest.mark.parametrize("name", ["", ".", "..", "with space", "a/b", "ä", "x" * 250, "__consumer_offsets"])
def test_a_name_that_kafka_takes_for_no_topic_is_refused(name: str) -> None:
    with pytest.raises(ScenarioError, match="topic"):
        Topic(name)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"config": {"bootstrap.servers": "x"}}, "cannot set bootstrap.servers: Fencepost gives every member its own"),
        ({"config": {"group.id": "x"}}, "cannot set group.id: use the group's option name"),
        ({"config": {"group.instance.id": "x"}}, "use the group's option static"),
        ({"config": {"group.protocol": "consumer"}}, "use the group's option protocol"),
        ({"config": {"client.id": "x"}}, "cannot set client.id: Fencepost names every client"),
        ({"config": {"enable.auto.commit": True}}, "use the workload's option commit"),
        ({"config": {"auto.commit.interval.ms": 1}}, "use the workload's option commit_every_ms"),
        ({"protocol": "cooperative", "config": {"partition.assignment.strategy": "range"}}, "'range' contradicts its"),
        (
            {"config": {"partition.assignment.strategy": "roundrobin,cooperative-sticky"}},
            "'roundrobin' contradicts its",
        ),
        ({"protocol": "eager", "config": {"partition.assignment.strategy": "range,cooperative-sticky"}}, "contradicts"),
        ({"protocol": "consumer", "config": {"partition.assignment.strategy": "range"}}, "the brokers assign"),
        ({"config": {"session.timeout.ms": 0}}, "whole number of milliseconds above 0, found 0"),
        ({"config": {"session.timeout.ms": 900, "heartbeat.interval.ms": 900}}, "must be below its session.timeout.ms"),
    ],
)
def test_client_settings_that_fencepost_decides_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        Group(**options)


def test_an_assignor_that_goes_with_the_protocol_may_be_chosen() -> None:
    assert Group(protocol="eager", config={"partition.assignment.strategy": "roundrobin"}).client_configs[0]


def test_a_client_in_java_is_eager_with_a_cooperative_assignor_beside_an_eager_one_and_refused_without() -> None:
    java = {"client": "verifiable-consumer", "protocol": "eager"}
    assert Group(**java, config={"partition.assignment.strategy": "roundrobin, cooperative-sticky"}).client_configs[0]
    for names in ("cooperative-sticky", "cooperative-sticky,uniform"):
        with pytest.raises(ScenarioError, match="'cooperative-sticky' contradicts its protocol 'eager'"):
            Group(**java, config={"partition.assignment.strategy": names})
    beside = [MemberSpec(1, "verifiable-consumer"), MemberSpec(1)]
    with pytest.raises(ScenarioError, match="contradicts"):
        Group(beside, protocol="eager", config={"partition.assignment.strategy": "roundrobin,cooperative-sticky"})


@pytest.mark.parametrize("text", ["[1]", "5", '{"scenario": 5}', "[" * 100_000, '{"name": NaN}'])
def test_a_json_file_that_holds_no_scenario_is_refused(tmp_path: Any, text: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(ScenarioError):
        loader.load(tmp_path / "odd.json")


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["pause", "member", "orders-3"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("type"), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


@given(place=st.sampled_from(places(PLAIN)), value=ANYTHING, seed=st.integers(0, 9))
def test_anything_anywhere_makes_a_scenario_or_a_sentence(place: tuple[Any, ...], value: Any, seed: int) -> None:
    data = json.loads(json.dumps(PLAIN))
    if place:
        inner = data
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
    else:
        data = value
    try:
        made = Scenario.from_json(data)
        made.plan(seed)
        made.cluster_spec()
    except ScenarioError:
        return
    assert Scenario.from_json(json.loads(json.dumps(made.to_json()))).plan(seed) == made.plan(seed)


def test_the_plain_scenario_of_these_tests_is_a_good_one() -> None:
    with pytest.raises(PlanError, match="chaos_s = 24"):
        Scenario.from_json({**PLAIN, "chaos_s": 24}).plan(1)
    assert len(Scenario.from_json(PLAIN).plan(1).steps) == 5
