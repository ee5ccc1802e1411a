"""The seal: segments and event lines become the history; what is damaged is told in sentences and kept."""

from __future__ import annotations

import json
import random
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fencepost.errors import RunFolderError
from fencepost.evidence.sealing import parquet_records
from fencepost.evidence.sealing.seal import FileReport, seal
from fencepost.history import DELIVERED_COLUMNS, EVENT_COLUMNS, PRODUCED_COLUMNS, RecordState, SendOutcome
from fencepost.history.run_folder import RunFolder
from fencepost.model import TopicPartition
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import Recorder
from fencepost_member.recording.segments import DELIVERED, HEADER_BYTES

ACTOR = "member-2.1"
CAPACITY = 8


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "seal", 1)


def record(folder: RunFolder, count: int = 20, actor: str = ACTOR, partitions: int = 3) -> None:
    """Deliver ``count`` records of interleaved partitions, the last of them unfinished."""
    recorder = Recorder(folder.history / "segments", actor, CAPACITY)
    lane = recorder.lane()
    for n in range(count):
        index = lane.delivered(n % partitions, 1000 + n // partitions, n, 0, n, 0, n // 4, n % 4)
        lane.begin(index)
        if n < count - 1:
            lane.done(index)
    recorder.close()


def segment(folder: RunFolder, number: int = 0, actor: str = ACTOR) -> Path:
    return folder.history / "segments" / f"{actor}.{number}.seg"


def segments(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in (folder.history / "segments").iterdir())


def rows(folder: RunFolder, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder.history / name).to_pylist()
    return found


def delivered(folder: RunFolder, actor: str = ACTOR) -> list[dict[str, Any]]:
    return rows(folder, f"delivered/{actor}.parquet")


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at, 2 if at < 0 else 0)
        file.write(data)


def record_at(number: int) -> int:
    return HEADER_BYTES + number * DELIVERED.bytes


# What is well.


