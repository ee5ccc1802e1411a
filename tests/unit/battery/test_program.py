"""What is learned from a program's first start, and how it becomes a group under test."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.battery.request import BatteryRequest
from fencepost.battery.scenario import build
from fencepost.errors import MemberError, ScenarioError

COMMAND = ("python", "-m", "shop.consumer")


def started(client: str = "confluent-kafka", **config: Any) -> dict[str, Any]:
    return {"client": client, "client_version": "1.0", "protocol": "eager", "config": config}


def subscribed(*topics: str, group: str = "shop") -> list[dict[str, Any]]:
    return [{"topics": list(topics), "group": group}]


@pytest.mark.parametrize(
    ("client", "config", "session_s"),
    [
        ("confluent-kafka", {}, 45.0),
        ("kafka-python", {}, 45.0),
        ("aiokafka", {}, 10.0),
        ("aiokafka", {"session.timeout.ms": 7000}, 7.0),
    ],
)
def test_the_session_is_the_programs_own_or_the_default_of_its_library(
    client: str, config: dict[str, Any], session_s: float
) -> None:
    program = BatteryRequest(COMMAND).learned(started(client, **config), subscribed("orders"))
    assert program.session_timeout_s == session_s
    assert build(BatteryRequest(COMMAND), program, "one").group.session_timeout_ms == session_s * 1000


def test_a_shorter_session_replaces_the_programs_own_and_shortens_the_heartbeat_with_it() -> None:
    request = BatteryRequest(COMMAND, session_s=2.0)
    program = request.learned(started(**{"session.timeout.ms": 45_000}), subscribed("orders"))
    group = build(request, program, "one").group
    assert (group.session_timeout_ms, group.heartbeat_interval_ms) == (2000, 500)


def test_a_time_out_that_the_program_does_not_set_is_not_changed() -> None:
    program = BatteryRequest(COMMAND).learned(started(), subscribed("orders"))
    assert program.config().keys() == {"session.timeout.ms", "auto.offset.reset"}


@pytest.mark.parametrize(("reset", "begins_at"), [(None, "earliest"), ("latest", "earliest"), ("earliest", None)])
def test_a_group_that_would_skip_what_is_there_begins_at_the_first_record(
    reset: str | None, begins_at: str | None
) -> None:
    config = {"auto.offset.reset": reset} if reset else {}
    program = BatteryRequest(COMMAND).learned(started(**config), subscribed("orders"))
    assert program.config().get("auto.offset.reset") == begins_at


def test_topics_of_all_its_consumers_are_known_once() -> None:
    found = BatteryRequest(COMMAND).learned(started(), [*subscribed("orders", "parcels"), *subscribed("orders")])
    assert (found.topics, found.group) == (("orders", "parcels"), "shop")


def test_members_with_an_instance_id_get_one_each() -> None:
    program = BatteryRequest(COMMAND).learned(started(**{"group.instance.id": "pod-1"}), subscribed("orders"))
    assert build(BatteryRequest(COMMAND), program, "one").group.static


def test_a_pattern_needs_topics() -> None:
    with pytest.raises(MemberError, match=r"pattern '\^orders.*--topics"):
        BatteryRequest(COMMAND).learned(started(), subscribed("^orders.*"))
    named = BatteryRequest(COMMAND, topics=("orders.eu",)).learned(started(), subscribed("^orders.*"))
    assert named.topics == ("orders.eu",)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"command": ()}, "give its command after --"),
        ({"command": COMMAND, "client": "franz-go"}, "use it only for a program that is not"),
        ({"command": COMMAND, "client": "black-box"}, "name its topics with --topics"),
    ],
)
def test_a_request_that_cannot_be_met_says_what_is_missing(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        BatteryRequest(**options)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "next-poll"),
        ({"effects": "shop:written"}, "effect"),
        ({"processed": "commit"}, "commit"),
        ({"client": "black-box", "topics": ("orders",)}, "unknown"),
        ({"client": "json-lines", "topics": ("orders",)}, "told"),
    ],
)
def test_the_rule_follows_from_what_is_given(options: dict[str, Any], rule: str) -> None:
    assert BatteryRequest(COMMAND, **options).rule == rule
