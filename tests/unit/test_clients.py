"""Which clients there are, how they are asked for, and what each of them can do."""

from __future__ import annotations

import pytest

import fencepost_member.adapters as adapters
from fencepost import clients
from fencepost.clients import KNOWN, Client, Extra, parse
from fencepost.errors import ScenarioError


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
        ("kafka-python==2.0.1", "too old; releases can be used from 2.0.2 on"),
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


def test_extras_are_the_protocols_of_adapters():
    assert {name for name in Extra if not hasattr(adapters, name)} == {Extra.REPORTS, Extra.TRESPASSES}
    assert parse("aiokafka").lacks([Extra.SEEKS, Extra.STORES]) == [Extra.STORES]
    assert parse("confluent-kafka").lacks(Extra) == []
