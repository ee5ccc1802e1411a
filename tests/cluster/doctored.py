"""What no client and no administrator can bring about: a real run's evidence, of which an entry or two were changed.

Each function takes the folder of a run whose members were correct, and in which partitions moved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.checkers.tables import load
from fencepost.checkers.tables.answers import answers
from fencepost.checkers.tables.requests import Request
from fencepost.evidence.sealing import parquet_records
from fencepost.history import DELIVERED_COLUMNS

Line = dict[str, Any]


def partition_of_two(run: Path) -> None:
    """One record of the coordinator gives to a member what the next one (or itself) gives to another, too.

    That one had it not before: so it is the last to be given it, and its commits are those of the owner.
    """
    lines, had = _coordinator(run), dict[str, Any]()
    for (line, who, one), (next_line, by, other) in pairwise(_given(lines)):
        had[who] = one
        new = [(topic, p) for topic, ps in other.items() for p in ps if p not in had.get(by, {}).get(topic, ())]
        if new and who != by and (line is next_line or line["type"] == "current"):
            topic, partition = new[0]
            one[topic] = [*one.get(topic, ()), partition]
            break
    _write(run, lines)


def _given(lines: list[Line]) -> Iterator[tuple[Line, str, dict[str, Any]]]:
    """What each record gives to each member that it gives something to."""
    for line in lines:
        reported = (
            [line | {"assignment": line.get("assigned")}] if line["type"] == "current" else line.get("members") or ()
        )
        for member in reported if line["type"] in ("current", "classic-group") else ():
            if member["assignment"]:
                yield line, member["member_id"], member["assignment"]


def generation_that_goes_back(run: Path) -> None:
    """Right after the last generation (or epoch) of which members were part comes one with a lower number."""
    lines = _coordinator(run)
    numbered = [
        (line, name)
        for line in lines
        for name in ("generation", "epoch")
        if line["type"] in ("classic-group", "group-epoch") and line.get(name) and line.get("members", True)
    ]
    line, name = numbered[-1]
    after = lines.index(line) + 1
    _write(run, [*lines[:after], {**line, name: 0}, *lines[after:]])


def instance_of_two(run: Path) -> None:
    """Two members introduce themselves by one static id."""
    path = run / "history" / "events.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    started = [row for row in rows if row["kind"] == "started" and "instance_id" in row["detail"]]
    for row in sorted(started, key=lambda row: str(row["actor"]))[-2:]:  # the first member is the one that is bounced
        row["detail"] = json.dumps({**json.loads(row["detail"]), "instance_id": "one"})
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def delivery_that_is_missing(run: Path) -> None:
    """One row in the middle of a member's deliveries is not there."""
    path = next((run / "history" / "delivered").glob("*.parquet"))
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(n).to_pydict() for n in range(file.num_row_groups)]
    for values in groups[0].values():
        del values[len(values) // 2]
    parquet_records.write(path, DELIVERED_COLUMNS, groups)


def deliveries_that_nobody_records(run: Path) -> None:
    """The members are a user's program, and of the last assignment of a partition to one of them no delivery is there.
    Before it ended that was committed."""
    path = run / "scenario.json"
    reported = json.loads(path.read_text())
    reported["scenario"]["workload"] = {"type": "own_program", "processed": "next-poll"}
    path.write_text(json.dumps(reported))
    path = next((run / "history" / "delivered").glob("*.parquet"))
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(n).to_pydict() for n in range(file.num_row_groups)]
    tp = groups[0]["tp"][0]
    interval = max(one for group in groups if group["tp"][0] == tp for one in group["interval"])
    for group in groups:
        kept = [n for n, one in enumerate(group["interval"]) if (group["tp"][n], one) != (tp, interval)]
        group.update({name: [values[n] for n in kept] for name, values in group.items()})
    parquet_records.write(path, DELIVERED_COLUMNS, [group for group in groups if group["tp"]])


def answer_that_is_older(run: Path) -> None:
    """A member that took a partition over is told the committed offset before the last one, and begins there."""
    tables = load(run)
    for taker in sorted((run / "history" / "delivered").glob("*.parquet")):
        groups = [
            pq.ParquetFile(taker).read_row_group(n).to_pylist() for n in range(pq.ParquetFile(taker).num_row_groups)
        ]
        for rows in groups:
            for first in (row for row in rows if row["position"] == 0):
                interval = tables.interval.get((taker.stem, first["tp"], first["interval"]))
                reported = answers(tables, interval, first["delivered_ns"]) if interval else []
                older = [a.offset for a in tables.accepted_of[first["tp"]] if a.offset < first["offset"]]
                if first["ord"] or not older or [answer.offset for answer in reported] != [first["offset"]]:
                    continue
                _tell(run, reported[0], older[-1])
                again = _done_before(run, first["tp"], range(older[-1], first["offset"]))
                own = ("interval", "poll", "delivered_ns")
                same = dict.fromkeys(("begin_ns", "done_ns"), first["delivered_ns"]) | {
                    name: first[name] for name in own
                }
                rows[:0] = [{**row, **same, "ord": -len(again) + n} for n, row in enumerate(again)]
                for of in groups:
                    for row in of:
                        row["ord"] += len(again) * (row["tp"] == first["tp"])
                names = DELIVERED_COLUMNS
                parquet_records.write(
                    taker, names, ({name: [row[name] for row in of] for name in names} for of in groups)
                )
                return
    raise AssertionError("no member took a partition over of which another one had committed anything twice")


def _done_before(run: Path, tp: int, offsets: range) -> list[Line]:
    files = (pq.read_table(path).to_pylist() for path in (run / "history" / "delivered").glob("*.parquet"))
    found = {row["offset"]: row for rows in files for row in rows if row["tp"] == tp and row["offset"] in offsets}
    return [found[offset] for offset in sorted(found)]


def _tell(run: Path, answer: Request, offset: int) -> None:
    """The line of the broker's log that holds this answer holds another one."""
    path = run / "history" / "coordinator" / "requests.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    name = load(run).partitions[answer.tp].name
    for line in lines:
        if line["api"] == "OFFSET_FETCH" and line["start_ns"] == answer.begin_ns:
            for place in line["offsets"] or ():
                place[2] = offset if tuple(place[:2]) == name else place[2]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _coordinator(run: Path) -> list[Line]:
    return [json.loads(line) for line in _log(run).read_text().splitlines()]


def _write(run: Path, lines: list[Line]) -> None:
    _log(run).write_text("".join(json.dumps(line) + "\n" for line in lines))


def _log(run: Path) -> Path:
    return run / "history" / "coordinator" / "offsets.jsonl"


DOCTORED: Mapping[str, Callable[[Path], None]] = {
    "coordinator-overlap": partition_of_two,
    "generation-regression": generation_that_goes_back,
    "duplicate-instance": instance_of_two,
    "stale-offset-answer": answer_that_is_older,
    "history-incomplete": delivery_that_is_missing,
    "unrecorded-delivery": deliveries_that_nobody_records,
}
