"""The same run told in another way: every file of a sealed run folder as rows, changed, and written to another folder.

A ``Change`` takes the name of a file (below the run folder) and its rows, and gives both as they are then, perhaps as
several files. JSON is one row; JSON lines and Parquet are many. ::

    other = retold(run, tmp_path / "other", later)
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from fencepost.evidence.sealing import parquet_events, parquet_records
from fencepost.history import DELIVERED_COLUMNS, FORMAT_VERSION, LOG_COLUMNS, PRODUCED_COLUMNS, RecordState, SendOutcome
from fencepost.history.run_folder import RunFolder, digest, fingerprint, judged_files
from fencepost_member.recording.segments import (
    ABORTED,
    COMMITTED,
    DELIVERED,
    FAILED,
    HEADER_BYTES,
    PARKED,
    PRODUCED,
    create,
)

Row = dict[str, Any]
Files = Mapping[str, list[Row]]
Change = Callable[[str, list[Row]], Files]
RECORDS = {"delivered": DELIVERED_COLUMNS, "produced": PRODUCED_COLUMNS, "log": LOG_COLUMNS}
FAR = 2**40
LATER_NS = 86_400 * 10**9
OFFSETS = ("offset", "again", "committed", "log_start", "log_end")
TIMES = re.compile(r"(?!uncertainty)\w+_ns")


def retold(run: Path, to: Path, change: Change) -> Path:
    """``run`` changed, as the folder ``to``, and sealed so. What actors wrote before the seal is left out."""
    for path in sorted(p for p in run.rglob("*") if p.is_file() and p.parent.name != "events"):
        for name, rows in change(str(path.relative_to(run)), _read(path)).items():
            _write(to / name, rows, _version(path))
    return sealed_again(to)


def rewrite(path: Path, change: Callable[[list[Row]], list[Row]]) -> None:
    """Change the rows of one file where it is."""
    _write(path, change(_read(path)), _version(path))


def sealed_again(run: Path) -> Path:
    """As if its files had been as they are now when it was sealed."""
    path = run / "history" / "seal.json"
    if path.exists():
        fingerprints = {name: fingerprint(run, name) for name in sorted(judged_files(run))}
        said = {"files": json.loads(path.read_text())["files"], "fingerprints": fingerprints}
        RunFolder(run).write_json("history/seal.json", {**said, "digest": digest(said)})
    return run


def same(name: str, rows: list[Row]) -> Files:
    """No change."""
    return {name: rows}


def is_records(name: str) -> bool:
    """Whether a file holds delivered, produced or logged records."""
    return name.endswith(".parquet") and Path(name).parent.name in RECORDS


def _read(path: Path) -> list[Row]:
    if path.suffix == ".parquet":
        rows: list[Row] = pq.read_table(path).to_pylist()
        return [{**row, "detail": json.loads(row["detail"])} for row in rows] if path.stem == "events" else rows
    text = path.read_text(encoding="utf-8")
    return [json.loads(text)] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


def _version(path: Path) -> int:
    """The format version of records, which says whether rows are as the rule of processing makes them."""
    if not is_records(str(path)):
        return FORMAT_VERSION
    return int(pq.read_schema(path).metadata[b"format_version"])


def _write(path: Path, rows: list[Row], version: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(*rows), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.stem == "events":
        parquet_events.write(path, [{**row, "detail": json.dumps(row["detail"])} for row in rows])
    else:
        names, parts = RECORDS[path.parent.name], (list(of) for _, of in groupby(rows, key=lambda row: row["tp"]))
        groups = ({n: np.array([row[n] for row in part]) for n in names} for part in parts)
        parquet_records.write(path, names, groups, version)


def each(value: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """A nested value with every leaf and name changed; ``change`` gets the name of the nearest field, too."""
    if isinstance(value, dict):
        return {change("", key): each(inner, change, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [each(inner, change, name) for inner in value]
    return change(name, value)


# Another order, other files.


def shuffled(seed: int) -> Change:
    """Lines and rows in any order where order means nothing: requests, stalls, records and partitions."""
    rng = random.Random(seed)

    def change(name: str, rows: list[Row]) -> Files:
        if is_records(name):
            parts = [_places(name, list(of)) for _, of in groupby(rows, key=lambda row: row["tp"])]
            rows = [row for part in rng.sample(parts, len(parts)) for at in rng.sample(part, len(part)) for row in at]
        elif name.endswith(("requests.jsonl", "host.jsonl")):
            rows = rng.sample(rows, len(rows))
        elif name.endswith("partitions.json"):
            rng.shuffle(rows[0]["partitions"])
        return {name: rows}

    return change


def _places(name: str, rows: list[Row]) -> list[list[Row]]:
    """What must stay together: rows of a damaged history of which several have one and the same number."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["ord" if "/delivered/" in name else "seq"], []).append(row)
    return list(found.values())


