"""Reads real dumps of ``__consumer_offsets`` and the metadata log (Kafka 4.3.1, two groups, a move for each)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fencepost.errors import NotShown
from fencepost.evidence.brokers import dump_parser, metadata_log, offsets_topic
from fencepost.evidence.brokers.clock_conversion import Moment, WallClockConverter
from fencepost.evidence.brokers.dump_parser import Record

SAMPLES = Path(__file__).parent / "samples"
TOPICS = {"bp7du22FTZu5LUP00bFhMw": "orders"}
TIMELINE = WallClockConverter.of([(1_000_000_000, 1_795_259_580_000_000_000)])


def sample(name: str) -> list[str]:
    return (SAMPLES / name).read_text().splitlines()


def facts(name: str, group: str) -> list[dict[str, Any]]:
    return list(offsets_topic.normalise(dump_parser.read(sample(name)), TIMELINE, group, TOPICS))


def test_generations_of_a_classic_group_tell_members_and_assignments() -> None:
    found = [f for f in facts("offsets-classic.txt", "gclassic") if f["type"] == "classic-group"]
    assert [f["generation"] for f in found] == [0, 1, 2]
    assert all(m["assignment"].keys() == {"orders"} for m in found[1]["members"])
    last = found[2]
    assert last["leader"] == last["members"][0]["member_id"]
    assert last["members"][0]["assignment"] == {"orders": [0, 1, 2, 3]}
    assert last["members"][0]["instance_id"] == "static-1"


def test_the_term_is_the_coordinators_epoch_and_the_order_the_logs() -> None:
    found = facts("offsets-classic.txt", "gclassic")
    assert [f["order"] for f in found] == sorted(f["order"] for f in found)
    assert [f["term"] for f in found] == sorted(f["term"] for f in found)
    assert {f["term"] for f in found} == {0, 1}, "the sample holds one move"


def test_commits_tell_partition_and_the_next_offset() -> None:
    commit = next(f for f in facts("offsets-classic.txt", "gclassic") if f["type"] == "commit")
    assert (commit["topic"], commit["deleted"]) == ("orders", False)
    assert commit["committed"] > 0


def test_a_consumer_group_tells_epochs_and_current_assignments_by_topic_name() -> None:
    found = facts("offsets-consumer.txt", "gconsumer")
    assert {f["type"] for f in found} == {
        "commit",
        "group-epoch",
        "member",
        "target-epoch",
        "target",
        "current",
    }
    current = [f for f in found if f["type"] == "current" and not f["deleted"]]
    assert current[0]["assigned"] == {"orders": [0, 1, 2, 3]}
    assert [f["epoch"] for f in current] == sorted(f["epoch"] for f in current)
    assert any(f["pending_revocation"] for f in current), "the first member gave partitions to the second"
    epochs = [f["epoch"] for f in found if f["type"] == "group-epoch"]
    assert epochs == sorted(epochs)


def test_tombstones_are_kept() -> None:
    gone = [f for f in facts("offsets-consumer.txt", "gconsumer") if f["deleted"]]
    assert {f["type"] for f in gone} == {"member", "target", "current"}
    assert all(f["member_id"] for f in gone)


def test_other_groups_are_left_out() -> None:
    assert facts("offsets-consumer.txt", "gclassic") == []


def test_records_without_their_metadata_are_an_error() -> None:
    """What the tool prints with ``--skip-record-metadata``: ends of transactions and offsets would be missing."""
    bare = [re.sub(r"^\| offset: .*? headerKeys: \[\] ", "| ", line) for line in sample("offsets-classic.txt")]
    with pytest.raises(dump_parser.DamagedDumpError, match="no offset and time"):
        list(dump_parser.read(bare))


def test_ends_of_transactions_are_read_from_control_batches_alone() -> None:
    head = (
        "baseOffset: 4 lastOffset: 4 count: 1 producerId: 9 producerEpoch: 0 partitionLeaderEpoch: 2 "
        "isTransactional: true isControl: {control} deleteHorizonMs: OptionalLong.empty"
    )
    end = "| offset: 4 CreateTime: 5 keySize: 4 valueSize: 6 endTxnMarker: COMMIT coordinatorEpoch: 0"
    key = '{"type":"2","data":{"group":"endTxnMarker: ABORT"}}'
    named = (
        f'| offset: 4 CreateTime: 5 keySize: 4 valueSize: 6 sequence: 0 headerKeys: [] key: {key} payload: {{"a":1}}'
    )
    assert list(dump_parser.read([head.format(control="true"), end])) == [Record(4, 5, 4, 2, 9, "COMMIT")]
    assert [r.marker for r in dump_parser.read([head.format(control="false"), named])] == [""]


def test_a_name_that_looks_like_a_payload_is_read_as_a_name() -> None:
    key = json.dumps({"type": "2", "data": {"group": 'a payload: {"x":1} b'}})
    line = f'| offset: 7 CreateTime: 5 keySize: 1 valueSize: 1 headerKeys: [] key: {key} payload: {{"data":{{}}}}'
    (record,) = dump_parser.read([line])
    assert record.payload == {"data": {}}
    assert record.key == json.loads(key)


def test_a_record_that_cannot_be_read_is_an_error_that_shows_it() -> None:
    line = next(line for line in sample("offsets-classic.txt") if " payload: {" in line)
    with pytest.raises(dump_parser.DamagedDumpError, match="gclassic"):
        list(dump_parser.read([line[:-3]]))


def test_a_transactional_commit_counts_with_its_marker() -> None:
    commit = {"data": {"offset": 5}}
    key = {"type": "1", "data": {"group": "g", "topic": "t", "partition": 0}}
    log = [
        Record(0, 1000, 0, 0, producer=9, key=key, payload=commit),
        Record(1, 1001, 1, 0, producer=8, marker="COMMIT"),
        Record(2, 1002, 2, 0, producer=9, marker="ABORT"),
    ]
    found = list(offsets_topic.normalise(log, TIMELINE, "g", {}))
    assert [(f["order"], f["type"], f["producer"]) for f in found] == [(0, "commit", 9), (2, "transaction-end", 9)]
    assert found[1]["committed"] is False


def test_only_what_is_of_the_group_is_dated() -> None:
    """Nobody may have seen who led when the others wrote."""

    class OfTermOne:
        def moment(self, wall_ms: int, term: int) -> Moment:
            if term != 1:
                raise NotShown("nobody saw who wrote it")
            return TIMELINE.moment(wall_ms, term)

    commit = {"data": {"offset": 5}}
    ours, theirs = ({"type": "1", "data": {"group": name, "topic": "t", "partition": 0}} for name in ("g", "other"))
    log = [
        Record(0, 1000, 0, 0, producer=8, key=theirs, payload=commit),
        Record(1, 1001, 1, 1, producer=9, key=ours, payload=commit),
        Record(2, 1002, 2, 0, producer=8, marker="COMMIT"),
        Record(3, 1003, 3, 1, producer=9, marker="COMMIT"),
    ]
    found = offsets_topic.normalise(log, OfTermOne(), "g", {})
    assert [(fact["order"], fact["type"]) for fact in found] == [(1, "commit"), (3, "transaction-end")]
    of_the_group = [Record(0, 1000, 0, 0, producer=9, key=ours, payload=commit)]
    with pytest.raises(NotShown, match="nobody saw"):
        list(offsets_topic.normalise(of_the_group, OfTermOne(), "g", {}))


def test_the_metadata_log_tells_topics_leaders_and_epochs() -> None:
    found = list(dump_parser.read(sample("metadata.txt")))
    assert metadata_log.topic_names(found).items() >= TOPICS.items()
    lines = list(metadata_log.normalise(found, TIMELINE, {"__consumer_offsets"}))
    moved = [f for f in lines if f["type"] == "partition" and f["change"] == "leader"]
    assert [(f["topic"], f["partition"], f["leader"], f["leader_epoch"]) for f in moved] == [
        ("__consumer_offsets", 2, 3, 1),
        ("__consumer_offsets", 0, 1, 1),
    ]
    assert not [f for f in lines if f.get("topic") == "orders"]


def test_a_killed_broker_is_fenced_and_leaves_the_in_sync_replicas() -> None:
    lines = list(metadata_log.normalise(list(dump_parser.read(sample("metadata.txt"))), TIMELINE, {"orders"}))
    assert lines[-1]["type"] == "broker"
    assert (lines[-1]["broker"], lines[-1]["change"]) == (3, "fenced")
    last = {f["partition"]: f for f in lines if f["type"] == "partition"}
    assert all(3 not in f["isr"] and f["leader"] != 3 for f in last.values())
    assert all(f["replicas"] for f in last.values()), "what a change does not mention stays"


def test_a_broker_tells_where_its_log_stood_when_it_began_to_lead_a_partition_of_the_offsets_topic() -> None:
    """As Kafka 4.3.1 and 3.9.1 say it; followers, and leaders of other topics, say nothing of it."""
    leads = (
        "[2026-11-28 18:07:27,483] INFO [Broker id=1] Leader {} with topic id Some(3xXRc3b4RcW-MiNShUvriQ) starts at "
    )
    leads += (
        "leader epoch 7 from offset 345 with partition epoch 9, high watermark 344, ISR [1,2,3], adding replicas [] "
    )
    leads += "and removing replicas [] . Previous leader Some(2) and previous leader epoch was 6. (state.change.logger)"
    follows = (
        "[2026-11-28 18:07:27,597] INFO [Broker id=1] Follower __consumer_offsets-1 starts at leader epoch 0 from "
    )
    follows += "offset 0 with partition epoch 0 and high watermark 0. Current leader is 2. (state.change.logger)"
    lines = [leads.format("orders-2"), follows, leads.format("__consumer_offsets-2"), ""]
    assert [*metadata_log.watermarks(lines)] == [((2, 7), {"log_end": 345, "high_watermark": 344})]


def test_of_the_partition_that_has_a_new_leader_its_mark_is_told() -> None:
    found = list(dump_parser.read(sample("metadata.txt")))
    marks = {(partition, 1): {"log_end": 9, "high_watermark": 8} for partition in range(3)}
    lines = list(metadata_log.normalise(found, TIMELINE, {"__consumer_offsets"}, marks))
    led = [line for line in lines if line["type"] == "partition" and line.get("leader_epoch") == 1]
    assert [line.get("high_watermark") for line in led if "leader" in line["change"]]
    assert {line.get("high_watermark") for line in led if "leader" in line["change"]} == {8}
    assert not [line for line in lines if "high_watermark" in line and line not in led]
