"""The table of Kafka errors, and the names that the adapter gives them."""

from __future__ import annotations

import struct

import pytest
from confluent_kafka import KafkaError
from kafka import errors as python_errors
from kafka.errors import CommitFailedError

from fencepost_member import kafka_errors
from fencepost_member.adapters.confluent.consumer import client_settings
from fencepost_member.adapters.confluent.errors import cause, error_name
from fencepost_member.adapters.confluent.producer import has_left
from fencepost_member.adapters.confluent.values import identity_of
from fencepost_member.adapters.confluent_kafka import connect
from fencepost_member.adapters.errors import error_name as python_name
from fencepost_member.config import COMMIT_POLICIES, ConfigError, LoopConfig, MemberConfig

# Every code that librdkafka has a name for.
CODES = [code for code in range(-199, 130) if not KafkaError(code).name().startswith("ERR_")]


def config(**more):
    return MemberConfig("member-0.1", 0, 0, "history", "g", {"orders": {"0": 0}}, "127.0.0.1:1", **more)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("", "ok"),
        ("UNKNOWN_MEMBER_ID", "fail"),
        ("NOT_LEADER_OR_FOLLOWER", "info"),  # it may have been appended before the leadership was lost
        ("NOT_COORDINATOR", "info"),
        ("REQUEST_TIMED_OUT", "info"),
        ("NOT_ENOUGH_REPLICAS", "fail"),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "info"),
        ("LOCAL_PURGE_QUEUE", "fail"),
        ("LOCAL_PURGE_INFLIGHT", "info"),
        ("AN_ERROR_OF_THE_FUTURE", "info"),
    ],
)
def test_an_error_is_a_failure_only_where_it_is_definite(error, outcome):
    assert kafka_errors.outcome(error) == outcome


def test_every_rule_gives_its_reason():
    assert all(len(rule.why) > 15 for rule in kafka_errors.TABLE.values())


def test_every_name_of_the_table_is_one_that_the_adapter_gives():
    given = {error_name(KafkaError(code)) for code in CODES} | {python_name(CommitFailedError())}
    assert kafka_errors.TABLE.keys() - given == set()


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (python_errors.NotLeaderForPartitionError(), "NOT_LEADER_OR_FOLLOWER"),
        (python_errors.UnknownMemberIdError(), "UNKNOWN_MEMBER_ID"),
        (python_errors.KafkaConnectionError(), "NETWORK_EXCEPTION"),
        (CommitFailedError(python_errors.IllegalGenerationError()), "ILLEGAL_GENERATION"),
        (CommitFailedError("who knows"), "LOCAL_COMMIT_FAILED"),
        (python_errors.KafkaError("InconsistentGroupProtocolError()"), "LOCAL_KAFKA"),
        (python_errors.KafkaError("[Error 82] FencedInstanceIdError"), "FENCED_INSTANCE_ID"),
        (python_errors.IllegalStateError("no group"), "LOCAL_STATE"),
    ],
)
def test_exceptions_of_clients_in_python_have_kafkas_names_too(error, name):
    assert python_name(error) == name


def test_the_adapter_gives_kafkas_names_and_marks_its_own():
    assert error_name(None) == error_name(KafkaError(0)) == ""
    assert error_name(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)) == "NOT_LEADER_OR_FOLLOWER"
    assert error_name(KafkaError(KafkaError._TRANSPORT)) == "NETWORK_EXCEPTION"
    assert error_name(KafkaError(KafkaError._QUEUE_FULL)) == "LOCAL_QUEUE_FULL"
    assert not any(error_name(KafkaError(code)).startswith("_") for code in CODES)


def test_a_fatal_error_is_named_by_its_cause():
    words = "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id: and more"
    assert cause(KafkaError(KafkaError._FATAL, words)) == "FENCED_INSTANCE_ID"
    assert cause(KafkaError(KafkaError._FATAL, "who knows")) == "LOCAL_FATAL"
    assert cause(KafkaError(KafkaError.UNKNOWN_MEMBER_ID)) == "UNKNOWN_MEMBER_ID"


def test_the_generation_is_read_from_the_group_metadata_and_from_nothing_else():
    known = b"CGMDv2:" + struct.pack("=i", 42) + b"group\0member-id\0"
    assert identity_of(known) == ("member-id", 42)
    for strange in (b"", b"CGMDv2:", b"CGMDv2:\0\0", known.replace(b"v2", b"v3"), b"\xff" * 20):
        assert identity_of(strange) == ("", -1)


@pytest.mark.parametrize(
    ("metadata", "left"),
    [
        (b"CGMDv2:" + struct.pack("=i", -1) + b"group\0\0", True),
        (b"CGMDv2:" + struct.pack("=i", 0) + b"group\0member-id\0", False),
        (b"CGMDv3:" + struct.pack("=i", -1) + b"group\0\0", False),  # of a release that says it otherwise
        (object(), False),
        (None, False),
    ],
)
def test_who_is_of_no_generation_has_left(metadata: object, left: bool) -> None:
    assert has_left(metadata) is left


def test_with_the_consumer_protocol_the_brokers_decide_the_session():
    times = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 50}
    settings = client_settings(config(protocol="consumer", client_config=times))
    assert settings.items() >= {"group.protocol": "consumer", "fetch.wait.max.ms": 50}.items()
    assert not settings.keys() & {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"}


@pytest.mark.parametrize(("protocol", "strategy"), [("eager", "range"), ("cooperative", "cooperative-sticky")])
def test_the_classic_protocols_differ_by_their_assignor(protocol, strategy):
    settings = client_settings(config(protocol=protocol, client_config={"session.timeout.ms": 6000}))
    assert settings["partition.assignment.strategy"] == strategy
    assert settings["session.timeout.ms"] == 6000


def test_only_automatic_policies_let_the_client_commit_and_one_alone_what_was_not_processed():
    for commit in COMMIT_POLICIES:
        settings = client_settings(config(loop=LoopConfig(commit=commit)))
        assert settings["enable.auto.commit"] == (commit in ("auto", "auto-delivered"))
        assert settings["enable.auto.offset.store"] == (commit == "auto-delivered")


@pytest.mark.parametrize("name", ["enable.auto.commit", "group.id", "group.protocol"])
def test_a_client_setting_that_contradicts_the_group_or_its_loop_is_refused(name):
    with pytest.raises(ConfigError, match=f"found the client setting {name}"):
        client_settings(config(client_config={name: "x"}))


class Deaf:
    """Hears errors (nobody serves) and does nothing about them."""

    def error(self, *reported, **more):
        pass


def test_a_client_that_is_closed_has_no_identity_and_says_so_without_failing():
    adapter = connect(config(), Deaf())
    adapter.close()
    assert adapter.identity() == ("", -1)
