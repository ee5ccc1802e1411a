"""Which records are of a partition that is gone, and which of the one that has its name now."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from fencepost.evidence.sealing import parquet_records, recreated_topics
from fencepost.evidence.sealing.seal import seal
from fencepost.history import LOG_COLUMNS
from fencepost.history.run_folder import RunFolder
from fencepost.model import TopicPartition
from fencepost_member.recording import recorder
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import Recorder

FIRST, SECOND = (40, 50), (80, 90)  # when the partition is made again
NAME, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
MEMBER, PRODUCER = "member-0.1", "producer-0"


class Told:
    """A run of one producer and one member, whose clock is set by hand."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *made: tuple[int, int]) -> None:
        self.run, self.now, self.made = RunFolder.create(folder, "renewed", 1), 0, made
        monkeypatch.setattr(recorder, "monotonic_ns", lambda: self.now)
        segments = self.run.history / "segments"
        self.sends = Recorder(segments, PRODUCER, 64).producer_lane()
        self.gets = Recorder(segments, MEMBER, 64, now=lambda: self.now).lane()
        self.log: list[tuple[int, int, int]] = []  # offset, writer, number
        harness = EventLog(self.run.history / "events" / "harness.jsonl", "harness")
        for begin_ns, end_ns in made:
            detail = {"what": "recreate_topic", "renews": True}
            harness.note("act", partitions=[NAME], begin_ns=begin_ns, end_ns=end_ns, detail=detail)

    def sent(self, seq: int, at: int, *, acked: tuple[int, int] | None = None, tp: int = 0) -> None:
        """``acked``: when, and at which offset."""
        self.now = at
        index = self.sends.sent(tp, 7, 0, seq)
        if acked:
            self.now = acked[0]
            self.sends.acked(index, acked[1])

    def got(self, offset: int, seq: int, at: int, *, writer: int = 0, done: int = 0, tp: int = 0) -> None:
        self.now = at
        index = self.gets.delivered(tp, offset, 7, writer, seq, 0, 0, 0)
        if done:
            self.gets.begin(index)
            self.now = done
            self.gets.done(index)

    def holds(self, *records: tuple[int, int, int]) -> None:
        self.log += records

    def sealed(self) -> None:
        places = ({"tp": tp, "topic": name.topic, "partition": name.partition} for tp, name in enumerate((NAME, OTHER)))
        entries = [{**place, "log_start": 0, "log_end": 9, "committed": -1} for place in places]
        self.run.write_json("history/partitions.json", {"partitions": entries})
        offset, writer, seq = (np.array(column, np.int64) for column in zip(*(self.log or [(99, 9, 9)]), strict=True))
        same = {"tp": np.zeros(len(offset), np.int64), "key": np.full(len(offset), 7)}
        held = {**same, "offset": offset, "writer": writer, "seq": seq, "appended_ms": np.zeros(len(offset), np.int64)}
        parquet_records.write(self.run.history / "log" / "audit.parquet", LOG_COLUMNS, [held])
        assert not seal(self.run.path, {NAME: 0, OTHER: 1}).damage

    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.run.read_json("history/partitions.json")["partitions"]
        return found

    def _rows(self, *names: str) -> list[dict[str, Any]]:
        tables = (pq.read_table(path).to_pylist() for name in names if (path := self.run.history / name).exists())
        return [row for table in tables for row in table]

    def produced(self) -> dict[int, int]:
        """The partition of each send."""
        rows = self._rows(f"produced/{PRODUCER}.parquet", f"produced/{PRODUCER}.unacked.parquet")
        return {row["seq"]: row["tp"] for row in rows}

    def delivered(self) -> list[tuple[int, int, int, int]]:
        """Partition, number of the send, offset and ``ord`` of each delivery."""
        rows = self._rows(f"delivered/{MEMBER}.parquet")
        return sorted((row["tp"], row["seq"], row["offset"], row["ord"]) for row in rows)


OLD, NEW = 2, 0


