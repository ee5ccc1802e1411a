"""Reads a run folder for the reports. Missing or damaged parts are noted, never raised."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.clusters import names
from fencepost.errors import ScenarioError
from fencepost.evidence.brokers.broker_clocks import LeaderClocks
from fencepost.history.run_folder import listed, opened, strangers
from fencepost.model import Verdict
from fencepost.model.clock_readings import ClockReadings
from fencepost.reports.formatting import shown
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import plan_from_json

Column = NDArray[Any]
RATE_ROWS_MAX = 100_000_000
FACTS_MAX = 200_000


# What reading a file with any content may raise.
_DAMAGE: tuple[type[Exception], ...] = (OSError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError)
_DAMAGE += (RecursionError, pa.ArrowException)


class Fact(NamedTuple):
    """One row of ``events.parquet`` that is not a commit; times are monotonic nanoseconds."""

    kind: str
    actor: str
    id: int
    begin_ns: int
    end_ns: int
    topic: str
    partition: int
    generation: int
    outcome: str
    detail: Mapping[str, Any]


class CommitColumns(NamedTuple):
    """The commits as columns, one entry per partition of each commit; ``code`` is the index in ``names``."""

    names: list[str]
    code: Column
    begin_ns: Column
    ok: Column
    error: Column


@dataclass
class Folder:
    """The content of a run folder for the reports; ``missing`` has sentences about parts that could not be read."""

    path: Path
    missing: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    scenario: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)  # log end offset; -1: the log was not read
    facts: list[Fact] = field(default_factory=list)
    commits: CommitColumns | None = None
    stalls: list[Mapping[str, Any]] = field(default_factory=list)
    clocks: list[str] = field(default_factory=list)  # what is known of the brokers' clocks, if they were read
    origin_ns: int = 0

    @property
    def asked(self) -> Mapping[str, Any]:
        """The scenario itself, without the other fields of ``scenario.json``."""
        return mapping(self.scenario.get("scenario"))

    @property
    def name(self) -> str:
        """The scenario's name, or else that in the verdict, or else the name of the folder."""
        return str(self.asked.get("name") or (self.verdict.scenario if self.verdict else "") or self.path.name)

    @property
    def seed(self) -> int | None:
        """The seed of the run; None if no file has it."""
        seed = self.scenario.get("seed", self.verdict.seed if self.verdict else None)
        return seed if isinstance(seed, int) else None

    @property
    def place(self) -> str:
        """The path of the folder, as a user would type it."""
        return shown(self.path)

    @property
    def command(self) -> str:
        """The command that repeats the run, or a comment that states why there is none."""
        try:
            Scenario.from_json(self.asked).checked(plan_from_json(self.plan))
        except ScenarioError as error:
            why = "; ".join(map(str, error.each))
            return f"# only the test or script that started this run can repeat it, with the seed {self.seed}: {why}"
        backend = str(self.scenario.get("backend", ""))
        where = ["--cluster", backend] if names.is_foreign(backend) else []
        return shlex.join(["fencepost", "replay", self.place, *where])

    def rows(self, kind: str) -> int | None:
        """The number of rows in the Parquet files of ``history/<kind>``, by their footers; None without files."""
        files = self._parquet(kind)
        return sum(self._try(f, lambda f: pq.read_metadata(f).num_rows) or 0 for f in files) if files else None

    def rate(self, kind: str, column: str, edges: Column) -> Column | None:
        """The number of rows of ``history/<kind>`` between the ``edges``, by the time in ``column``; None: unknown."""
        rows = self.rows(kind)
        if not rows or rows > RATE_ROWS_MAX:
            return None
        counts = np.zeros(len(edges) - 1, dtype=np.int64)
        for path in self._parquet(kind):
            part = self._try(path, lambda f: _histogram(f, column, edges))
            counts += 0 if part is None else part
        return counts

    def took(self, kind: str, begin: str, end: str) -> tuple[float, int]:
        """Mean and maximum of ``end`` minus ``begin`` in ``history/<kind>``, over rows with both; 0 without any."""
        if (self.rows(kind) or 0) > RATE_ROWS_MAX:
            return 0.0, 0
        sums = [sum_ for path in self._parquet(kind) if (sum_ := self._try(path, lambda f: _sum(f, begin, end)))]
        count, most = sum(one[1] for one in sums), max((one[2] for one in sums), default=0)
        return sum(one[0] for one in sums) / max(1, count), most

    def _parquet(self, kind: str) -> list[Path]:
        return listed(self.path, f"history/{kind}/*.parquet")

    def _try(self, path: Path, read: Any) -> Any:
        """The result of ``read`` for the file; None, with a sentence in ``missing``, if it fails."""
        name = path.relative_to(self.path)
        try:
            with opened(self.path, path) as file:
                return read(file)
        except FileNotFoundError:
            sentence = f"{name} is missing."
        except _DAMAGE as error:
            sentence = f"{name} cannot be read: {error or type(error).__name__}"
        if sentence not in self.missing:
            self.missing.append(sentence)
        return None


