"""What is planted into a history of correct members is found, and nothing else; without it there is nothing again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.checkers import Recovers
from fencepost.checkers.tables import load, load_records
from fencepost.checkers.tables.records import Delivered
from fencepost.history import RecordState
from fencepost.model import Anomaly
from history import retelling
from history.random_histories import tame
from history.retelling import Row, retold
from history.test_kernel_equals_oracle import STRICT, agreed

SEEDS = (400,)
Plant = Callable[[Delivered, str, list[Row]], list[Row]]


def victim(run: Path) -> Delivered:
    """A record of a poll, not its first, that was acknowledged, logged, delivered once, finished and committed."""
    records, tables = load_records(run), load(run)
    known = {(p.tp, p.offset) for p in records.produced} & {(r.tp, r.offset) for r in records.log}
    once = {place for place, times in Counter((r.tp, r.offset) for r in records.delivered).items() if times == 1}
    fit = (
        r for r in records.delivered if (r.tp, r.offset) in known & once and r.position and r.state == RecordState.DONE
    )
    return next(r for r in fit if r.offset < tables.final_committed(r.tp))


def _is(of: Delivered, row: Row) -> bool:
    return (row["tp"], row["offset"]) == (of.tp, of.offset)


def _gone_from(*folders: str) -> Plant:
    def plant(of: Delivered, name: str, rows: list[Row]) -> list[Row]:
        gone = any(f"/{folder}/" in name for folder in folders)
        return [row for row in rows if not (gone and _is(of, row))]

    return plant


def _told_as(**columns: int) -> Plant:
    def plant(of: Delivered, name: str, rows: list[Row]) -> list[Row]:
        mine = name.endswith(f"delivered/{of.incarnation}.parquet")
        return [{**row, **columns} if mine and _is(of, row) else row for row in rows]

    return plant


def _delivered(times: int, counted: int) -> Plant:
    """Delivered so often, and counted as so many deliveries."""

    def plant(of: Delivered, name: str, rows: list[Row]) -> list[Row]:
        if not name.endswith(f"delivered/{of.incarnation}.parquet"):
            return rows
        after = {row["ord"]: counted - 1 for row in rows if row["tp"] == of.tp and row["ord"] > of.ord}
        return [
            {**row, "ord": row["ord"] + n + (after.get(row["ord"], 0) if row["tp"] == of.tp else 0)}
            for row in rows
            for n in range(times if _is(of, row) else 1)
        ]

    return plant


def _at_last_committed(offset: int) -> Plant:
    def plant(of: Delivered, name: str, rows: list[Row]) -> list[Row]:
        if not name.endswith("offsets.jsonl"):
            return rows
        last = rows[-1]
        place = {"order": last["order"] + 1, "batch": last["order"] + 1, "at_ns": last["at_ns"] + 10**6}
        return [*rows, {**next(row for row in rows if row["type"] == "commit"), **place, "committed": offset}]

    return plant


def _given_up_again(of: Delivered, name: str, rows: list[Row]) -> list[Row]:
    callbacks = [row for row in rows if name.endswith("events.parquet") and row["kind"] == "revoked"]
    return [*rows, *({**row, "id": 10**6, "begin_ns": row["end_ns"], "end_ns": row["end_ns"]} for row in callbacks[:1])]


def _ended_by_itself(of: Delivered, name: str, rows: list[Row]) -> list[Row]:
    ends = [row for row in rows if name.endswith("events.parquet") and row["kind"] == "ended"]
    return [{**row, "detail": {**row["detail"], "how": "crashed"}} if row in ends[-1:] else row for row in rows]


PLANTS: dict[str, tuple[Plant, set[str]]] = {
    "lost after it was read": (_gone_from("log"), {"lost-write", "delivered-then-lost"}),
    "never sent": (_gone_from("log", "produced"), {"phantom"}),
    "another content": (_told_as(seq=10**6), {"phantom"}),
    "failed": (_told_as(state=RecordState.FAILED), {"unseen", "commit-ahead"}),
    "never ended": (_told_as(state=RecordState.BEGUN, done_ns=0), {"unseen", "commit-ahead"}),
    "left out": (_delivered(times=0, counted=0), {"unseen", "poll-skip", "commit-ahead"}),
    "told twice": (_delivered(times=2, counted=2), {"rewind"}),
    "a hole in the history": (_delivered(times=1, counted=2), {"history-incomplete"}),
    "committed beyond the end": (_at_last_committed(10**6), {"commit-beyond-end"}),
    "committed back": (_at_last_committed(0), {"commit-regression"}),
    "given up again": (_given_up_again, {"callback-imbalance"}),
    "ended by itself": (_ended_by_itself, {"dead-member"}),
}


def seen(run: Path) -> set[Anomaly]:
    """The anomalies, without those of recovery: these are about all records that waited or were done again, and so
    about a planted one as well."""
    return {anomaly for anomaly in agreed(run, STRICT)[0] if anomaly.kind not in Recovers.kinds}


@pytest.mark.parametrize("name", PLANTS)
def test_planted_into_a_correct_history(tmp_path: Path, name: str) -> None:
    plant, kinds = PLANTS[name]
    for seed in SEEDS:
        run = tame(tmp_path, seed)
        of, before = victim(run), seen(run)
        other = retold(run, tmp_path / f"{seed}", lambda file, rows, of=of: {file: plant(of, file, rows)})
        after = seen(other)
        assert {anomaly.kind for anomaly in after - before} == kinds
        assert not before - after
        assert seen(retold(run, tmp_path / f"{seed} again", retelling.same)) == before