@pytest.mark.parametrize(
    ("at", "acked", "held", "of"),
    [
        (10, (12, 3), [], OLD),
        (10, (60, 3), [], OLD),  # on its way while the topic was made again, and not found: nobody can tell
        (10, (60, 3), [(3, 0, 5)], NEW),
        (10, (60, 3), [(4, 0, 5)], OLD),  # another record of that send: it was acknowledged elsewhere
        (10, (39, 3), [(3, 0, 5)], OLD),  # acknowledged before there was another one
        (10, None, [], OLD),
        (10, None, [(4, 0, 5)], NEW),
        (45, (60, 3), [], OLD),
        (50, (60, 3), [], OLD),
        (51, (60, 3), [], NEW),  # it is lost, and of that the act is no excuse
        (51, None, [], NEW),
    ],
)
def test_a_send_is_of_the_partition_that_certainly_took_it(
    at: int,
    acked: tuple[int, int] | None,
    held: Iterable[tuple[int, int, int]],
    of: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported = Told(tmp_path, monkeypatch, FIRST)
    reported.sent(5, at, acked=acked)
    reported.holds(*held)
    reported.sealed()
    assert reported.produced() == {5: of}


@pytest.mark.parametrize(
    ("sent", "writer", "at", "held", "of"),
    [
        (10, 0, 20, [], OLD),
        (10, 0, 95, [], OLD),  # it lay in the member's hands all the time
        (10, 0, 95, [(3, 0, 5)], NEW),
        (10, 0, 39, [(3, 0, 5)], OLD),  # delivered before there was another one: it was sent again
        (10, 0, 40, [(3, 0, 5)], NEW),
        (10, 0, 95, [(4, 0, 5)], OLD),
        (45, 0, 95, [], OLD),
        (51, 0, 95, [], NEW),
        (None, 8, 20, [], OLD),
        (None, 8, 95, [], OLD),  # of a stranger nobody knows when it wrote
        (None, 8, 95, [(3, 8, 5)], NEW),
        (None, -1, 95, [], OLD),
    ],
)
def test_a_delivery_is_of_the_partition_that_its_record_is_of(
    sent: int | None,
    writer: int,
    at: int,
    held: Iterable[tuple[int, int, int]],
    of: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported = Told(tmp_path, monkeypatch, FIRST)
    reported.sent(4, 1)
    if sent is not None:
        reported.sent(5, sent)
    reported.got(3, 5, at, writer=writer)
    reported.holds(*held)
    reported.sealed()
    assert [tp for tp, *_ in reported.delivered()] == [of]


def test_each_partition_that_is_gone_has_its_number_and_says_what_came_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = Told(tmp_path, monkeypatch, SECOND, FIRST)
    for seq, at in ((0, 10), (1, 55), (2, 95), (3, 96)):
        reported.sent(seq, at, acked=(at + 1, 0))
    reported.got(7, 0, 20, done=60)
    reported.got(1, 1, 61, done=70)
    reported.got(2, 2, 100)
    reported.got(4, 3, 101, done=102)
    reported.holds((2, 0, 2), (4, 0, 3))
    reported.sealed()
    assert reported.produced() == {0: 2, 1: 3, 2: 0, 3: 0}
    assert reported.delivered() == [(0, 2, 2, 0), (0, 3, 4, 1), (2, 0, 7, 0), (3, 1, 1, 0)]
    gone = {entry["tp"]: entry for entry in reported.entries() if "renewed" in entry}
    assert {tp: entry["renewed"] for tp, entry in gone.items()} == {
        2: {
            "as": 3,
            "begin_ns": 40,
            "end_ns": 50,
            "last_ns": 60,
            "next": 8,
            "begun": 1,
            "begin_ns_of": {MEMBER: 61},
            "done_ns": {MEMBER: 70},
        },
        3: {
            "as": 0,
            "begin_ns": 80,
            "end_ns": 90,
            "last_ns": 70,
            "next": 2,
            "begun": 2,
            "begin_ns_of": {MEMBER: 101},
            "done_ns": {MEMBER: 102},
        },
    }
    assert {(entry["topic"], entry["partition"], entry["log_start"], entry["log_end"]) for entry in gone.values()} == {
        ("orders", 0, 0, 0)
    }


def test_what_a_member_numbered_through_is_numbered_through_again_and_a_hole_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = Told(tmp_path, monkeypatch, FIRST)
    for seq, at in ((0, 10), (1, 11), (2, 55), (3, 12), (4, 56)):
        reported.sent(seq, at)
        reported.got(seq, seq, at + 100 if at > 50 else at + 1)
    reported.sealed()
    assert [(tp, seq, ord_) for tp, seq, _, ord_ in reported.delivered()] == [
        *[(0, 2, 0), (0, 4, 1)],
        *[(2, 0, 0), (2, 1, 1), (2, 3, 2)],
    ]


def test_a_number_that_is_missing_is_missing_in_each_partition() -> None:
    numbered = recreated_topics._numbered(np.array([5, 0, 1, 3, 4]), np.array([1, 0, 0, 0, 1]))
    assert numbered.tolist() == [2, 0, 1, 3, 1]


def test_other_partitions_stay_as_they_are_and_a_second_seal_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = Told(tmp_path, monkeypatch, FIRST)
    reported.sent(0, 10, tp=1)
    reported.got(0, 0, 20, tp=1)
    reported.sent(1, 10)
    reported.got(0, 1, 20, done=21)
    reported.sealed()
    before = {path: path.read_bytes() for path in reported.run.history.rglob("*") if path.is_file()}
    assert reported.produced() == {0: 1, 1: 2}
    assert [(tp, seq) for tp, seq, *_ in reported.delivered()] == [(1, 0), (2, 1)]
    seal(reported.run.path)
    assert {path: path.read_bytes() for path in reported.run.history.rglob("*") if path.is_file()} == before


def test_without_such_an_act_nothing_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Told(tmp_path, monkeypatch)
    reported.sent(0, 10)
    reported.sealed()
    assert reported.produced() == {0: 0}
    assert len(reported.entries()) == 2
    assert json.loads((reported.run.history / "partitions.json").read_text())["partitions"] == reported.entries()
