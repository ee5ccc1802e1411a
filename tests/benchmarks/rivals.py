"""What the judge's rivals have in common: which findings they look for, and the small tables that they are given.

A rival answers with ``Answer``: how many of each kind there are, counted as the judge counts them. The small tables are
read by the judge's own loader; the records are read by each engine itself, from the same files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from fencepost.checkers.kernel.partitioning import UNACKED
from fencepost.checkers.tables import Tables, load
from fencepost.checkers.tables.rows import FOREVER

Answer = dict[str, int]
REPEATED = "finished again"  # the judge tells three kinds of it apart
KINDS = {
    kind: kind
    for kind in (
        *(
            "lost-write",
            "phantom",
            "delivered-then-lost",
            "aborted-read",
            "inconsistent-offsets",
            "unseen",
            "unconsumed",
        ),
        *("duplicate-write", "nonmonotonic-send", "rewind", "poll-skip", "history-incomplete", "key-order"),
        *(
            "delivery-outside-assignment",
            "processing-overlap",
            "processing-after-revocation",
            "work-after-reassignment",
        ),
        *("commit-ahead", "commit-regression", "assignment-overlap"),
    )
} | dict.fromkeys(("redelivery", "avoidable-redelivery", "redelivery-below-commit"), REPEATED)


@dataclass(frozen=True)
class Run:
    """One run for an engine that reads Parquet.

    Attributes:
        delivered, produced, log: the files; acknowledged sends are in ``produced``, all others in ``unacked``.
        domain: tp, log_start, the group's records of the partition, from ``start`` to before ``stop``, and from which
            offset on what nobody finished is left over.
        owned: n (in the order of begins), begin_ns, end_ns, tp, who: when an incarnation certainly owned a partition.
        accepted: n (in the order of the coordinator's log), tp, offset.
        intervals: tp, who, interval, begin_ns, end_ns: when an incarnation possibly owned a partition; late_ns: when
            it had certainly been told that it does no more.
        given: tp, who, begin_ns, end_ns: when a partition certainly was an incarnation's, for the coordinator (the end
            excluded).
        free: who, begin_ns, end_ns: when an incarnation was not proven to stand still.
        tables: what all of these are from, for ``passes``.
    """

    delivered: tuple[str, ...]
    produced: tuple[str, ...]
    unacked: tuple[str, ...]
    log: tuple[str, ...]
    domain: pa.Table
    owned: pa.Table
    accepted: pa.Table
    intervals: pa.Table
    given: pa.Table
    free: pa.Table
    tables: Tables

    @classmethod
    def read(cls, run: Path) -> Run:
        """The files' names, and the small tables."""
        tables, history = load(run), run / "history"
        stops = {tp: max(p.log_start, tables.final_committed(tp)) for tp, p in tables.partitions.items()}
        certain = sorted((*i.certain, i.tp, i.incarnation) for i in tables.intervals if i.certain.length_ns > 0)
        left = {tp: stop if tables.quiet.end_ns else FOREVER for tp, stop in stops.items()}
        domain = [(tp, p.log_start, p.log_start, stops[tp], left[tp]) for tp, p in tables.partitions.items()]
        sends = _names(history / "produced")
        return cls(
            _names(history / "delivered"),
            tuple(name for name in sends if not name.endswith(UNACKED)),
            tuple(name for name in sends if name.endswith(UNACKED)),
            _names(history / "log"),
            _table("tp log_start start stop left", domain),
            _table("n begin_ns end_ns tp who", ((n, *row) for n, row in enumerate(certain))),
            _table("n tp offset", ((n, a.tp, a.offset) for n, a in enumerate(tables.accepted))),
            _table("tp who interval begin_ns end_ns late_ns", _intervals(tables)),
            _table("tp who begin_ns end_ns", _given(tables)),
            _table("who begin_ns end_ns", _free(tables, [path.stem for path in (history / "delivered").iterdir()])),
            tables,
        )

    def passes(self, firsts: Iterable[tuple[int, str, int, int, int]]) -> pa.Table:
        """What each commit says is done: n, tp, the offsets from ``low`` to before ``high``, begin_ns of the commit.

        Args:
            firsts: tp, incarnation, interval, offset and time of the first delivery of each interval.
        """
        return _table("n tp low high begin_ns", ((n, *one) for n, one in enumerate(self._passes(firsts))))

    def _passes(self, firsts: Iterable[tuple[int, str, int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
        for tp, who, number, first, at_ns in firsts:
            interval = self.tables.interval.get((who, tp, number))
            if interval is None:
                continue
            reached = max(first, *self.tables.committed_between(tp, interval.assigned_begin_ns, at_ns))
            for commit in self.tables.commits_in(interval):
                if commit.outcome != "fail" and commit.offset > reached:
                    yield tp, reached, commit.offset, commit.begin_ns
                    reached = commit.offset


def answer(counts: Iterable[tuple[str, int]]) -> Answer:
    """Counts by kind, without those of which there is none, in a fixed order."""
    total: Counter[str] = Counter()
    for kind, count in counts:
        total[KINDS.get(kind, kind)] += int(count or 0)
    wanted = sorted(set(KINDS.values()))
    return {kind: total[kind] for kind in wanted if total[kind]}


def _intervals(tables: Tables) -> Iterator[tuple[int, str, int, int, int, int]]:
    for one in tables.intervals:
        late_ns = one.given_up_end_ns if one.how in ("revoked", "lost") else FOREVER
        yield one.tp, one.incarnation, one.number, *one.possible, late_ns


def _given(tables: Tables) -> Iterator[tuple[int, str, int, int]]:
    """From when a record was certainly written to when the next one possibly was."""
    for tp, rows in tables.given_of.items():
        begins = [one.at_ns - one.uncertainty_ns for one in rows] + [FOREVER]
        for one, end_ns in zip(rows, begins[1:], strict=True):
            if one.incarnation:
                yield tp, one.incarnation, one.at_ns + one.uncertainty_ns, end_ns


def _free(tables: Tables, names: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """The times between the pauses of each incarnation."""
    for name in names:
        at_ns = 0
        for pause in sorted(tables.lives[name].paused) if name in tables.lives else ():
            if at_ns < pause.begin_ns:
                yield name, at_ns, pause.begin_ns
            at_ns = max(at_ns, pause.end_ns)
        yield name, at_ns, FOREVER


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(str(path) for path in sorted(folder.glob("*.parquet")))


def _table(names: str, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names.split())
    types = {"who": pa.string()}
    return pa.table({n: pa.array(c, types.get(n, pa.int64())) for n, c in zip(names.split(), columns, strict=True)})
