"""What a program tells as JSON lines, read, put in order and translated: without a process or a cluster."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.evidence.sealing.segment_reader import read_segments
from fencepost.group.event_tail import last_poll_ns
from fencepost_member.config import LoopConfig, MemberConfig
from fencepost_member.json_lines.__main__ import write
from fencepost_member.json_lines.protocol_check import ProtocolCheck
from fencepost_member.json_lines.reading import LineError, parse
from fencepost_member.json_lines.translator import SettableClock, Translator
from fencepost_member.payload import pack
from fencepost_member.process import open_history
from fencepost_member.recording.events import read
from fencepost_member.recording.segments import DELIVERED

MS = 1_000_000
# As VerifiableConsumer of Kafka 4.3.1 printed them, but for the times.
STARTED = {"name": "startup_complete"}
ASSIGNED = {"name": "partitions_assigned", "partitions": [{"topic": "orders", "partition": 0}]}
REVOKED = {"name": "partitions_revoked", "partitions": [{"topic": "orders", "partition": 0}]}
PAUSED = {**ASSIGNED, "name": "partitions_paused"}
RESUMED = {**ASSIGNED, "name": "partitions_resumed"}
POLL, NOTHING = {"name": "poll_started"}, {"name": "records_consumed", "count": 0, "partitions": []}
ASKED, CLOSED = {"name": "shutdown_requested"}, {"name": "shutdown_complete"}
STACK_TRACE = b"""org.apache.kafka.common.errors.WakeupException: null
\tat org.apache.kafka.clients.consumer.internals.ConsumerNetworkClient.maybeTriggerWakeup(Client.java:522)
{ "level": "warn", "message": "half an object
{"level": "warn", "timestamp": "now"}
["name", "timestamp"]
"""


def record(offset: int, **more: Any) -> dict[str, Any]:
    value = pack(0, offset + 100, 7, 64, text=True).decode()
    return {
        "name": "record_data",
        "topic": "orders",
        "partition": 0,
        "offset": offset,
        "key": "7",
        "value": value,
        **more,
    }


def consumed(*offsets: int) -> dict[str, Any]:
    ends = {"minOffset": min(offsets), "maxOffset": max(offsets)}
    summary = {"topic": "orders", "partition": 0, "count": len(offsets), **ends}
    return {"name": "records_consumed", "count": len(offsets), "partitions": [summary]}


def places(offset: int) -> list[dict[str, Any]]:
    return [{"topic": "orders", "partition": 0, "offset": offset}]


def committed(offset: int, **more: Any) -> dict[str, Any]:
    return {"name": "offsets_committed", "offsets": places(offset), "error": None, "success": True, **more}


class Told:
    """A story in a folder, whose lines come one ms after the other, a minute ago."""

    def __init__(self, folder: Path, processed: str = "", client: str = "x", actor: str = "member-0.1") -> None:
        loop = LoopConfig(processed=processed)
        config = MemberConfig(actor, 0, 0, str(folder), "g", {"orders": {"0": 0}}, "", client, loop=loop)
        self.folder, self.moment = folder, SettableClock()
        self.events_log, recorder = open_history(str(folder), actor, self.moment)
        self.story = Translator(config, 4711, self.events_log, recorder.lane(), self.moment)
        self.begun_ms = time.time_ns() // MS - 60_000
        self.begun_ns = self.begun_ms * MS - (time.time_ns() - time.monotonic_ns())

    def text(self, *lines: dict[str, Any] | bytes) -> bytes:
        made = b""
        for number, line in enumerate(lines):
            now = {"timestamp": self.begun_ms + number}
            made += line if isinstance(line, bytes) else json.dumps({**now, **line}).encode() + b"\n"
        return made

    def write(self, *lines: dict[str, Any] | bytes) -> bytes:
        log = io.BytesIO()
        write(self.story, self.events_log, self.moment, io.BytesIO(self.text(*lines)), log)
        return log.getvalue()

    def events(self, kind: str) -> list[dict[str, Any]]:
        last = {e["id"]: e for e in read(self.folder / "events" / "member-0.1.jsonl").events}
        return [e for e in last.values() if e["kind"] == kind]

    def rows(self) -> Any:
        (segment,) = read_segments(self.folder / "segments")[0]
        assert segment.header.layout is DELIVERED
        return segment.records

    def ms(self, ns: int) -> float:
        return round((ns - self.begun_ns) / MS, 1)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_of_a_program_that_tells_no_settings_those_are_known_that_it_is_started_with(tmp_path: Path) -> None:
    """Kafka's own is started by us; what others make of what they are given, they alone know."""
    known = []
    for client in ("x", "verifiable-consumer"):
        told = Told(tmp_path / client, client=client)
        told.write(STARTED, CLOSED)
        (started,) = told.events("started")
        known.append(started["detail"]["config"])
    assert known[0] == {}
    assert known[1]["auto.offset.reset"] == "earliest"
    assert known[1]["partition.assignment.strategy"] == "cooperative-sticky"
    assert known[1]["enable.auto.commit"] is False


def test_what_verifiable_consumer_prints_is_a_history(told: Told) -> None:
    lines = (STARTED, ASSIGNED, record(5), record(6), consumed(5, 6), committed(7), REVOKED, CLOSED)
    asked = {**ASKED, "timestamp": told.begun_ms + 4}
    text = told.text(*lines).splitlines(keepends=True)
    assert told.write(*text[:5], told.text(asked), *text[5:]) == b""
    (started,) = told.events("started")
    assert (started["detail"]["pid"], started["detail"]["client"]) == (4711, "x")
    (assigned,), (revoked,), (commit,) = (told.events(kind) for kind in ("assigned", "revoked", "commit"))
    assert [told.ms(assigned[end]) for end in ("begin_ns", "end_ns")] == [1, 2]
    assert [told.ms(revoked[end]) for end in ("begin_ns", "end_ns")] == [6, 7]
    assert [told.ms(commit[end]) for end in ("begin_ns", "end_ns")] == [4, 6]  # asked for after the line before
    assert (commit["partitions"], commit["outcome"], commit["detail"]) == ([["orders", 0, 7]], "ok", {"mode": "sync"})
    rows = told.rows()
    assert [[int(r[n]) for n in ("offset", "key", "writer", "seq", "interval", "poll", "position")] for r in rows] == [
        [5, 7, 0, 105, 0, 0, 0],
        [6, 7, 0, 106, 0, 0, 1],
    ]
    assert [told.ms(r["delivered_ns"]) for r in rows] == [2, 2]
    assert [told.ms(r["done_ns"]) for r in rows] == [4, 4]  # by the commit, which is not older
    assert (rows["done_ns"] <= commit["begin_ns"]).all()
    assert len(told.events("closed")) == 1
    assert told.events("unrecorded") == told.events("poll-gap") == []


@pytest.mark.parametrize("place", range(5))
def test_another_thread_may_say_at_any_moment_that_it_is_to_end(told: Told, place: int) -> None:
    lines = [STARTED, record(5), consumed(5), CLOSED]
    lines.insert(place, ASKED)
    assert told.write(*lines) == b""
    assert (len(told.rows()), len(told.events("closed")), told.events("unrecorded")) == (1, 1, [])


def test_a_record_is_known_by_its_header_where_it_has_one(told: Told) -> None:
    headers = {"fencepost": pack(2, 9, 7, text=True).decode()}
    told.write(STARTED, ASSIGNED, record(5, value='{"customer": 7}', headers=headers), consumed(5))
    assert [[int(r[n]) for n in ("key", "writer", "seq")] for r in told.rows()] == [[7, 2, 9]]


@pytest.mark.parametrize(
    "value", [None, "", "another text, of nobody that is known here, and long enough", "46503031zz"]
)
def test_a_record_that_nobody_knows_is_not_taken_for_a_foreign_one(told: Told, value: str | None) -> None:
    told.write(STARTED, ASSIGNED, record(5, value=value), record(6), consumed(5, 6))
    (unrecorded,) = told.events("unrecorded")
    assert "line 3 of its output cannot be believed: record_data has neither the value" in unrecorded["detail"]["text"]
    assert [int(r["offset"]) for r in told.rows()] == [6]


def test_records_that_are_done_out_of_order_are_done_one_by_one(tmp_path: Path) -> None:
    told = Told(tmp_path, "told")
    processed = [{"name": "record_processed", "topic": "orders", "partition": 0, "offset": o} for o in (6, 8)]
    told.write(STARTED, ASSIGNED, *map(record, range(5, 8)), consumed(5, 6, 7), processed[0], record(8), consumed(8))
    told.write({**processed[1], "timestamp": told.begun_ms + 50})
    assert [int(r["offset"]) for r in told.rows() if r["done_ns"]] == [6, 8]
    assert told.events("unrecorded") == []


def test_without_a_told_poll_nobody_knows_when_it_polled(told: Told) -> None:
    told.write(STARTED, ASSIGNED, record(0), consumed(0), record(1, timestamp=told.begun_ms + 50_000), consumed(1))
    assert told.events("poll-gap") == []
    told.write()
    again = Told(told.folder / "again")
    again.write(STARTED, ASSIGNED, POLL, record(0), consumed(0), {**POLL, "timestamp": again.begun_ms + 5_000})
    assert len(again.events("poll-gap")) == 1


@pytest.mark.parametrize(
    ("lines", "gaps"),
    [
        ([(1, POLL), (9, record(0)), (9, consumed(0)), (9.5, POLL)], []),
        ([(1, POLL), (9, POLL)], []),
        ([(1, POLL), (9, record(0)), (12, record(1)), (12, consumed(0, 1)), (12, POLL)], [(9, 12)]),
        ([(1, POLL), (2, record(0)), (2, consumed(0)), (7, POLL), (20, POLL)], [(2, 7)]),
        ([(1, POLL), (2, NOTHING), (7, POLL)], [(2, 7)]),
        ([(1, POLL), (2, record(0)), (4, committed(1)), (7, POLL)], [(2, 7)]),
        ([(1, record(0)), (9, consumed(0)), (20, POLL)], []),
    ],
)
def test_a_poll_waits_until_its_records_are_told_or_the_next_one_begins(
    told: Told, lines: list[tuple[float, dict[str, Any]]], gaps: list[tuple[int, int]]
) -> None:
    told.write(STARTED, ASSIGNED, *({**line, "timestamp": told.begun_ms + int(s * 1000)} for s, line in lines))
    found = [(told.ms(gap["begin_ns"]) / 1000, told.ms(gap["end_ns"]) / 1000) for gap in told.events("poll-gap")]
    assert found == gaps


@pytest.mark.parametrize(("lines", "polled_s"), [([POLL], None), ([POLL, record(0)], 3), ([POLL, NOTHING], 3)])
def test_whoever_ends_in_a_poll_waits_in_it(told: Told, lines: list[dict[str, Any]], polled_s: int | None) -> None:
    told.write(STARTED, ASSIGNED, *lines)
    polled_ns = last_poll_ns(told.folder / "segments", "member-0.1")
    assert (None if polled_ns > time.monotonic_ns() else told.ms(polled_ns)) == polled_s


@pytest.mark.parametrize(("rule", "done"), [("told", [5]), ("next-poll", [5, 6]), ("commit", [5, 6])])
def test_a_record_that_is_skipped_is_done_by_who_goes_by_rules_alone(
    tmp_path: Path, rule: str, done: list[int]
) -> None:
    told = Told(tmp_path, rule)
    processed = {"name": "record_processed", "topic": "orders", "partition": 0, "offset": 5}
    asked = {"name": "commit_started", "offsets": places(7)}
    told.write(STARTED, ASSIGNED, record(5), record(6), consumed(5, 6), processed, asked, committed(7))
    assert [int(r["offset"]) for r in told.rows() if r["done_ns"]] == done
    (commit,) = told.events("commit")
    assert (told.ms(commit["begin_ns"]), told.ms(commit["end_ns"]), commit["detail"]["mode"]) == (6, 8, "async")


@pytest.mark.parametrize(
    ("error", "name", "outcome"),
    [
        ("UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID", "fail"),
        ("Offset commit cannot be completed since the consumer is not part of the group", "LOCAL_UNNAMED", "info"),
        (None, "LOCAL_UNNAMED", "info"),
    ],
)
def test_of_an_error_without_a_name_nobody_knows_what_became_of_it(
    told: Told, error: str | None, name: str, outcome: str
) -> None:
    told.write(STARTED, ASSIGNED, record(5), consumed(5), committed(6, success=False, error=error))
    (commit,) = told.events("commit")
    assert (commit["error"], commit["outcome"]) == (name, outcome)


def test_a_callback_may_take_its_time_and_name_the_member(told: Told) -> None:
    begun = {**REVOKED, "callback": "begun", "member_id": "m-1", "generation": 3}
    told.write(STARTED, ASSIGNED, record(5), consumed(5), begun, committed(6), {**REVOKED, "callback": "ended"})
    (revoked,) = told.events("revoked")
    assert [told.ms(revoked[end]) for end in ("begin_ns", "end_ns")] == [4, 7]
    assert (revoked["member_id"], revoked["generation"]) == ("m-1", 3)


def test_what_is_paused_is_told_until_it_is_resumed_or_given_up(told: Told) -> None:
    not_its_own = [{"topic": "orders", "partition": 1}, {"topic": "refunds", "partition": 0}]
    told.write(STARTED, PAUSED, ASSIGNED, {**PAUSED, "partitions": [*ASSIGNED["partitions"], *not_its_own]}, PAUSED)
    told.write({**RESUMED, "timestamp": told.begun_ms + 5}, {**RESUMED, "timestamp": told.begun_ms + 6})
    told.write({**PAUSED, "timestamp": told.begun_ms + 7}, {**REVOKED, "timestamp": told.begun_ms + 8})
    told.write({**PAUSED, "timestamp": told.begun_ms + 9}, {**CLOSED, "timestamp": told.begun_ms + 10})
    paused = told.events("paused")
    assert [[told.ms(event[end]) for end in ("begin_ns", "end_ns")] for event in paused] == [[3, 5], [7, 9]]
    assert [event["partitions"] for event in paused] == [[["orders", 0, None]]] * 2
    assert told.events("unrecorded") == []


def test_pauses_in_one_millisecond_take_no_time_and_one_that_is_never_over_stays_open(told: Told) -> None:
    at = {"timestamp": told.begun_ms + 2}
    told.write(STARTED, ASSIGNED, *({**line, **at} for line in (PAUSED, RESUMED, PAUSED, RESUMED, PAUSED)), CLOSED)
    *over, last = told.events("paused")
    assert [[told.ms(event[end]) for end in ("begin_ns", "end_ns")] for event in over] == [[2, 2], [2, 2]]
    assert (told.ms(last["begin_ns"]), last["end_ns"]) == (2, 0)


def test_the_clock_never_goes_back(told: Told) -> None:
    told.write(STARTED, {**ASSIGNED, "timestamp": told.begun_ms + 500}, {**REVOKED, "timestamp": told.begun_ms + 400})
    (revoked,) = told.events("revoked")
    assert told.ms(revoked["begin_ns"]) == 500


def test_what_else_it_prints_goes_to_its_log_and_a_torn_line_too(told: Told) -> None:
    torn = told.text(committed(7))[:-1]
    assert told.write(STARTED, STACK_TRACE, ASSIGNED, torn) == STACK_TRACE + torn
    assert told.events("unrecorded") == told.events("commit") == []


def test_the_first_line_that_cannot_be_believed_is_told_with_its_number(told: Told) -> None:
    log = told.write(STARTED, b"hello\n", {"name": "partition_assigned"}, CLOSED, CLOSED)
    (unrecorded,) = told.events("unrecorded")
    assert unrecorded["detail"]["text"].startswith(
        'line 3 of its output cannot be believed: name is "partition_assigned", it must be one of startup_complete, '
    )
    assert b"line 5 of its output cannot be believed: shutdown_complete follows shutdown_complete" in log


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ({"name": "record_data"}, "record_data: it has no topic"),
        ({"name": "startup_complete", "timestamp": 1.5}, "timestamp is 1.5, it must be of type integer"),
        ({"name": "startup_complete", "timestamp": True}, "timestamp is true, it must be of type integer"),
        ({"name": "startup_complete", "timestamp": 0}, "timestamp is 0, it must be at least 1"),
        ({"name": "client_error", "error": 3}, "error is 3, it must be of type string"),
        ({**ASSIGNED, "partitions": [{"topic": "o"}]}, r"partitions\[0\] has no partition"),
        ({**ASSIGNED, "callback": "done"}, 'callback is "done", it must be one of'),
        ({"name": "partitions_paused"}, "partitions_paused: it has no partitions"),
        (
            {**PAUSED, "partitions": [{"topic": "o", "partition": -1}]},
            r"partitions\[0\].partition is -1, it must be at",
        ),
        ({**RESUMED, "partitions": "o-1"}, 'partitions_resumed: partitions is "o-1", it must be of type array'),
        ({"name": "commit_started", "offsets": places(-1)}, r"offsets\[0\].offset is -1, it must be at least 0"),
        ({"name": 4}, "name is 4, it must be one of"),
    ],
)
def test_a_line_without_its_form_is_refused(line: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LineError, match=sentence):
        parse(json.dumps({"timestamp": 1, **line}).encode())


