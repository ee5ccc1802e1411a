"""Reads lines of a real request log (Kafka 4.3.1; two groups, a coordinator move and a leaving member)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.evidence.brokers import request_log
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.interfaces import BrokerEvidence

LINES = (Path(__file__).parent / "samples" / "requests.log").read_text().splitlines()
TOPICS = {"bp7du22FTZu5LUP00bFhMw": "orders"}
TIMELINE = WallClockConverter.of([(1_000_000_000, 1_795_259_580_000_000_000)])


def parsed(group: str, api: str) -> list[dict[str, Any]]:
    found = (request_log.parse(line, TIMELINE, group, TOPICS) for line in LINES)
    return [one for one in found if one is not None and one["api"] == api]


def test_a_join_tells_slot_member_times_and_the_generation_it_was_answered() -> None:
    first, second = parsed("gclassic", "JOIN_GROUP")
    assert (first["slot"], first["error"]) == (0, "MEMBER_ID_REQUIRED")
    assert first["member_id"].startswith("m0-"), "the id that the answer handed out"
    assert (second["slot"], second["listener"], second["client_id"]) == (1, "SLOT1", "m1")
    assert second["instance_id"] == "static-1"
    assert second["answered_generation"] == 1
    assert second["error"] is None
    raw = json.loads(next(line for line in LINES if '"generationId":1' in line).split("request:", 1)[1])
    assert second["end_ns"] - second["start_ns"] == round(raw["totalTimeMs"] * 1e6)
    assert second["connection"] == raw["connection"]


def test_a_sync_tells_the_assignment_that_the_coordinator_gave() -> None:
    (sync,) = parsed("gclassic", "SYNC_GROUP")
    assert sync["assignment"] == {"orders": [0, 2]}
    assert sync["generation"] == 1


def test_refusals_have_kafkas_names() -> None:
    assert parsed("gclassic", "HEARTBEAT")[0]["error"] is None
    assert parsed("gclassic", "FIND_COORDINATOR")[0]["error"] == "COORDINATOR_NOT_AVAILABLE"
    assert "NOT_COORDINATOR" in [beat["error"] for beat in parsed("gconsumer", "CONSUMER_GROUP_HEARTBEAT")]


def test_a_commit_lists_each_partition_with_its_own_outcome() -> None:
    (commit,) = parsed("gclassic", "OFFSET_COMMIT")
    assert commit["generation"] == 1
    assert commit["offsets"]
    assert all(topic == "orders" and offset > 0 and error is None for topic, _, offset, error in commit["offsets"])
    (refused,) = parsed("gconsumer", "OFFSET_COMMIT")
    assert {error for *_, error in refused["offsets"]} == {refused["error"]} == {"NOT_COORDINATOR"}


def test_fetched_offsets_come_from_the_answer() -> None:
    (fetch,) = parsed("gclassic", "OFFSET_FETCH")
    assert [partition for _, partition, _, _ in fetch["offsets"]] == sorted(p for _, p, _, _ in fetch["offsets"])
    assert all(offset >= -1 for _, _, offset, _ in fetch["offsets"])


def test_consumer_protocol_heartbeats_tell_epoch_assignment_and_what_is_owned_by_topic_name() -> None:
    beats = parsed("gconsumer", "CONSUMER_GROUP_HEARTBEAT")
    joined = beats[0]
    assert (joined["generation"], joined["owned"]) == (0, {})
    assert joined["answered_generation"] >= 1
    owning = [beat["owned"] for beat in beats if beat["owned"]]
    assert owning
    assert all(set(owned) == {"orders"} for owned in owning)


def test_other_groups_and_other_requests_are_left_out() -> None:
    assert all(request_log.parse(line, TIMELINE, "gclass", TOPICS) is None for line in LINES)
    election = next(line for line in LINES if "ELECT_LEADERS" in line)
    assert request_log.parse(election, TIMELINE, "gclassic", TOPICS) is None


def test_a_group_is_not_found_in_a_field_that_only_looks_like_it() -> None:
    line = next(line for line in LINES if '"HEARTBEAT"' in line).replace('"groupId":"gclassic"', '"groupId":"other"')
    line = line.replace('"groupInstanceId":null', '"groupInstanceId":"gclassic"')
    assert request_log.parse(line, TIMELINE, "gclassic", TOPICS) is None


class Recorded:
    """The log of one broker, its last line torn by a kill."""

    def request_log(self, broker: int) -> Iterator[str]:
        yield from reversed(LINES)
        yield LINES[1][: len(LINES[1]) // 2]

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        raise NotImplementedError

    def clocks(self) -> None:
        raise NotImplementedError

    def collect_logs(self, into: Path) -> None:
        raise NotImplementedError


def test_a_collection_is_in_the_order_of_begins_and_counts_torn_lines(tmp_path: Path) -> None:
    evidence: BrokerEvidence = Recorded()
    collected = request_log.collect(evidence, [1], TIMELINE.pairs, "gclassic", tmp_path, TOPICS)
    lines = [json.loads(line) for line in (tmp_path / request_log.FILE).read_text().splitlines()]
    assert (len(lines), collected.facts, collected.damaged) == (9, 9, 1)
    assert [line["start_ns"] for line in lines] == sorted(line["start_ns"] for line in lines)
    assert {line["broker"] for line in lines} == {1}


def test_a_line_without_its_time_is_damaged() -> None:
    with pytest.raises(ValueError, match="expected a time"):
        request_log.parse(LINES[0].split(" ", 1)[1], TIMELINE, "gclassic", TOPICS)


def test_a_line_that_a_new_life_wrote_behind_a_torn_one_is_read() -> None:
    for torn in (LINES[1][:40], LINES[1][:-200], LINES[1][:6]):
        found = request_log.parse(torn + LINES[2], TIMELINE, "gclassic", TOPICS)
        assert found == request_log.parse(LINES[2], TIMELINE, "gclassic", TOPICS)
