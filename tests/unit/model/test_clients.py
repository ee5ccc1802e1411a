"""Which clients there are, how they are asked for, and what each of them can do."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import fencepost_member.adapters as adapters
from fencepost.errors import ScenarioError
from fencepost.model import clients
from fencepost.model.clients import KNOWN, Client, MemberSpec, parse
from fencepost.model.topic import Topic
from fencepost.repeat.shrink.passes import Case, fewer_members
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.plan import Plan
from fencepost.workloads import PollLoop
from fencepost_member.adapters import AdapterFeature
from fencepost_member.planted_bugs import NAMES, NEEDS


@pytest.mark.parametrize(
    ("requirement", "client"),
    [
        ("kafka-python", Client("kafka-python")),
        ("kafka-python==2.2.8", Client("kafka-python", "2.2.8")),
        ("confluent-kafka==2.13.0rc1", Client("confluent-kafka", "2.13.0rc1")),
    ],
)
def test_a_requirement_names_a_client_and_perhaps_a_release(requirement, client):
    assert parse(requirement) == client
    assert str(client) == requirement
    assert client.library is clients.named(client.name) is KNOWN[client.name]


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ("franz-go", "client 'franz-go' is unknown; known are confluent-kafka, kafka-python, aiokafka"),
        ("kafka-python>=2", "neither name nor name==version"),
        ("kafka-python==", "neither name nor name==version"),
        ("kafka-python==2.x", "neither name nor name==version"),
        ("", "neither name nor name==version"),
        ("kafka-python==2.0.1", "too old; use release 2.0.2 or newer"),
    ],
)
def test_what_is_no_requirement_is_refused_with_what_is_one(requirement, words):
    with pytest.raises(ScenarioError, match=words):
        parse(requirement)


@pytest.mark.parametrize(
    ("requirement", "protocols", "static"),
    [
        ("kafka-python", ["eager", "cooperative"], True),
        ("kafka-python==2.2.8", ["eager"], False),
        ("kafka-python==2.3.0", ["eager"], True),
        ("kafka-python==3.0.0", ["eager", "cooperative"], True),
        ("aiokafka==0.9.0", ["eager"], False),
        ("aiokafka==0.10.0", ["eager"], True),
        ("aiokafka", ["eager"], True),
        ("confluent-kafka==2.3.0", ["eager", "cooperative"], True),
        ("confluent-kafka", ["eager", "cooperative", "consumer"], True),
    ],
)
def test_what_a_client_can_do_depends_on_its_release(requirement, protocols, static):
    client = parse(requirement)
    assert list(client.assignors) == protocols
    assert client.static is static


def test_features_are_protocols_of_the_adapters():
    names = {feature: feature.name.title().replace("_", "") for feature in AdapterFeature}
    assert {feature for feature, name in names.items() if not hasattr(adapters, name)} == {
        AdapterFeature.REPORT_COMMITS,
        AdapterFeature.COMMIT_UNOWNED,
    }
    needed = [AdapterFeature.SEEKS, AdapterFeature.STORE_OFFSETS]
    assert parse("aiokafka").lacks(needed) == [AdapterFeature.STORE_OFFSETS]
    assert parse("confluent-kafka").lacks(AdapterFeature) == []
    assert parse("kafka-python").lacks(AdapterFeature) == [
        AdapterFeature.STORE_OFFSETS,
        AdapterFeature.OUTPUTS,
        AdapterFeature.DELAY_REVOCATION,
    ]


def mixed(**more):
    parts = (MemberSpec(2, "confluent-kafka"), MemberSpec(1, "kafka-python==2.2.8"), MemberSpec(1, "aiokafka"))
    return Group(**{"members": parts, "protocol": "eager", **more})


def test_members_of_one_group_may_have_different_clients():
    group = mixed(spare=1)
    assert [str(client) for client in group.clients] == [
        *["confluent-kafka"] * 2,
        "kafka-python==2.2.8",
        "aiokafka",
        "confluent-kafka",
    ]
    assert group.size == 4
    assert Group(members=[MemberSpec(3, "aiokafka")], protocol="eager").clients == (Client("aiokafka"),) * 3
    assert Group.from_json(group.to_json()) == group


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"protocol": "cooperative"}, "client kafka-python==2.2.8 cannot be .* 'cooperative'; it can with eager"),
        ({"static": True}, "kafka-python==2.2.8 has no static members: it has them since release 2.3.0"),
        ({"config": {"fetch.wait.max.ms": 5}}, r"kafka-python has no setting fetch\.wait\.max\.ms; it has auto"),
        ({"config": {"partition.assignment.strategy": "sticky"}}, "'sticky' contradicts .* range or roundrobin"),
        ({"members": [MemberSpec(1, "franz-go")]}, "client 'franz-go' is unknown"),
        ({"members": []}, "at least one member"),
    ],
)
def test_what_one_of_the_clients_cannot_do_is_refused(asked, words):
    with pytest.raises(ScenarioError, match=words):
        mixed(**asked)


def test_members_of_one_group_may_be_static_or_not():
    group = Group(
        members=[MemberSpec(2), MemberSpec(1, static=True), MemberSpec(1, "kafka-python", static=False)], spare=1
    )
    assert group.statics == (False, False, True, False, False)
    assert replace(group, static=True).statics == (True, True, True, False, True)
    assert Group(2, static=True).statics == (True, True)
    assert group.first(3).statics == (False, False, True, False)  # and the spare one
    assert Group.from_json(group.to_json()) == group
    reported = Group.from_json({"members": [{"count": 2, "static": True}, {"count": 1}]})
    assert reported == Group(members=[MemberSpec(2, static=True), MemberSpec(1)])


def test_a_client_without_static_members_may_be_beside_static_ones():
    parts = [MemberSpec(1, static=True), MemberSpec(1, "kafka-python==2.2.8")]
    assert Group(members=parts, protocol="eager").statics == (True, False)
    parts = [MemberSpec(1), MemberSpec(1, "kafka-python==2.2.8", static=True)]
    with pytest.raises(ScenarioError, match=r"kafka-python==2\.2\.8 has no static members"):
        Group(members=parts, protocol="eager")
    with pytest.raises(ScenarioError, match="static must be true or false or nothing, but found 'yes'"):
        MemberSpec(1, static="yes")


def test_members_of_one_group_may_have_commands_variables_and_settings_of_their_own():
    old, new = ("python", "-m", "shop.v1"), ("python", "-m", "shop.v2")
    parts = [MemberSpec(1), MemberSpec(2, command=new, env={"MODE": "new"}, config={"fetch.min.bytes": 9})]
    group = Group(members=parts, command=old, protocol="eager", spare=1)
    assert group.commands == (old, new, new, old)
    assert group.variables == ({}, {"MODE": "new"}, {"MODE": "new"}, {})
    assert [config.get("fetch.min.bytes") for config in group.client_configs] == [None, 9, 9, None]
    assert Group.from_json(json.loads(json.dumps(group.to_json()))) == group
    assert group.first(2).commands == (old, new, old)
    own = Group(members=[MemberSpec(1, config={"fetch.min.bytes": 9}), MemberSpec(1)], config={"client.rack": "a"})
    assert [c.get("fetch.min.bytes") for c in own.client_configs] == [9, None]
    assert {c["client.rack"] for c in own.client_configs} == {"a"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"config": {"session.timeout.ms": 6000}},
            "cannot set session.timeout.ms: faults and rules count with one value",
        ),
        ({"config": {"partition.assignment.strategy": "range"}}, "cannot set partition.assignment.strategy"),
        ({"config": {"group.id": "other"}}, "the config of member 0 cannot set group.id"),
        ({"config": {"auto.offset.reset": "latest"}}, "the config of single members cannot set auto.offset.reset"),
        ({"env": {"A=B": "1"}}, "the env of members has 'A=B', which is no variable"),
        ({"env": {"": "1"}}, "which is no variable"),
        ({"command": [""]}, "begins with an empty word"),
        ({"config": {"sasl.username": "me"}}, "cannot set sasl.username: give SASL and TLS with --cluster-config"),
        ({"config": {"no.such.setting": 1}}, "no.such.setting"),
        ({"env": {"FENCEPOST_MEMBER": "x"}}, "the env of members cannot set FENCEPOST_MEMBER"),
        ({"env": {"MODE": 1}}, "env"),
        ({"command": ["python"]}, "some members have a command, and others have none: give the group a command, too"),
    ],
)
def test_what_single_members_cannot_have_is_refused(options, words):
    with pytest.raises(ScenarioError, match=re.escape(words)):
        Group(members=[MemberSpec(1, **options), MemberSpec(1)], client="kafka-python", protocol="eager")


def test_members_are_counted_from_one():
    with pytest.raises(ScenarioError, match="use 1 or more"):
        MemberSpec(0)


def test_all_clients_of_a_group_may_have_an_assignor_that_librdkafka_lacks():
    strategy = {"partition.assignment.strategy": "sticky"}
    parts = [MemberSpec(1, "aiokafka"), MemberSpec(1, "kafka-python")]
    assert Group(members=parts, protocol="eager", config=strategy).client_configs[0].items() >= strategy.items()


def test_a_planted_bug_is_refused_in_a_client_that_cannot_have_it_and_only_there():
    def planted(*indices):
        return Scenario("x", [Topic("orders")], mixed(), PollLoop(planted_bug="foreign-commit", planted_in=indices))

    assert planted(0, 1, 2).group == mixed()
    for indices in ((3,), ()):
        with pytest.raises(
            ScenarioError,
            match=r"'foreign-commit' needs .* commit partitions .* not assigned; aiokafka cannot",
        ):
            planted(*indices)


def test_what_planted_bugs_need_are_extras_of_bugs():
    assert NEEDS.keys() <= set(NAMES)
    assert {extra for needs in NEEDS.values() for extra in needs} <= set(AdapterFeature)


def test_a_smaller_group_keeps_its_first_clients():
    case = Case(Scenario("x", [Topic("orders")], mixed(), PollLoop()), Plan(1, ()))
    first = next(fewer_members(case))[1]["group"]
    assert [str(client) for client in first.clients] == ["confluent-kafka"]