def test_half_a_line_is_refused() -> None:
    with pytest.raises(LineError, match="it has a name and a timestamp but is not valid JSON"):
        parse(b'{"timestamp": 1, "name": "record_data", "topic": "or{"timestamp"')


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([ASSIGNED], "partitions_assigned precedes startup_complete"),
        ([PAUSED], "partitions_paused precedes startup_complete"),
        ([STARTED, STARTED], "startup_complete appears a second time"),
        ([STARTED, CLOSED, ASSIGNED], "partitions_assigned follows shutdown_complete"),
        ([STARTED, CLOSED, RESUMED], "partitions_resumed follows shutdown_complete"),
        ([STARTED, {**ASSIGNED, "callback": "ended"}], "the callback of partitions_assigned ends but never began"),
        ([STARTED, *[{**ASSIGNED, "callback": "begun"}] * 2], "the callback of partitions_assigned begins twice"),
        ([STARTED, consumed(5)], "counts 1 records of orders-0, but there were 0 record_data"),
        ([STARTED, record(5), record(6), consumed(5)], "1 records of orders-0, but there were 2 record_data"),
        ([STARTED, {"timestamp": 1, **CLOSED}], "the timestamp of shutdown_complete is 4999 ms earlier"),
        (
            [STARTED, record(5), {"name": "record_processed", "topic": "orders", "partition": 0, "offset": 6}],
            "record_processed names offset 6 of orders-0, but no record_data reported it",
        ),
    ],
)
def test_lines_in_an_order_that_cannot_be_are_refused(lines: list[dict[str, Any]], sentence: str) -> None:
    order = ProtocolCheck()
    *before, last = ([*order.faults({"timestamp": 5000, **line})] for line in lines)
    assert not any(before)
    assert [fault for fault in last if sentence in fault]


def test_a_time_that_is_yet_to_come_is_refused(told: Told) -> None:
    with pytest.raises(LineError, match="the timestamp of startup_complete is in the future"):
        told.story.translate({**STARTED, "timestamp": told.begun_ms + 3_600_000})


@given(st.lists(st.binary() | st.text().map(str.encode) | st.just(STACK_TRACE), max_size=5))
def test_other_output_is_never_taken_for_a_line(noise: list[bytes]) -> None:
    parsed = [parse(text) for one in noise for text in io.BytesIO(one)]
    assert not any(parsed)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_is_read_or_refused(value: Any) -> None:
    for line in (value, {"name": value, "timestamp": 1}, {"name": "record_data", "timestamp": value, "topic": value}):
        try:
            parsed = parse(json.dumps(line).encode())
        except LineError:
            continue
        assert parsed is None


def test_a_record_names_its_writer_in_text_as_in_bytes() -> None:
    from fencepost_member.payload import unpack

    for text in (True, False):
        assert unpack(b"9", pack(3, 2**40 + 200, 9, 64, text=text)) == (9, 3, 2**40 + 200)
    assert unpack(b"9", b"46503031" + b"z" * 60)[1] == -1
