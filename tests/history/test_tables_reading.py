"""Files of a run folder as they are read: each value as it was written, and each damage in one exact sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.checkers.tables import integrity, load, schemas
from fencepost.checkers.tables.reading import LACKING, Reader, first_line, misfit
from fencepost.checkers.tables.records import Delivered, Logged, Produced, load_records
from fencepost.checkers.tables.rows import Damage, DeclaredAction, Life, Partition, Window
from fencepost.checkers.tables.seeks import Seek
from fencepost.history import DELIVERED_COLUMNS, EVENT_COLUMNS, FORMAT_VERSION, LOG_COLUMNS, PRODUCED_COLUMNS
from fencepost.history.run_folder import digest, fingerprint
from fencepost.model import TopicPartition

TYPES = {"string": pa.string(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64()}
OTHER = f"it has format version 99; {FORMAT_VERSION} can be judged"
A = "member-0.1"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(columns: dict[str, str], rows: list[tuple[Any, ...]], **metadata: str) -> pa.Table:
    of = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = {name: pa.array(values, TYPES[columns[name]]) for name, values in zip(columns, of, strict=True)}
    return pa.table(arrays).replace_schema_metadata(metadata or None)


def parquet(path: Path, columns: dict[str, str], rows: list[tuple[Any, ...]], **metadata: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(columns, rows, **metadata), path)
    return path


# JSON.


PAIRS = {"pairs": [[1, 2]]}
HERE = {"format_version": FORMAT_VERSION}


@pytest.mark.parametrize(
    ("content", "value", "damage"),
    [
        (HERE | PAIRS, PAIRS, ""),
        (HERE | PAIRS | {"more": None}, PAIRS | {"more": None}, ""),
        (PAIRS, {}, f"it cannot be read: {OTHER.replace('99', 'None')}"),
        (PAIRS | {"format_version": 99}, {}, f"it cannot be read: {OTHER}"),
        ([], {}, "it cannot be read: Expected `object`, got `array`"),
        (HERE | {"pairs": []}, {}, "it cannot be read: Expected `array` of length >= 1 - at `$.pairs`"),
        (None, {}, "it is missing"),
    ],
)
def test_an_object_is_read_or_is_damage(tmp_path: Path, content: Any, value: dict[str, Any], damage: str) -> None:
    reader = Reader(tmp_path)
    if content is not None:
        write(tmp_path / "history" / "clock.json", json.dumps(content))
    assert reader.json("clock", "history/clock.json", schemas.ClockFile) == value
    assert reader.damage == ([Damage("clock", "history/clock.json", damage)] if damage else [])


def test_records_of_brokers_that_the_cluster_does_not_show_are_no_damage(tmp_path: Path) -> None:
    write(tmp_path / LACKING, json.dumps({"parts": {"requests": "it is attached"}}))
    reader = Reader(tmp_path)
    assert reader.lines("requests", "r", schemas.RequestLine) == reader.lines("offsets", "o", schemas.OffsetLine) == []
    assert reader.not_shown == [Damage("requests", "r", "it is attached")]
    assert reader.damage == [Damage("offsets", "o", "it is missing")]


def test_other_parts_are_missing_for_the_reason_that_the_run_noted(tmp_path: Path) -> None:
    write(tmp_path / LACKING, json.dumps({"parts": {"host": "it is attached"}}))
    reader = Reader(tmp_path)
    assert (
        reader.json("clock", "history/clock.json", schemas.ClockFile),
        reader.lines("host", "h", schemas.HostLine),
    ) == (
        {},
        [],
    )
    reported = [Damage("clock", "history/clock.json", "it is missing")]
    assert reader.damage == [*reported, Damage("host", "h", "it is missing, because it is attached")]


LINE = '{"kind": "stall", "from_ns": 1, "to_ns": 2}'
STALL = {"kind": "stall", "from_ns": 1, "to_ns": 2}
BAD = "of its lines cannot be read, the first is line"


@pytest.mark.parametrize(
    ("content", "count", "damage"),
    [
        ("", 0, ""),
        (LINE, 1, ""),
        (f"{LINE}\n{LINE}\n", 2, ""),
        (f"{LINE}\n\n  \n{LINE}", 2, ""),
        ("{}", 0, f"1 {BAD} 1: Object missing required field `kind`"),
        (f"{LINE}\n7\n[]\n{LINE}\n", 2, f"2 {BAD} 2: Expected `object`, got `int`"),
        (f"{LINE}\n\n{{}}\n7", 1, f"2 {BAD} 3: Object missing required field `kind`"),
        (None, 0, "it is missing"),
    ],
)
def test_lines_are_read_and_those_that_are_none_are_counted(
    tmp_path: Path, content: str | None, count: int, damage: str
) -> None:
    reader = Reader(tmp_path)
    if content is not None:
        write(tmp_path / "history" / "host.jsonl", content)
    assert reader.lines("host", "history/host.jsonl", schemas.HostLine) == [STALL] * count
    assert reader.damage == ([Damage("host", "history/host.jsonl", damage)] if damage else [])


def test_a_line_of_a_type_that_needs_a_field_and_lacks_it_is_none(tmp_path: Path) -> None:
    reader, name = Reader(tmp_path), "history/coordinator/offsets.jsonl"
    reported = {"type": "current", "at_ns": 1, "partition": 0, "member_id": "m"}
    lacks = {field: value for field, value in reported.items() if field != "member_id"}
    lines = [reported, lacks, {**lacks, "type": "group"}, {**lacks, "type": "member"}]
    write(tmp_path / name, "\n".join(map(json.dumps, lines)))
    assert reader.lines("offsets", name, schemas.OffsetLine, **schemas.OF_MEMBER) == [lines[0], lines[2]]
    assert reader.damage == [Damage("offsets", name, f"2 {BAD} 2: it is of type current and lacks member_id")]


# Parquet.


def event(begin_ns: int, actor: str = A, number: int = 0, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(EVENT_COLUMNS)
    row |= {"kind": "seek", "actor": actor, "id": number, "begin_ns": begin_ns, "end_ns": 0}
    return {**row, "detail": "{}", **more}


def events(run: Path, *rows: dict[str, Any], columns: dict[str, str] = EVENT_COLUMNS) -> Reader:
    parquet(run / "history" / "events.parquet", columns, [tuple(row[name] for name in columns) for row in rows])
    return Reader(run)


def of_events(what: str) -> list[Damage]:
    return [Damage("events", "history/events.parquet", what)] if what else []


def test_events_are_in_the_order_of_time_then_of_actors_and_numbers(tmp_path: Path) -> None:
    reported = [(7, "b", 1), (7, "a", 2), (7, "a", 1), (3, "c", 9)]
    reader = events(tmp_path, *(event(*of, detail=None) for of in reported))
    assert [(e["begin_ns"], e["actor"], e["id"]) for e in reader.events()] == sorted(reported)
    assert reader.damage == []


@pytest.mark.parametrize(
    "detail", [None, "", "{}", '{"slot": 3}', '{"fatal": true, "text": "t", "protocol": "eager", "asked_ns": 5}']
)
def test_an_event_is_told_with_its_detail(tmp_path: Path, detail: str | None) -> None:
    row = event(5, topic="orders", partition=1, offset=2, generation=3, member_id="x", outcome="ok", error="E")
    reader = events(tmp_path, {**row, "detail": detail})
    assert reader.events() == [{**row, "detail": json.loads(detail or "{}")}]


BACKWARDS = "of its events end before they begin: its clock went back"
UNREAD = f"of its rows cannot be read, the first is seek of {A}"


@pytest.mark.parametrize(
    ("rows", "count", "damage"),
    [
        ([event(5, end_ns=4)], 1, f"1 {BACKWARDS}"),
        ([event(5, end_ns=4), event(2, end_ns=1), event(5)], 3, f"2 {BACKWARDS}"),
        ([event(5, end_ns=5), event(5, end_ns=0), event(5, end_ns=6)], 3, ""),
        ([event(5, detail="[]"), event(6)], 1, f"1 {UNREAD}: Expected `object`, got `array`"),
        ([event(5), event(6, detail="7"), event(6, "b", detail="[]")], 1, f"2 {UNREAD}: Expected `object`, got `int`"),
        ([event(5, detail='{"seq": "7"}'), event(6)], 1, f"1 {UNREAD}: Expected `int`, got `str` - at `$.seq`"),
        ([event(5, detail='{"token": 0.5}')], 0, f"1 {UNREAD}: Expected `int`, got `float` - at `$.token`"),
        ([event(5, kind=None)], 0, "it cannot be read: its column kind is not always filled"),
        ([event(5, id=None), event(5)], 0, "it cannot be read: its column id is not always filled"),
        ([], 0, ""),
    ],
)
def test_events_that_cannot_be_are_damage(tmp_path: Path, rows: list[dict[str, Any]], count: int, damage: str) -> None:
    reader = events(tmp_path, *rows)
    assert len(reader.events()) == count
    assert reader.damage == of_events(damage)


def test_events_of_another_shape_are_not_read(tmp_path: Path) -> None:
    lacking = {name: kind for name, kind in EVENT_COLUMNS.items() if name != "detail"}
    reader = events(tmp_path, event(5), columns=lacking)
    assert reader.events() == []
    assert reader.damage == of_events("it cannot be read: it lacks the column detail")
    assert Reader(tmp_path / "none").events() == []


@pytest.mark.parametrize(
    ("columns", "metadata", "lack"),
    [
        ({"a": "int64", "b": "string"}, {}, ""),
        ({"b": "string", "a": "int8", "c": "int8"}, {"format_version": str(FORMAT_VERSION)}, ""),
        ({"a": "int64", "b": "string"}, {"other": "99"}, ""),
        ({"a": "int64", "b": "string"}, {"format_version": "99"}, OTHER),
        ({"b": "string"}, {}, "it lacks the column a"),
        ({"a": "int64"}, {}, "it lacks the column b"),
        ({"a": "string", "b": "string"}, {}, "its column a is string, and not int32"),
        ({"a": "int64", "b": "int16"}, {}, "its column b is int16, and not string"),
    ],
)
def test_parquet_fits_when_it_has_the_columns(columns: dict[str, str], metadata: dict[str, str], lack: str) -> None:
    assert misfit(table(columns, [], **metadata).schema, {"a": "int32", "b": "string"}) == lack


def test_a_version_that_is_no_text_is_told_of() -> None:
    schema = table({"a": "int64"}, []).schema.with_metadata({b"format_version": b"\xff"})
    assert misfit(schema, {}) == f"it has format version \ufffd; {FORMAT_VERSION} can be judged"


NUMBERS = {"a": "int64", "b": "int64"}


def test_rows_are_read_in_the_order_of_the_columns(tmp_path: Path) -> None:
    """Also when the file has others, or another order; null is -1."""
    path = parquet(tmp_path / "x" / "a.parquet", {"c": "int64", "b": "int64", "a": "int8"}, [(9, 2, 1), (9, None, 3)])
    reader = Reader(tmp_path)
    assert [*reader.rows("log", path, NUMBERS)] == [(1, 2), (3, -1)]
    reader.footer("log", path, NUMBERS)
    assert reader.damage == []


@pytest.mark.parametrize("read", [Reader.footer, lambda *of: [*Reader.rows(*of)]])
def test_rows_of_another_shape_are_damage(tmp_path: Path, read: Callable[..., Any]) -> None:
    reader = Reader(tmp_path)
    path = parquet(tmp_path / "x" / "a.parquet", {"a": "int64"}, [(1,)])
    assert not read(reader, "log", path, NUMBERS)
    assert not read(reader, "produced", tmp_path / "x" / "none.parquet", NUMBERS)
    assert reader.damage == [
        Damage("log", "x/a.parquet", "it cannot be read: it lacks the column b"),
        Damage("produced", "x/none.parquet", "it is missing"),
    ]


STRIKING = 0x1122334455667788


def turned(path: Path) -> None:
    """In its page the number is another one, as good as any."""
    plain = {"use_dictionary": False, "write_statistics": False, "compression": "none"}
    pq.write_table(pq.read_table(path), path, write_page_checksum=True, **plain)
    one, other = (number.to_bytes(8, "little") for number in (STRIKING, STRIKING + 1))
    assert path.read_bytes().count(one) == 1
    path.write_bytes(path.read_bytes().replace(one, other))


def test_a_page_whose_checksum_is_wrong_is_damage(tmp_path: Path) -> None:
    turned(path := parquet(tmp_path / "history" / "a.parquet", NUMBERS, [(STRIKING, 1)]))
    reader = Reader(tmp_path)
    assert [*reader.rows("log", path, NUMBERS)] == []
    assert [(d.part, d.file) for d in reader.damage] == [("log", "history/a.parquet")]


def test_events_whose_checksum_is_wrong_are_damage(tmp_path: Path) -> None:
    reader = events(tmp_path, event(STRIKING))
    turned(tmp_path / "history" / "events.parquet")
    assert reader.events() == []
    assert [(d.part, d.file) for d in reader.damage] == [("events", "history/events.parquet")]


def test_the_files_of_a_folder_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "c.txt"):
        write(tmp_path / "history" / "log" / name, "")
    reader = Reader(tmp_path)
    assert [path.name for path in reader.files("log", "log")] == ["a.parquet", "b.parquet"]
    assert reader.damage == []
    assert reader.files("produced", "sent") == []
    assert reader.damage == [Damage("produced", "history/sent", "it holds no Parquet file")]


@pytest.mark.parametrize(
    ("error", "line"),
    [(ValueError("one\ntwo"), "one"), (ValueError(""), "ValueError"), (OSError("\nlater"), "OSError")],
)
def test_an_error_is_told_in_one_line(error: Exception, line: str) -> None:
    assert first_line(error) == line


def test_events_that_were_not_sealed_are_read_from_their_own_lines(tmp_path: Path) -> None:
    """The last line of an id wins, and what is none is passed over."""
    begun = {"id": 1, "begin_ns": 5, "end_ns": 0, "kind": "phase", "detail": {"name": "drain"}, "more": 1}
    lines = [begun, {**begun, "id": 2, "begin_ns": 7}, {**begun, "end_ns": 9}, {"id": 3}, {**begun, "detail": []}]
    text = "\n".join(["", "torn", *map(json.dumps, lines), '{"id": 4'])
    write(tmp_path / "history" / "events" / "harness.jsonl", text)
    reader = Reader(tmp_path)
    kept = {"kind": "phase", "detail": {"name": "drain"}}
    assert reader.unsealed_events("harness") == [
        {**kept, "begin_ns": 5, "end_ns": 9},
        {**kept, "begin_ns": 7, "end_ns": 0},
    ]
    assert reader.unsealed_events("member-0.1") == []
    assert reader.damage == []


# Records.


def test_records_are_read_with_the_names_of_their_files_and_in_order(tmp_path: Path) -> None:
    history = tmp_path / "history"
    delivered = [(1, 5, *[0] * 12), (0, 6, *[0] * 12), (0, 7, *[0] * 12)]
    ords = [(2,), (1,), (0,)]
    names = [*DELIVERED_COLUMNS]
    at = names.index("ord")
    rows = [(*row[:at], *order, *row[at + 1 :]) for row, order in zip(delivered, ords, strict=True)]
    parquet(history / "delivered" / "member-1.1.parquet", DELIVERED_COLUMNS, rows)
    parquet(history / "delivered" / "member-0.1.parquet", DELIVERED_COLUMNS, rows[1:2])
    sent = [(*range(len(PRODUCED_COLUMNS) - 1), 1)]
    parquet(history / "produced" / "producer-0.parquet", PRODUCED_COLUMNS, sent)
    logged = [(1, 0, 1, 2, 3, 4), (0, 9, 9, 2, 3, 4), (0, 9, 1, 2, 3, 4), (0, 3, 1, 2, 3, 4)]
    parquet(history / "log" / "audit.parquet", LOG_COLUMNS, logged)
    records = load_records(tmp_path)
    assert records.delivered == (
        Delivered("member-0.1", *rows[1]),
        *(Delivered("member-1.1", *rows[n]) for n in (2, 1, 0)),
    )
    assert records.produced == (Produced(*sent[0]),)
    assert records.log == tuple(Logged(*logged[n]) for n in (3, 1, 2, 0))
    assert records.damage == ()
    assert load_records(tmp_path / "none").damage == tuple(
        Damage(part, f"history/{part}", "it holds no Parquet file") for part in ("delivered", "produced", "log")
    )


def test_records_that_cannot_be_read_are_damage_of_their_part(tmp_path: Path) -> None:
    for part in ("delivered", "produced", "log"):
        parquet(tmp_path / "history" / part / "x.parquet", {"tp": "int32"}, [])
    assert load_records(tmp_path).damage == tuple(
        Damage(part, f"history/{part}/x.parquet", "it cannot be read: it lacks the column offset")
        for part in ("delivered", "produced", "log")
    )


# A whole folder.


def test_partitions_are_what_the_audit_wrote_of_them(tmp_path: Path) -> None:
    entries = [
        {"tp": 3, "topic": "orders", "partition": 1, "log_start": 5, "log_end": 9},
        {"tp": 4, "topic": "orders", "partition": 0},
    ]
    write(tmp_path / "history" / "partitions.json", json.dumps({"partitions": entries, **HERE}))
    tables = load(tmp_path)
    assert tables.partitions == {
        3: Partition(3, TopicPartition("orders", 1), 5, 9),
        4: Partition(4, TopicPartition("orders", 0), 0, -1),
    }
    assert ("partitions", "history/partitions.json") not in [(d.part, d.file) for d in tables.damage]
    assert ("partitions", "history/partitions.json") in [(d.part, d.file) for d in load(tmp_path / "none").damage]


def test_what_programs_the_harness_and_the_host_did_is_told_with_its_time(tmp_path: Path) -> None:
    entries = [{"tp": 3, "topic": "orders", "partition": 1}]
    write(tmp_path / "history" / "partitions.json", json.dumps({"partitions": entries, **HERE}))
    write(tmp_path / "history" / "host.jsonl", f'{LINE}\n{{"kind": "summary", "from_ns": 5, "to_ns": 6}}')
    there = {"topic": "orders", "partition": 1}
    rows = [event(6, **there), event(7, offset=4, **there), event(9, kind="act", detail='{"what": "removal"}')]
    events(tmp_path, event(0), *rows, event(10, kind="act", **there))
    tables = load(tmp_path)
    assert tables.seeks == (Seek(3, A, -1, 6), Seek(3, A, 4, 7))
    assert tables.acts == (DeclaredAction("removal", -1, 9), DeclaredAction("act", 3, 10))
    assert tables.stalls == (Window(1, 2),)
    assert tables.origin_ns == 6  # of the first event with a time
    write(tmp_path / "history" / "clock.json", json.dumps({"pairs": [[2, 8], [3, 9]], **HERE}))
    assert load(tmp_path).origin_ns == 2


# Whether the history is whole.


def sealed(run: Path, *, said: dict[str, Any] | None = None) -> dict[str, Any]:
    """The smallest whole history, and what its seal says."""
    history = run / "history"
    parquet(history / "delivered" / f"{A}.parquet", DELIVERED_COLUMNS, [])
    for name in ("producer-0", "producer-0.unacked"):
        parquet(history / "produced" / f"{name}.parquet", PRODUCED_COLUMNS, [])
    parquet(history / "log" / "audit.parquet", LOG_COLUMNS, [])
    names = [p.relative_to(run).as_posix() for p in history.rglob("*.parquet")]
    seal = {"files": [], "fingerprints": {name: fingerprint(run, name) for name in names}, **(said or {})}
    keep(run, {**seal, "digest": digest(seal)})
    return seal


def keep(run: Path, seal: dict[str, Any]) -> None:
    write(run / integrity.SEAL, json.dumps({"format_version": FORMAT_VERSION, **seal}))


def damage(run: Path, known: tuple[Life, ...] = (), **more: Any) -> list[tuple[str, str, str]]:
    reader = Reader(run)
    reader.note("clock", "before", "it was noted before")
    options = {"events": [], "broken_off": "", "pairs": [(1, 1)], **more}
    integrity.check(reader, known={life.incarnation: life for life in known}, **options)
    found = [(d.part, d.file, d.what) for d in reader.damage]
    found.remove(("clock", "before", "it was noted before"))
    return found


def test_a_whole_history_has_no_damage(tmp_path: Path) -> None:
    sealed(tmp_path)
    assert damage(tmp_path, (Life(A, last_sign_ns=1), Life("member-1.1")), pairs=[(1, 5), (1, 4), (2, 3)]) == []


def test_that_the_run_was_broken_off_is_told_first_with_what_the_runner_said(tmp_path: Path) -> None:
    sealed(tmp_path)
    said = [("heal", "no broker"), ("drain", "other"), ("heal", None), ("heal", "no broker"), ("heal", "no time")]
    events = [{"kind": "phase", "detail": {"name": name, "reason": reason}} for name, reason in said]
    events += [{"kind": "fault", "detail": {"name": "heal", "reason": "no phase"}}, {"kind": "phase", "detail": {}}]
    reader = Reader(tmp_path)
    reader.note("clock", "before", "it was noted before")
    integrity.check(reader, events, {}, "heal", [(1, 1)])
    assert reader.damage == [
        Damage("run", "", "the run ended in phase heal, and what should have followed is not in its history"),
        Damage("phase", "", "no broker"),
        Damage("phase", "", "no time"),
        Damage("clock", "before", "it was noted before"),
    ]


def test_a_clock_whose_readings_are_not_in_order_went_back(tmp_path: Path) -> None:
    sealed(tmp_path)
    back = [("clock", "history/clock.json", "its readings are not in order: the clock went back")]
    assert damage(tmp_path, pairs=[(1, 1), (3, 2), (2, 3)]) == back
    assert damage(tmp_path, pairs=[]) == []


def test_record_files_that_cannot_be_read_are_damage_of_their_part(tmp_path: Path) -> None:
    files = {"delivered": f"{A}.parquet", "produced": "producer-0.parquet", "log": "audit.parquet"}
    sealed(tmp_path)
    for part, name in files.items():
        parquet(tmp_path / "history" / part / name, {"tp": "int32"}, [])
    lacks = {"delivered": "offset", "produced": "offset", "log": "offset"}
    assert damage(tmp_path) == [
        (part, f"history/{part}/{name}", f"it cannot be read: it lacks the column {lacks[part]}")
        for part, name in files.items()
    ]
    for part, name in files.items():
        (tmp_path / "history" / part / name).unlink()
    assert [d for d in damage(tmp_path) if d[2] == "it holds no Parquet file"] == [
        (part, f"history/{part}", "it holds no Parquet file") for part in ("delivered", "log")
    ]


def test_members_and_producers_that_ran_leave_files(tmp_path: Path) -> None:
    sealed(tmp_path)
    started = {"kind": "started", "actor": "producer-1", "detail": {"writer": 1}}
    events = [started, {**started, "actor": "b", "detail": {}}, {**started, "kind": "closed", "actor": "c"}]
    parquet(tmp_path / "history" / "produced" / "producer-2.unacked.parquet", PRODUCED_COLUMNS, [])
    missing = "it is missing, but this"
    assert damage(tmp_path, (Life("member-1.1", last_sign_ns=1), Life(A, last_sign_ns=1)), events=events) == [
        ("delivered", "history/delivered/member-1.1.parquet", f"{missing} member ran"),
        ("produced", "history/produced/producer-1.parquet", f"{missing} producer ran"),
        ("produced", "history/produced/producer-1.unacked.parquet", f"{missing} producer ran"),
        ("produced", "history/produced/producer-2.parquet", f"{missing} producer ran"),
        (
            *("produced", "history/produced/producer-2.unacked.parquet"),
            "it was not there when the history was sealed",
        ),
    ]


def test_what_the_seal_found_damaged_is_damage_of_the_part_that_the_file_became(tmp_path: Path) -> None:
    files = ["events/harness.jsonl", "segments/producer-0.1.seg", f"segments/{A}.1.seg", "segments/x.seg"]
    what = [["torn", "bent"], ["lost"], ["late"], []]
    entries = [{"file": name, "records": 1, "torn": 0, "damage": of} for name, of in zip(files, what, strict=True)]
    sealed(tmp_path, said={"files": entries})
    assert damage(tmp_path) == [
        ("events", "history/events/harness.jsonl", "torn"),
        ("events", "history/events/harness.jsonl", "bent"),
        ("produced", "history/segments/producer-0.1.seg", "lost"),
        ("delivered", f"history/segments/{A}.1.seg", "late"),
    ]


SEAL = integrity.SEAL


def unsealed(what: str) -> list[tuple[str, str, str]]:
    return [(part, SEAL, what) for part in ("events", "delivered", "produced")]


def test_without_a_seal_nobody_knows_what_is_damaged(tmp_path: Path) -> None:
    seal = sealed(tmp_path)
    (tmp_path / "history" / "produced" / "producer-0.unacked.parquet").unlink()  # which the seal says
    lost = ("produced", "history/produced/producer-0.unacked.parquet", "it is missing, but this producer ran")
    keep(tmp_path, {**seal, "digest": "x"})
    assert damage(tmp_path) == [lost, *unsealed("it is not as the seal wrote it")]
    keep(tmp_path, {**seal, "files": [{}], "digest": digest(seal)})
    assert [(part, file) for part, file, _ in damage(tmp_path)[1:]] == [
        ("events", SEAL),
        ("delivered", SEAL),
        ("produced", SEAL),
    ]
    (tmp_path / SEAL).unlink()
    assert damage(tmp_path) == [lost, *unsealed("it is missing")]


def test_what_is_not_as_it_was_when_it_was_sealed_is_damage(tmp_path: Path) -> None:
    seal = sealed(tmp_path)
    prints = seal["fingerprints"]
    gone = {"history/delivered/z.parquet": "1 x", "scenario.json": "1 x", "what.json": "1 x", SEAL: "1 x"}
    (changed,) = (name for name in prints if "audit" in name)
    kept = {**seal, "fingerprints": {**prints, **gone, changed: "2 x"}}
    keep(tmp_path, {**kept, "digest": digest(kept)})
    write(tmp_path / "plan.json", "{}")
    missing = "it is missing, and it was there when the history was sealed"
    assert damage(tmp_path) == [
        ("delivered", "history/delivered/z.parquet", missing),
        ("log", changed, "it is not as it was when the history was sealed"),
        ("run", SEAL, missing),
        ("plan", "plan.json", "it was not there when the history was sealed"),
        ("scenario", "scenario.json", missing),
        ("run", "what.json", missing),
    ]


def test_what_cannot_be_read_any_more_is_not_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(run: Path, name: str) -> str:
        raise OSError(run / name)

    seal = sealed(tmp_path)
    monkeypatch.setattr(integrity, "fingerprint", unreadable)
    changed = "it is not as it was when the history was sealed"
    assert [(file, what) for _, file, what in damage(tmp_path)] == [
        (name, changed) for name in sorted(seal["fingerprints"])
    ]
