"""What members read of transactions: what they were made with, or were asked for, or else the default."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.model.isolation import UNCOMMITTED, reads
from fencepost_member.adapters.settings import ISOLATION, READ_COMMITTED, settings_of
from fencepost_member.config import MemberConfig

COMMITTED, ALL = {ISOLATION: READ_COMMITTED}, {ISOLATION: UNCOMMITTED}


@pytest.mark.parametrize(
    ("started", "config", "level"),
    [
        ({}, {}, READ_COMMITTED),  # librdkafka
        ({"client": "kafka-python"}, {}, UNCOMMITTED),
        ({"client": "aiokafka"}, {}, UNCOMMITTED),
        ({"client": "kafka-python"}, COMMITTED, READ_COMMITTED),
        ({"client": "kafka-python", "config": COMMITTED}, ALL, READ_COMMITTED),
        ({"client": "confluent-kafka", "config": ALL}, {}, UNCOMMITTED),
        ({"client": "confluent-kafka", "told_by": "lines"}, {}, ""),
        ({"client": "kafka-python", "told_by": "lines", "config": ALL}, {}, UNCOMMITTED),
        ({"client": "verifiable-consumer", "told_by": "lines"}, {}, READ_COMMITTED),  # which Fencepost sets
        ({"client": "black-box"}, {}, ""),
        ({"client": "of others"}, {}, ""),
    ],
    ids=str,
)
def test_what_its_consumer_was_made_with_counts_then_what_was_asked_for_then_its_default(
    started: dict[str, Any], config: dict[str, Any], level: str
) -> None:
    assert reads(started, config) == level


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "aiokafka"])
@pytest.mark.parametrize(("asked", "level"), [({}, READ_COMMITTED), (ALL, UNCOMMITTED)], ids=["nothing", "all"])
def test_our_loop_asks_for_what_is_committed_unless_the_group_says_otherwise(
    client: str, asked: dict[str, Any], level: str
) -> None:
    config = MemberConfig(*("member-0.1", 0, 0, "", "g", {}, ""), client, "eager", asked)
    assert settings_of(config)[ISOLATION] == level
