"""What the judge's rivals have in common: which findings they look for, and the small tables that they are given.

A rival answers with ``Answer``: how many of each kind there are, counted as the judge counts them. The small tables are
read by the judge's own loader; the records are read by each engine itself, from the same files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from fencepost.checkers.kernel.ranges import UNACKED
from fencepost.checkers.tables import load

Answer = dict[str, int]
REPEATED = "finished again"  # the judge tells three kinds of it apart
KINDS = {
    **{kind: kind for kind in ("lost-write", "phantom", "delivered-then-lost", "unseen", "rewind", "poll-skip")},
    **dict.fromkeys(("redelivery", "avoidable-redelivery", "redelivery-below-commit"), REPEATED),
    **{kind: kind for kind in ("assignment-overlap", "commit-regression")},
}


@dataclass(frozen=True)
class Run:
    """One run for an engine that reads Parquet.

    Attributes:
        delivered, produced, log: the files; acknowledged sends are in ``produced``, all others in ``unacked``.
        domain: tp, log_start, and the group's records of the partition, from ``start`` to before ``stop``.
        owned: n (in the order of begins), begin_ns, end_ns, tp, who: when an incarnation certainly owned a partition.
        accepted: n (in the order of the coordinator's log), tp, offset.
    """

    delivered: tuple[str, ...]
    produced: tuple[str, ...]
    unacked: tuple[str, ...]
    log: tuple[str, ...]
    domain: pa.Table
    owned: pa.Table
    accepted: pa.Table

    @classmethod
    def read(cls, run: Path) -> Run:
        """The files' names, and the small tables."""
        tables, history = load(run), run / "history"
        stops = {tp: max(p.log_start, tables.final_committed(tp)) for tp, p in tables.partitions.items()}
        certain = sorted((*i.certain, i.tp, i.incarnation) for i in tables.intervals if i.certain.length_ns > 0)
        domain = [(tp, p.log_start, p.log_start, stops[tp]) for tp, p in tables.partitions.items()]
        sends = _names(history / "produced")
        return cls(
            _names(history / "delivered"),
            tuple(name for name in sends if not name.endswith(UNACKED)),
            tuple(name for name in sends if name.endswith(UNACKED)),
            _names(history / "log"),
            _table("tp log_start start stop", domain),
            _table("n begin_ns end_ns tp who", ((n, *row) for n, row in enumerate(certain))),
            _table("n tp offset", ((n, a.tp, a.offset) for n, a in enumerate(tables.accepted))),
        )


def answer(counts: Iterable[tuple[str, int]]) -> Answer:
    """Counts by kind, without those of which there is none, in a fixed order."""
    total: Counter[str] = Counter()
    for kind, count in counts:
        total[KINDS.get(kind, kind)] += int(count or 0)
    wanted = sorted(set(KINDS.values()))
    return {kind: total[kind] for kind in wanted if total[kind]}


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(str(path) for path in sorted(folder.glob("*.parquet")))


def _table(names: str, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names.split())
    types = {"who": pa.string()}
    return pa.table({n: pa.array(c, types.get(n, pa.int64())) for n, c in zip(names.split(), columns, strict=True)})
