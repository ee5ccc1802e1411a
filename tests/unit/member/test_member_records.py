"""Payloads, assignment intervals and configuration of the member side."""

from __future__ import annotations

import json

import pytest

from fencepost_member import payload
from fencepost_member.config import ConfigError, PartitionNumbers, read_member, read_producer
from fencepost_member.member_events import redacted
from fencepost_member.ownership import AssignmentNumbers, names, places, rows

MEMBER = {
    "actor": "member-0.1",
    "member": 0,
    "slot": 0,
    "run": "history",
    "group": "g",
    "topics": {"orders": {"0": 7, "1": 8}},
    "bootstrap": "127.0.0.1:1",
}


@pytest.mark.parametrize("size", [0, 24, 100])
def test_a_value_tells_who_wrote_it_whatever_its_size(size):
    value = payload.pack(writer=3, seq=1 << 40, key=17, size=size)
    assert len(value) == max(size, 24)
    assert payload.unpack(b"17", value) == (17, 3, 1 << 40)


@pytest.mark.parametrize("value", [None, b"", b"FP01", b"FP01" + bytes(19), b"JSON" + bytes(40)])
def test_a_foreign_record_is_known_by_a_hash_of_its_key(value):
    assert payload.unpack(b"customer-1", value) == (payload.key_hash(b"customer-1"), -1, -1)
    assert payload.unpack(None, value) == (-1, -1, -1)


def test_the_hash_of_a_key_is_a_signed_number_that_never_changes():
    assert payload.key_hash(b"customer-1") == -4803451183196062476
    assert -(1 << 63) <= payload.key_hash(b"") < 1 << 63


def test_the_assignment_intervals_of_a_partition_are_numbered_over_a_whole_life():
    ownership, tp = AssignmentNumbers(), ("orders", 3)
    assert ownership.assign([tp, ("orders", 4)]) == {tp: 0, ("orders", 4): 0}
    ownership.revoke([tp])
    assert ownership.of([tp]) == {tp: -1}
    assert ownership.assign([tp]) == {tp: 1}
    assert ownership.intervals == {tp: 1, ("orders", 4): 0}
    ownership.revoke([("orders", 9)])


def test_partitions_are_written_as_events_want_them():
    assert names({("orders", 3): 0}) == {"orders-3": 0}
    assert rows({("orders", 3): 17}) == [["orders", 3, 17]]
    assert places([("orders", 3)]) == [["orders", 3, None]]


def test_a_member_reads_its_configuration(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**MEMBER, "loop": {"batch": 1}}))
    config = read_member(str(file))
    assert (config.loop.batch, config.loop.commit, config.protocol) == (1, "after-processing", "cooperative")
    assert PartitionNumbers(config.topics) == {("orders", 0): 7, ("orders", 1): 8}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"batch": 1}, "unknown key batch; expected keys: actor, member"),
        ({"loop": {"komit": 1}}, "loop: unknown key komit"),
        ({"loop": {"commit": "never"}}, "commit is 'never', it must be one of after-processing"),
        ({"protocol": "greedy"}, "protocol is 'greedy', it must be one of eager"),
        ({"loop": {"batch": 0}}, "batch is 0, it must be at least 1"),
    ],
)
def test_a_wrong_configuration_is_refused_with_a_sentence(tmp_path, change, sentence):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**MEMBER, **change}))
    with pytest.raises(ConfigError, match=sentence):
        read_member(str(file))


def test_what_is_missing_or_unreadable_is_named(tmp_path):
    file = tmp_path / "config.json"
    with pytest.raises(ConfigError, match="cannot be read"):
        read_producer(str(file))
    file.write_text("[]")
    with pytest.raises(ConfigError, match="expected a JSON object, found list"):
        read_producer(str(file))
    file.write_text("{}")
    with pytest.raises(ConfigError, match="missing key actor, writer, run, bootstrap, topics"):
        read_producer(str(file))


def test_secrets_are_redacted_before_settings_are_written_down():
    settings = {"sasl.password": "x", "ssl.key.pem": "y", "sasl.username": "me", "session.timeout.ms": 6000}
    assert redacted(settings) == {**settings, "sasl.password": "(redacted)", "ssl.key.pem": "(redacted)"}


def test_a_partition_that_was_added_has_a_number_of_its_own_and_the_same_for_everybody():
    topics = {"orders": {"0": 0, "1": 1}, "audits": {"0": 2}}
    added = [("orders", 2), ("orders", 3), ("audits", 1), ("audits", 2)]
    one, other = PartitionNumbers(topics), PartitionNumbers(topics)
    assert [one[tp] for tp in added] == [other[tp] for tp in reversed(added)][::-1]
    assert len(set(one.values())) == 7
    assert PartitionNumbers({"orders": {"0": 0, "1": 1}})["orders", 2] == 2
    with pytest.raises(KeyError):
        one["nobody's", 0]
