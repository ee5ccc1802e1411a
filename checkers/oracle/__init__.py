"""The oracle: every finding in plain, slow Python. **This is the specification**; Spark must find the same anomalies.

``judge`` looks at each of ``rules`` in turn. A rule is a generator of sightings (see ``sightings.gather`` for how they
become anomalies); its docstring says exactly which record is a sighting, and its kind, cause, excuse, members, offset,
times and count. The rules are in eight modules: ``delivery`` (records against the log), ``effects`` (what
they leave behind), ``repeats`` (a record again), ``order`` and ``ownership`` (who, when), ``commits``, ``writes`` (how
sends landed), and ``progress``.

Words used in the rules:

* a *row* is one delivered record of one incarnation; it is *begun* when ``begin_ns`` > 0, *finished* when its state is
  done or parked; rows of one (incarnation, tp) are in the order of ``ord``;
* the *interval* of a row is the assignment interval that it names; -1, or one without an assigned event, is none;
* the *domain* of a partition: its visible offsets from where the group starts to before its final committed offset.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fencepost.checkers import coordination
from fencepost.checkers.facts import Bounds, Facts
from fencepost.checkers.sightings import Sighting, gather, performed
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.records import Delivered, Logged, Produced, Records, load_records
from fencepost.checkers.tables.rows import Interval
from fencepost.history import Sent, State
from fencepost.model import Anomaly

FINISHED = (State.DONE, State.PARKED)


@dataclass(frozen=True)
class History:
    """Tables and records of one run, with the lookups that the rules share."""

    tables: Tables
    records: Records
    bounds: Bounds

    @cached_property
    def rows(self) -> Mapping[int, list[Delivered]]:
        """Rows by partition, in the order of (incarnation, ord)."""
        found: dict[int, list[Delivered]] = defaultdict(list)
        for row in sorted(self.records.delivered, key=lambda r: (r.incarnation, r.ord)):
            found[row.tp].append(row)
        return found

    @cached_property
    def of_offset(self) -> Mapping[tuple[int, int], list[Delivered]]:
        """Rows by (tp, offset), in the order of (delivered_ns, incarnation, ord)."""
        found: dict[tuple[int, int], list[Delivered]] = defaultdict(list)
        for row in sorted(self.records.delivered, key=lambda r: (r.delivered_ns, r.incarnation, r.ord)):
            found[row.tp, row.offset].append(row)
        return found

    @cached_property
    def streams(self) -> Mapping[tuple[str, int, int], list[Delivered]]:
        """Rows by (incarnation, tp, interval number), in the order of ``ord``; others are left out."""
        found: dict[tuple[str, int, int], list[Delivered]] = defaultdict(list)
        for rows in self.rows.values():
            for row in rows:
                if row.interval >= 0:
                    found[row.incarnation, row.tp, row.interval].append(row)
        return found

    @cached_property
    def log(self) -> Mapping[int, dict[int, Logged]]:
        """The visible records of each partition by offset, ascending; every known partition is there."""
        found: dict[int, dict[int, Logged]] = {tp: {} for tp in self.tables.partitions}
        for record in sorted(self.records.log, key=lambda r: (r.tp, r.offset)):
            found.setdefault(record.tp, {})[record.offset] = record
        return found

    def visible(self, tp: int) -> list[int]:
        """The visible offsets of a partition, ascending."""
        return list(self.log.get(tp, {}))

    def record(self, tp: int, offset: int) -> Logged | None:
        """The visible record at an offset."""
        return self.log.get(tp, {}).get(offset)

    @cached_property
    def acknowledged(self) -> Mapping[tuple[int, int], Produced]:
        """Acknowledged sends by (tp, offset)."""
        return {(p.tp, p.offset): p for p in self.records.produced if p.outcome == Sent.OK}

    def is_finished(self, row: Delivered) -> bool:
        """Whether a row was processed to the end."""
        return row.state in FINISHED

    def finished(self, tp: int, offset: int) -> list[Delivered]:
        """The finished rows of one offset, in the order of their deliveries."""
        return [row for row in self.of_offset.get((tp, offset), ()) if self.is_finished(row)]

    def interval(self, row: Delivered) -> Interval | None:
        """The assignment interval that a row was delivered in."""
        return self.tables.interval.get((row.incarnation, row.tp, row.interval))

    def start(self, tp: int) -> int:
        """Where the group starts: the log's start, or its first delivered offset if its reset policy is ``latest``."""
        if self.tables.resets_to_end:
            return min((row.offset for row in self.rows.get(tp, ())), default=sys.maxsize)
        return self.tables.log_start(tp)

    def domain(self, tp: int) -> range:
        """The offsets that the group answers for: from its start to before its final committed offset."""
        return range(self.start(tp), max(self.start(tp), self.tables.final_committed(tp)))

    def declared(self, tp: int, by_ns: int) -> str:
        """The excuse by a declared act on the partition that began before ``by_ns``; empty when there is none."""
        return self.tables.declared(tp, by_ns)


Rule = Callable[[History], Iterable[Sighting]]


def rules() -> dict[Rule, tuple[str, ...]]:
    """Every rule with the kinds that it can report."""
    from fencepost.checkers.oracle import commits, delivery, effects, order, ownership, progress, repeats, writes

    return {
        **delivery.RULES,
        **effects.RULES,
        **repeats.RULES,
        **order.RULES,
        **ownership.RULES,
        **commits.RULES,
        **writes.RULES,
        **progress.RULES,
    }


def judge(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], Facts]:
    """The oracle as a finder of ``fencepost.checkers.judge``."""
    history = History(tables, load_records(run), bounds)
    found, failed = performed(rules(), history)
    also, also_failed = performed(coordination.RULES, tables)
    return gather([*found, *also], tables.partitions), facts(history, {**failed, **also_failed})


def facts(history: History, failed: Mapping[str, str]) -> Facts:
    """How much there was to judge."""
    rows = history.records.delivered
    return Facts(
        acknowledged=sum(p.outcome == Sent.OK for p in history.records.produced),
        visible=len(history.records.log),
        judged=sum(sum(map(history.domain(tp).__contains__, log)) for tp, log in history.log.items()),
        delivered=len(rows),
        begun=sum(row.begin_ns > 0 for row in rows),
        finished=sum(row.state in FINISHED for row in rows),
        first_ns=min((row.delivered_ns for row in rows), default=0),
        last_ns=max((row.done_ns for row in rows), default=0),
        failed=failed,
        damage=history.records.damage,
    )