def read(run: Path) -> Folder:
    """Read the small parts of a run folder; only ``rows``, ``rate`` and ``took`` read the tables of records."""
    folder = Folder(run, [f"{name} cannot be read: {why}" for name, why in strangers(run)])
    folder.verdict = folder._try(run / "verdict.json", lambda f: Verdict.from_json(_object(f)))
    folder.scenario = folder._try(run / "scenario.json", _object) or {}
    folder.plan = folder._try(run / "plan.json", _object) or {}
    events = folder._try(run / "history" / "events.parquet", pq.read_table)
    if events is not None:
        folder.facts = folder._try(run / "history" / "events.parquet", lambda _: _facts(events, folder.missing)) or []
        folder.commits = folder._try(run / "history" / "events.parquet", lambda _: _commits(events))
    history = run / "history"
    if os.path.lexists(history / "host.jsonl"):
        folder.stalls = folder._try(history / "host.jsonl", _stalls) or []
    folder.partitions = folder._try(history / "partitions.json", _partitions) or {}
    pairs = folder._try(history / "clock.json", lambda f: json.loads(f.read()))
    folder.origin_ns = _origin(pairs, folder.facts)
    if mapping(pairs).get("brokers"):
        folder.clocks = folder._try(history / "clock.json", lambda _: _clocks(pairs)) or []
    return folder


def mapping(value: Any) -> Mapping[str, Any]:
    """``value`` if it is a mapping, else an empty one: JSON of other versions may hold anything."""
    return value if isinstance(value, Mapping) else {}


def _object(file: BinaryIO) -> Mapping[str, Any]:
    value = json.loads(file.read())
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def _partitions(file: BinaryIO) -> dict[str, int]:
    there = (known for known in _object(file)["partitions"] if "renewed" not in known)
    ends = {f"{known['topic']}-{known['partition']}": known.get("log_end") for known in there}
    return {name: end if isinstance(end, int) else -1 for name, end in ends.items()}


def _stalls(file: BinaryIO) -> list[Mapping[str, Any]]:
    lines = [mapping(json.loads(line)) for line in file if line.strip()]
    return [
        s for s in lines if s.get("kind") == "stall" and all(isinstance(s.get(k), int) for k in ("from_ns", "to_ns"))
    ]


def _origin(pairs: Any, facts: list[Fact]) -> int:
    """The origin of all times in a report: the first clock pair, or else the first fact."""
    first = mapping(pairs).get("pairs")
    while isinstance(first, list) and first:
        first = first[0]
    return first if isinstance(first, int) and first else min((f.begin_ns for f in facts if f.begin_ns), default=0)


def _clocks(clock: Mapping[str, Any]) -> list[str]:
    return [*LeaderClocks(ClockReadings.from_json(clock)).sentences(clock["pairs"][-1]).values()]


def _facts(events: pa.Table, missing: list[str]) -> list[Fact]:
    rare = events.filter(pc.not_equal(events["kind"], "commit")).sort_by("begin_ns")
    if rare.num_rows > FACTS_MAX:
        missing.append(
            f"The timeline shows only the first {FACTS_MAX:,} of {rare.num_rows:,} events; the checks judged all."
        )
        rare = rare.slice(0, FACTS_MAX)
    return [
        Fact(
            kind=row["kind"] or "",
            actor=row["actor"] or "",
            id=row["id"] or 0,
            begin_ns=row["begin_ns"] or 0,
            end_ns=row["end_ns"] or 0,
            topic=row["topic"] or "",
            partition=-1 if row["partition"] is None else row["partition"],
            generation=-1 if row["generation"] is None else row["generation"],
            outcome=row["outcome"] or "",
            detail=mapping(json.loads(row["detail"])) if row["detail"] else {},
        )
        for row in rare.to_pylist()
    ]


def _commits(events: pa.Table) -> CommitColumns:
    rows = events.filter(pc.and_kleene(pc.equal(events["kind"], "commit"), pc.is_valid(events["topic"])))
    names = pc.binary_join_element_wise(rows["topic"], pc.cast(rows["partition"], pa.string()), "-")
    encoded = names.combine_chunks().dictionary_encode()
    return CommitColumns(
        names=encoded.dictionary.to_pylist(),
        code=encoded.indices.to_numpy(zero_copy_only=False),
        begin_ns=rows["begin_ns"].to_numpy(),
        ok=pc.fill_null(pc.equal(rows["outcome"], "ok"), False).to_numpy(),
        error=pc.fill_null(pc.coalesce(rows["error"], rows["outcome"]), "unknown").to_numpy(zero_copy_only=False),
    )


def _sum(file: BinaryIO, begin: str, end: str) -> tuple[int, int, int]:
    total = count = most = 0
    for begun, ended in _row_groups(file, begin, end):
        took = (ended - begun)[(begun > 0) & (ended > 0)]
        total, count, most = total + int(took.sum()), count + len(took), max(most, int(took.max(initial=0)))
    return total, count, most


def _histogram(file: BinaryIO, column: str, edges: Column) -> Column:
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for (values,) in _row_groups(file, column):
        counts += np.histogram(values, edges)[0]
    return counts


def _row_groups(file: BinaryIO, *columns: str) -> Iterator[list[Column]]:
    """The named columns, one row group at a time."""
    parquet = pq.ParquetFile(file)
    for group in range(parquet.num_row_groups):
        table = parquet.read_row_group(group, columns=list(columns))
        yield [table[name].to_numpy() for name in columns]