def scattered(name: str, rows: list[Row]) -> Files:
    """The log in several files, and each producer's records as if they were several producers' of one writer number."""
    if not is_records(name) or "/delivered/" in name:
        return {name: rows}
    stem, _, rest = name.partition(".")
    return {f"{stem}{n}.{rest}": rows[at::3] for at, n in enumerate(("", "-1", "-2"))}


def unsealed(name: str, rows: list[Row]) -> Files:
    """What the seal makes of segments is not there yet."""
    return {} if "/delivered/" in name or "/produced/" in name or name.endswith("seal.json") else {name: rows}


def as_recorded(name: str, rows: list[Row]) -> Files:
    """Processed is what was recorded as done, and nothing else: a seal would go by effects, or by the next poll."""
    if name == "scenario.json":
        asked = rows[0]["scenario"]
        workload = {key: value for key, value in asked["workload"].items() if key != "processed"}
        rows = [{**rows[0], "scenario": {**asked, "workload": workload}}]
    return {name: rows}


def record(run: Path, to: Path, capacity: int) -> None:
    """Write to ``to`` the records of ``run`` as their actors would have, in segments of ``capacity`` records."""
    # Whoever wrote an end of a record has ended it: one that is only begun and has an end was not done.
    ends: Mapping[int, int] = {RecordState.BEGUN: FAILED, RecordState.PARKED: PARKED, RecordState.FAILED: FAILED}
    outcomes: Mapping[int, int] = {SendOutcome.FAIL: FAILED, SendOutcome.ABORTED: ABORTED}
    for folder, layout, moment, code, bytes_ in (
        ("delivered", DELIVERED, "delivered_ns", "state", ends),
        ("produced", PRODUCED, "sent_ns", "outcome", outcomes),
    ):
        actors: dict[str, list[Row]] = {}
        for path in sorted((run / "history" / folder).glob("*.parquet")):
            actors.setdefault(path.stem.removesuffix(".unacked"), []).extend(_read(path))
        names, formats, offsets = zip(*layout.fields, strict=True)
        dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": layout.bytes})
        for actor, rows in actors.items():
            rows.sort(key=lambda row: row[moment])  # stable: as each partition has them
            for order in range(max(1, -(-len(rows) // capacity))):
                path = to / "history" / "segments" / f"{actor}.{order}.seg"
                path.parent.mkdir(parents=True, exist_ok=True)
                mapped = create(path, layout, actor, capacity, 0, order)
                part = rows[order * capacity : (order + 1) * capacity]
                records = np.frombuffer(mapped, dtype, len(part), HEADER_BYTES)
                for field in set(names) - {"thread", "outcome", "commit"}:
                    records[field] = [row[field] for row in part]
                records["outcome"] = [bytes_.get(row[code], 0) for row in part]
                records["commit"] = COMMITTED
                del records
                mapped.close()


# Other numbers and names.


def farther(name: str, rows: list[Row]) -> Files:
    """All offsets are greater by ``FAR``."""

    def move(field: str, value: Any) -> Any:
        return value + FAR if field in OFFSETS and isinstance(value, int) and value >= 0 else value

    changed = [each(row, move) for row in rows]
    for row in changed if name.endswith("requests.jsonl") else ():
        row["offsets"] = [[topic, n, move("offset", o), error] for topic, n, o, error in row.get("offsets") or ()]
    return {name: changed}


def later(name: str, rows: list[Row]) -> Files:
    """All monotonic times are later by ``LATER_NS``."""

    def move(field: str, value: Any) -> Any:
        return value + LATER_NS if TIMES.fullmatch(field) and isinstance(value, int) and value else value

    if name.endswith("clock.json"):
        return {name: [{**row, "pairs": [[ns + LATER_NS, wall] for ns, wall in row["pairs"]]} for row in rows]}
    return {name: [each(row, move) for row in rows]}


class Renamed:
    """Members, slots, topics, partitions, their numbers and writers are called otherwise; their order stays."""

    def __init__(self) -> None:
        self.member, self.slot, self.partition, self.tp, self.writer = 40, 7, 100, 1_000, 40

    def text(self, value: str) -> str:
        """A text with the names in it renamed."""
        value = re.sub(r"\borders\b", "refunds", value)
        return re.sub(r"\b(member|producer)-(\d+)", lambda m: f"{m[1]}-{int(m[2]) + self.member}", value)

    def leaf(self, field: str, value: Any) -> Any:
        """A value of a field."""
        if isinstance(value, str):
            return self.text(value)
        known = {"member", "slot", "partition", "tp", "writer"} | ({"orders"} if field == "orders" else set())
        if field not in known or not isinstance(value, int) or value < 0:
            return value
        return value + getattr(self, "partition" if field == "orders" else field)

    def __call__(self, name: str, rows: list[Row]) -> Files:
        """The change."""
        if name == "scenario.json":
            return {name: rows}
        changed = [each(row, self.leaf) for row in rows]
        for row in changed if name.endswith("requests.jsonl") else ():
            row["offsets"] = [[topic, n + self.partition, *rest] for topic, n, *rest in row.get("offsets") or ()]
        return {self.text(name): changed}
