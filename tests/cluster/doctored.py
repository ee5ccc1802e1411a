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

from fencepost.evidence import columns
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
        told = [line | {"assignment": line.get("assigned")}] if line["type"] == "current" else line.get("members") or ()
        for member in told if line["type"] in ("current", "classic-group") else ():
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
    columns.write(path, DELIVERED_COLUMNS, groups)


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
    "history-incomplete": delivery_that_is_missing,
}
