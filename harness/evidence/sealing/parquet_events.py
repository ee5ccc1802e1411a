"""Turns event lines into the rows of ``events.parquet``: one per event and partition; the last line of an id counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.history import EVENT_COLUMNS, FORMAT_VERSION
from fencepost.history.atomic import replacing
from fencepost_member.recording.events import read

Row = dict[str, Any]

_SCHEMA = pa.schema(
    [(name, getattr(pa, kind)()) for name, kind in EVENT_COLUMNS.items()],
    metadata={"format_version": str(FORMAT_VERSION)},
)


def read_rows(path: Path) -> tuple[list[Row], int, int, list[str]]:
    """One actor's file: its rows, the number of its events, the number of torn last lines (0 or 1), and sentences about
    damage."""
    try:
        events, damage, next_at = read(path)
        torn = int(path.stat().st_size > next_at)
    except OSError as error:
        return [], 0, 0, [f"it cannot be read: {error.strerror}"]
    latest: dict[int, list[Row]] = {}
    for event in events:
        try:
            rows = list(_explode(event))
        except (TypeError, ValueError, RecursionError) as error:
            damage.append(f"event {ascii(event['id'])[:40]} cannot be read: {printable(str(error))[:200]}")
            continue
        if (rows[0]["actor"] == path.stem) != (rows[0]["id"] > 0):
            damage.append(f"event {rows[0]['id']} is about {rows[0]['actor'][:120]!a}, which its id does not allow")
        latest[rows[0]["id"]] = rows
    return [row for rows in latest.values() for row in rows], len(latest), torn, damage


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write ``events.parquet``, sorted by start time."""
    ordered = sorted(rows, key=lambda row: (row["begin_ns"], row["actor"], row["id"]))
    with replacing(path) as draft:
        table = pa.table({name: [row[name] for row in ordered] for name in EVENT_COLUMNS}, schema=_SCHEMA)
        pq.write_table(table, draft, compression="zstd", compression_level=1, write_page_checksum=True)


def _explode(event: Mapping[str, Any]) -> Iterator[Row]:
    generation = event["generation"]
    if not isinstance(event["detail"], dict) or not isinstance(event["partitions"], list):
        raise ValueError("its detail is not an object, or its partitions are not a list")
    row = {
        "kind": _text(event["kind"]),
        "actor": _text(event["actor"]),
        **{name: _int(event[name]) for name in ("id", "begin_ns", "end_ns")},
        **dict.fromkeys(("topic", "partition", "offset")),
        "generation": -1 if generation is None else _int(generation),
        **{name: None if event[name] is None else _text(event[name]) for name in ("member_id", "outcome", "error")},
        "detail": json.dumps(event["detail"], separators=(",", ":"), allow_nan=False),
    }
    for topic, partition, offset in event["partitions"]:
        place = {"topic": _text(topic), "partition": _int(partition, bits=32)}
        yield {**row, **place, "offset": None if offset is None else _int(offset)}
    if not event["partitions"]:
        yield row


def _int(value: Any, bits: int = 64) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"{ascii(value)[:60]} is not an integer of {bits} bits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{ascii(value)[:60]} is not text")
    return printable(value)


def printable(text: str) -> str:
    """``text`` with lone surrogates escaped: JSON and file names can contain them, but UTF-8 cannot."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
