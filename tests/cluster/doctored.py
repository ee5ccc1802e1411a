"""What no client and no administrator can bring about: a real run's evidence, of which an entry or two were changed.

Each function takes the folder of a run whose members were correct, and in which partitions moved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.evidence import columns
from fencepost.history import DELIVERED_COLUMNS

Line = dict[str, Any]


def partition_of_two(run: Path) -> None:
    """One record of the coordinator gives to a member what the next one (or itself) gives to another, too."""
    lines = _coordinator(run)
    if any(line["type"] == "current" for line in lines):
        given = [line for line in lines if line["type"] == "current" and line.get("assigned")]
        one, other = next(
            (a["assigned"], b["assigned"]) for a, b in pairwise(given) if a["member_id"] != b["member_id"]
        )
    else:
        full = [line["members"] for line in lines if line["type"] == "classic-group" and len(line["members"] or ()) > 1]
        one, other = next((m[0]["assignment"], m[1]["assignment"]) for m in full if all(x["assignment"] for x in m))
    topic, partitions = next(iter(other.items()))
    one[topic] = [*one.get(topic, ()), partitions[0]]
    _write(run, lines)


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
# What may follow: who has the partition that was given to another one, too, commits it as a zombie does.
MAY_FOLLOW: Mapping[str, frozenset[str]] = {"coordinator-overlap": frozenset({"stale-backlog", "zombie-commit"})}