def test_delivered_records_are_sorted_by_partition_and_ord_with_the_promised_columns(folder: RunFolder) -> None:
    record(folder)
    report = seal(folder.path)
    table = pq.read_table(folder.history / f"delivered/{ACTOR}.parquet")
    assert {field.name: str(field.type) for field in table.schema} == DELIVERED_COLUMNS
    found = table.to_pylist()
    assert [(row["tp"], row["ord"]) for row in found] == [(tp, n) for tp in range(3) for n in range(7 - (tp == 2))]
    for row in found:
        n = 3 * row["ord"] + row["tp"]
        assert row["offset"] == 1000 + row["ord"]
        assert (row["key"], row["seq"], row["poll"], row["position"]) == (n, n, n // 4, n % 4)
        assert (row["state"] == RecordState.DONE) == (n < 19)
        assert 0 < row["delivered_ns"] <= row["begin_ns"]
    assert report.damage == ()
    assert [(file.file, file.records) for file in report.files] == [
        (f"segments/{ACTOR}.{n}.seg", records) for n, records in enumerate((8, 8, 4))
    ]
    assert segments(folder) == []


def test_row_groups_never_mix_partitions_and_tell_their_range(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_records, "ROW_GROUP_ROWS", 3)
    record(folder)
    seal(folder.path)
    metadata = pq.read_metadata(folder.history / f"delivered/{ACTOR}.parquet")
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [3, 3, 1, 3, 3, 1, 3, 3]
    tps = [group.column(0).statistics for group in groups]
    assert [(tp.min, tp.max) for tp in tps] == [(0, 0)] * 3 + [(1, 1)] * 3 + [(2, 2)] * 2
    offsets = [group.column(1).statistics for group in groups]
    assert [(offset.min, offset.max) for offset in offsets][:3] == [(1000, 1002), (1003, 1005), (1006, 1006)]


def test_columns_have_the_encodings_that_are_quick_to_read(folder: RunFolder) -> None:
    record(folder)
    seal(folder.path)
    group = pq.read_metadata(folder.history / f"delivered/{ACTOR}.parquet").row_group(0)
    chunks = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert all(chunk.compression == "LZ4" for chunk in chunks.values())
    delta = {name for name, chunk in chunks.items() if "DELTA_BINARY_PACKED" in chunk.encodings}
    assert delta == {"offset", "key", "seq", "poll", "ord", "delivered_ns", "begin_ns", "done_ns"}
    assert {name for name, chunk in chunks.items() if chunk.has_dictionary_page} == set(chunks) - delta


def test_every_state_is_told(folder: RunFolder) -> None:
    lane = Recorder(folder.history / "segments", ACTOR).lane()
    indices = [lane.delivered(0, n, n, 0, n, 0, 0, n) for n in range(5)]
    for index in indices[1:]:
        lane.begin(index)
    for index, end in zip(indices[2:], (lane.done, lane.parked, lane.failed), strict=True):
        end(index)
    seal(folder.path)
    expected = [RecordState.DELIVERED, RecordState.BEGUN, RecordState.DONE, RecordState.PARKED, RecordState.FAILED]
    assert [row["state"] for row in delivered(folder)] == expected


def test_lanes_of_one_actor_become_one_file_in_the_order_of_ord(folder: RunFolder) -> None:
    recorder = Recorder(folder.history / "segments", ACTOR, CAPACITY)
    lanes = [recorder.lane() for _ in range(3)]
    tps = (70_000, 70_000 - (1 << 16))  # both wander from lane to lane
    for n in range(60):
        lanes[n // 7 % 3].delivered(tps[n % 2], n // 2, n, 0, n, 0, n, 0)
    seal(folder.path)
    found = delivered(folder)
    assert [(row["tp"], row["offset"]) for row in found] == [(tp, n) for tp in sorted(tps) for n in range(30)]
    assert [row["ord"] for row in found] == [*range(30)] * 2
    assert [row["thread"] for row in found if row["tp"] == 70_000] == [n // 7 % 3 for n in range(0, 60, 2)]


def test_produced_records_are_split_by_whether_their_offset_is_known(folder: RunFolder) -> None:
    lane = Recorder(folder.history / "segments", "producer-0", CAPACITY).producer_lane()
    indices = [lane.sent(n % 2, 5 * n, 0, n) for n in range(20)]
    for n, index in reversed(list(enumerate(indices[:16]))):
        lane.acked(index, 100 + n)
    lane.failed(indices[16])
    lane.unknown(indices[17])
    lane.aborted(indices[19])
    seal(folder.path)
    acked = rows(folder, "produced/producer-0.parquet")
    assert {
        field.name: str(field.type) for field in pq.read_schema(folder.history / "produced/producer-0.parquet")
    } == PRODUCED_COLUMNS
    assert [(row["tp"], row["offset"], row["seq"], row["key"]) for row in acked] == [
        (n % 2, 100 + n, n, 5 * n) for n in (*range(0, 16, 2), *range(1, 16, 2))
    ]
    assert all(row["acked_ns"] >= row["sent_ns"] > 0 and row["outcome"] == SendOutcome.OK for row in acked)
    others = rows(folder, "produced/producer-0.unacked.parquet")
    assert [(row["seq"], row["offset"], row["outcome"]) for row in others] == [
        *((16, -1, SendOutcome.FAIL), (18, -1, SendOutcome.INFO)),
        *((17, -1, SendOutcome.INFO), (19, -1, SendOutcome.ABORTED)),
    ]
    assert [bool(row["acked_ns"]) for row in others] == [True, False, True, True]


def test_an_actor_that_recorded_nothing_has_an_empty_file(folder: RunFolder) -> None:
    Recorder(folder.history / "segments", ACTOR).lane()
    assert seal(folder.path).damage == ()
    assert delivered(folder) == []


def test_sealing_twice_changes_nothing(folder: RunFolder) -> None:
    record(folder)
    EventLog(folder.history / "events" / f"{ACTOR}.jsonl", ACTOR).note("started")
    first = seal(folder.path)
    before = {path: path.read_bytes() for path in folder.history.rglob("*") if path.is_file()}
    assert seal(folder.path) == first
    assert {path: path.read_bytes() for path in folder.history.rglob("*") if path.is_file()} == before


def test_a_seal_that_was_cut_off_is_finished_by_the_next(folder: RunFolder, tmp_path: Path) -> None:
    record(folder)
    shutil.copytree(folder.history / "segments", tmp_path / "raw")
    seal(folder.path)
    sealed = delivered(folder)
    shutil.copy(tmp_path / "raw" / segment(folder, 1).name, segment(folder, 1))  # cut off while it removed
    assert len(seal(folder.path).files) == 3
    assert delivered(folder) == sealed
    assert segments(folder) == []


# What is torn or damaged.


def test_a_torn_record_is_dropped_and_counted_and_is_no_damage(folder: RunFolder) -> None:
    record(folder)
    overwrite(segment(folder, 2), record_at(4) - 1, b"\0")
    report = seal(folder.path)
    assert report.damage == ()
    assert [(file.records, file.torn) for file in report.files] == [(8, 0), (8, 0), (3, 1)]
    assert len(delivered(folder)) == 19
    assert segments(folder) == []


def foreign(folder: RunFolder) -> None:
    record(folder, 3, "member-9.1")
    segment(folder, 0, "member-9.1").rename(segment(folder, 7))


def unsealed_stranger(folder: RunFolder) -> None:
    seal(folder.path)
    other = RunFolder.create(folder.path.parent, "other", 1)
    record(other, 4)
    segment(other).rename(segment(folder, 5))


DAMAGES: dict[str, tuple[Callable[[RunFolder], Any], str, str, int]] = {
    # name: what is done, the file that is named, what is said of it, how many records are left
    "magic": (lambda f: overwrite(segment(f, 2), 0, b"\x1b[31m;--"), "2", "this is not a segment", 16),
    "version": (
        lambda f: overwrite(segment(f, 2), 8, b"\x63"),
        "2",
        "its format version is 99, but this release reads version 1",
        16,
    ),
    "kind": (lambda f: overwrite(segment(f, 2), 16, b"\x09"), "2", "of kind 9 with 88 bytes, which does not exist", 16),
    "no header": (
        lambda f: segment(f, 2).write_bytes(b"FPSEGMNT"),
        "2",
        "it ends after 8 bytes, within its header",
        16,
    ),
    "empty": (lambda f: segment(f, 2).write_bytes(b""), "2", "it ends after 0 bytes", 16),
    "cut": (lambda f: overwrite_size(segment(f, 2), record_at(2) + 9), "2", "room for 2 of 8 records", 18),
    "cut at header": (lambda f: overwrite_size(segment(f, 2), HEADER_BYTES), "2", "room for 0 of 8 records", 16),
    "two torn": (
        lambda f: tear(f, 2, 2, 3),
        "2",
        "2 records at its end are not committed",
        18,
    ),
    "hole": (lambda f: tear(f, 2, 1), "2", "1 records before its end are not committed", 19),
    "not full": (lambda f: tear(f, 1, 7), "1", "it is not full, but its thread continued in another one", 19),
    "missing": (lambda f: segment(f, 1).unlink(), "2", "it is segment 2 of its thread, and segment 1 was expected", 12),
    "boot": (lambda f: overwrite(segment(f, 2), 52, b"another-boot"), "2", "after another boot of the host", 20),
    "thread": (
        lambda f: overwrite(segment(f, 2), 28, b"\xff\xff\xff\xff"),
        "2",
        "its header names thread 4294967295, but the highest possible one is 32767",
        16,
    ),
    "actor": (
        lambda f: overwrite(segment(f, 2), 88, b"\xff\x1b../x"),
        "2",
        "its header names the actor '\\\\xff\\x1b../x-2.1'",
        16,
    ),
    "foreign": (foreign, "7", "its header names the actor 'member-9.1', but its file name another one", 20),
    "directory": (lambda f: segment(f, 7).mkdir(), "7", "it cannot be read: Is a directory", 20),
    "partition": (lambda f: overwrite(segment(f, 2), record_at(0) + 64, b"\x4d"), "2", "does not have: 77", 20),
    "after the seal": (unsealed_stranger, "5", "it appeared after its actor had been sealed", 20),
}


def overwrite_size(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def tear(folder: RunFolder, number: int, *places: int) -> None:
    for place in places:
        overwrite(segment(folder, number), record_at(place + 1) - 1, b"\0")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_a_sentence_and_everything_raw_is_kept(folder: RunFolder, damage: str) -> None:
    act, number, sentence, left = DAMAGES[damage]
    record(folder)
    act(folder)
    raw = segments(folder)
    partitions = {TopicPartition("t", n): n for n in range(3)}
    report = seal(folder.path, partitions)
    assert [file.file for file in report.files if file.damage] == [f"segments/{ACTOR}.{number}.seg"]
    assert sentence in report.damage[0]
    assert report.damage[0].isprintable()
    assert len(delivered(folder)) == left
    assert segments(folder) == raw
    assert seal(folder.path, partitions) == report
    stored = [
        FileReport(**{**file, "damage": tuple(file["damage"])})
        for file in folder.read_json("history/seal.json")["files"]
    ]
    assert tuple(stored) == report.files


def test_the_damage_of_one_actor_does_not_touch_the_others(folder: RunFolder) -> None:
    record(folder)
    record(folder, actor="member-3.1")
    overwrite(segment(folder), 0, b"nonsense")
    seal(folder.path)
    assert len(delivered(folder, "member-3.1")) == 20
    assert segments(folder) == [f"{ACTOR}.{n}.seg" for n in range(3)]


@pytest.mark.parametrize("seed", range(10))
def test_whatever_bytes_a_segment_has_the_seal_reports_and_does_not_fail(folder: RunFolder, seed: int) -> None:
    chance = random.Random(seed)
    for actor in (names := [f"member-{n}.1" for n in range(10)]):
        record(folder, actor=actor)
        path = segment(folder, chance.randrange(3), actor)
        data = bytearray(path.read_bytes())
        for _ in range(chance.choice((1, 30, 1000))):
            data[chance.choice((chance.randrange(256), chance.randrange(len(data))))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice((len(data), chance.randrange(len(data))))])
    report = seal(folder.path)
    assert len(report.files) == 30
    for actor in names:
        assert sum(file.records for file in report.files if actor in file.file) == len(delivered(folder, actor))


def test_a_history_that_cannot_be_written_is_told_and_can_be_sealed_later(folder: RunFolder) -> None:
    record(folder)
    raw = segments(folder)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(RunFolderError, match=r"cannot be written: .*\. Nothing is lost"):
            seal(folder.path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert segments(folder) == raw
    assert [path for path in folder.history.rglob("*") if path.name.startswith(".") or path.suffix == ".parquet"] == []
    seal(folder.path)
    assert len(delivered(folder)) == 20


# Events.


def test_events_are_merged_by_id_and_spread_over_their_partitions(folder: RunFolder) -> None:
    log = EventLog(folder.history / "events" / f"{ACTOR}.jsonl", ACTOR)
    revoked = log.begin("revoked", partitions=[("orders", 1), ("orders", 2)], generation=4, member_id="m")
    commit = log.begin("commit", partitions=[("orders", 1, 17)], detail={"mode": "sync"})
    log.end(commit, outcome="ok")
    log.end(revoked)
    log.begin("commit", partitions=[("orders", 2, 5)])
    log.note("closed")
    EventLog(folder.history / "events" / "harness.jsonl", "harness").note(
        "ended", actor=ACTOR, detail={"how": "closed"}
    )
    report = seal(folder.path)
    table = pq.read_table(folder.history / "events.parquet")
    assert {field.name: str(field.type) for field in table.schema} == EVENT_COLUMNS
    found = table.to_pylist()
    reported = [
        (row["kind"], row["id"], row["topic"], row["partition"], row["offset"], row["outcome"]) for row in found
    ]
    assert reported == [
        ("revoked", 1, "orders", 1, None, None),
        ("revoked", 1, "orders", 2, None, None),
        ("commit", 2, "orders", 1, 17, "ok"),
        ("commit", 3, "orders", 2, 5, None),
        ("closed", 4, None, None, None, None),
        ("ended", -1, None, None, None, None),
    ]
    assert [row["end_ns"] > 0 for row in found] == [True, True, True, False, True, True]
    assert [row["generation"] for row in found] == [4, 4, -1, -1, -1, -1]
    assert found[2]["detail"] == '{"mode":"sync"}'
    assert report.damage == ()
    assert [(file.file, file.records) for file in report.files] == [
        ("events/harness.jsonl", 1),
        (f"events/{ACTOR}.jsonl", 4),
    ]
    assert len(list((folder.history / "events").iterdir())) == 2


HOSTILE: dict[str, tuple[str | dict[str, Any], str]] = {
    "no json": ("{]", "is not an event"),
    "no object": ("[]", "it is not a JSON object"),
    "keys": ('{"kind": "x"}', "it has no key actor"),
    "huge": ({"begin_ns": 1 << 63}, "is not an integer of 64 bits"),
    "digits": ('{"id": ' + "9" * 5000 + "}", "is not an event"),
    "bool": ({"id": True}, "True is not an integer"),
    "list": ({"id": [1]}, "[1] is not an integer"),
    "float": ({"end_ns": 1.5}, "1.5 is not an integer"),
    "partition": ({"partitions": [["t", 1 << 31, None]]}, "is not an integer of 32 bits"),
    "places": ({"partitions": [["t"]]}, "cannot be read"),
    "place": ({"partitions": 5}, "its partitions are not a list"),
    "topic": ({"partitions": [[5, 1, None]]}, "5 is not text"),
    "detail": ({"detail": "x"}, "its detail is not an object"),
    "nan": ({"detail": {"x": float("nan")}}, "cannot be read"),
    "deep": ('{"detail":' * 50_000 + "1" + "}" * 50_000, "is not an event"),
    "kind": ({"kind": None}, "None is not text"),
    "actor": ({"actor": "member-9.1\n\x1b[31m"}, "which its id does not allow"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_event_line_is_reported_and_the_others_stay(folder: RunFolder, hostile: str) -> None:
    line, sentence = HOSTILE[hostile]
    path = folder.history / "events" / f"{ACTOR}.jsonl"
    log = EventLog(path, ACTOR)
    log.note("started")
    if isinstance(line, dict):
        event = {"kind": "commit", "actor": ACTOR, "id": 99, "begin_ns": 1, "end_ns": 2, "partitions": [], "detail": {}}
        line = json.dumps({**event, **dict.fromkeys(("generation", "member_id", "outcome", "error")), **line})
    with path.open("a") as file:
        file.write(line + "\n")
    log.note("closed")
    (damage,) = seal(folder.path).damage
    assert damage.startswith(f"events/{ACTOR}.jsonl: ")
    assert sentence in damage
    assert damage.isprintable()
    assert len(damage) < 400
    assert {"started", "closed"} <= {row["kind"] for row in rows(folder, "events.parquet")}


def test_hostile_texts_of_events_reach_the_table(folder: RunFolder) -> None:
    text = 'a "quote", a\nline\r\u2028, a \x00, a lone \ud800 and \U0001f9e8'
    EventLog(folder.history / "events" / f"{ACTOR}.jsonl", ACTOR).note("error", error=text, partitions=[(text, 1)])
    assert seal(folder.path).damage == ()
    (row,) = rows(folder, "events.parquet")
    assert row["error"] == row["topic"] == text.replace("\ud800", "\\ud800")


def test_a_torn_last_event_line_is_counted(folder: RunFolder) -> None:
    path = folder.history / "events" / f"{ACTOR}.jsonl"
    EventLog(path, ACTOR).note("started")
    with path.open("ab") as file:
        file.write(b'{"kind":"com')
    report = seal(folder.path)
    assert report.files == (FileReport(f"events/{ACTOR}.jsonl", 1, 1, ()),)
    assert len(rows(folder, "events.parquet")) == 1


def test_an_old_folder_without_event_lines_keeps_its_table(folder: RunFolder) -> None:
    EventLog(folder.history / "events" / f"{ACTOR}.jsonl", ACTOR).note("started")
    seal(folder.path)
    shutil.rmtree(folder.history / "events")
    assert [file.file for file in seal(folder.path).files] == [f"events/{ACTOR}.jsonl"]
    assert len(rows(folder, "events.parquet")) == 1


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError):
        seal(tmp_path / "nowhere")
