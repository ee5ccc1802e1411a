"""The history of one run for the oracle's rules: tables, records, and the lookups that several rules share."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fencepost.checkers.counts import Bounds
from fencepost.checkers.detections import Detection
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.passed import PassedRange, passed
from fencepost.checkers.tables.records import Delivered, Logged, Produced, Records
from fencepost.checkers.tables.retention import NO_KEY, same_key
from fencepost.checkers.tables.rows import Interval
from fencepost.history import RecordState, SendOutcome

FINISHED = (RecordState.DONE, RecordState.PARKED)


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
        """Rows by (incarnation, tp, interval number), in the order of ``ord``, without rows whose number is -1."""
        found: dict[tuple[str, int, int], list[Delivered]] = defaultdict(list)
        for rows in self.rows.values():
            for row in rows:
                if row.interval >= 0:
                    found[row.incarnation, row.tp, row.interval].append(row)
        return found

    @cached_property
    def log(self) -> Mapping[int, dict[int, Logged]]:
        """The visible records of each partition by offset, ascending; every known partition has an entry."""
        found: dict[int, dict[int, Logged]] = {tp: {} for tp in self.tables.partitions}
        for record in sorted(self.records.log, key=lambda r: (r.tp, r.offset)):
            found.setdefault(record.tp, {})[record.offset] = record
        return found

    def visible(self, tp: int) -> list[int]:
        """The visible offsets of a partition, ascending."""
        return list(self.log.get(tp, {}))

    def record(self, tp: int, offset: int) -> Logged | None:
        """The visible record at an offset; None: there is none."""
        return self.log.get(tp, {}).get(offset)

    @cached_property
    def acknowledged(self) -> Mapping[tuple[int, int], Produced]:
        """Acknowledged sends by (tp, offset)."""
        return {(p.tp, p.offset): p for p in self.records.produced if p.outcome == SendOutcome.OK}

    @cached_property
    def aborted(self) -> Mapping[tuple[int, int, int, int], bool]:
        """Whether one of the sends of a record was aborted with its transaction, by (tp, key, writer, seq).

        Only records that were sent have an entry.
        """
        sent: dict[tuple[int, int, int, int], bool] = {}
        for p in self.records.produced:
            record = (p.tp, p.key, p.writer, p.seq)
            sent[record] = sent.get(record, False) or p.outcome == SendOutcome.ABORTED
        return sent

    @cached_property
    def latest(self) -> Mapping[tuple[int, int], int]:
        """The highest known offset of each key in compacted partitions, by (tp, ``same_key``).

        A record counts if it is in the log, was acknowledged, or was delivered and not aborted.
        """
        acknowledged = (p for p in self.records.produced if p.outcome == SendOutcome.OK)
        delivered = (r for r in self.records.delivered if not self.aborted.get((r.tp, r.key, r.writer, r.seq)))
        found: dict[tuple[int, int], int] = {}
        rows: Iterable[Logged | Produced | Delivered] = (*self.records.log, *acknowledged, *delivered)
        for row in rows:
            if row.tp in self.tables.compacted:
                key = (row.tp, same_key(row.key, row.writer))
                found[key] = max(row.offset, found.get(key, -1))
        return found

    def replaced(self, row: Delivered | Produced) -> bool:
        """Whether compaction may have removed a record: no record is at its offset, and a later one has its key.

        A later record does not count if its send was never acknowledged, it was never delivered, and it is not in the
        log: if it had been written, compaction would have kept it.
        """
        if row.tp not in self.tables.compacted or self.record(row.tp, row.offset) is not None:
            return False
        key = same_key(row.key, row.writer)
        return key != NO_KEY and self.latest.get((row.tp, key), -1) > row.offset

    def is_finished(self, row: Delivered) -> bool:
        """Whether a row was processed to the end."""
        return row.state in FINISHED

    def finished(self, tp: int, offset: int) -> list[Delivered]:
        """The finished rows of one offset, in the order of their deliveries."""
        return [row for row in self.of_offset.get((tp, offset), ()) if self.is_finished(row)]

    def had_effect(self, tp: int, offset: int) -> bool:
        """Whether a record was processed by its effect, with or without a delivery; False under another rule."""
        return self.tables.by_effect and offset in self.tables.affected.get(tp, ())

    def unread(self, tp: int) -> Mapping[int, PassedRange]:
        """The records of a partition that were committed past by an assignment without any recorded delivery.

        By offset, with the first such assignment. Only visible records from the group's start on of which no member
        recorded a delivery.
        """
        return self._unread.get(tp, {})

    @cached_property
    def _unread(self) -> Mapping[int, Mapping[int, PassedRange]]:
        found: dict[int, dict[int, PassedRange]] = defaultdict(dict)
        for tp, log in self.log.items():
            for span in passed(self.tables, tp):
                recorded = (span.interval.incarnation, tp, span.interval.number) in self.streams
                for offset in () if recorded else (o for o in log if o in span.offsets and o >= self.start(tp)):
                    if (tp, offset) not in self.of_offset:
                        found[tp].setdefault(offset, span)
        return found

    def interval(self, row: Delivered) -> Interval | None:
        """The assignment interval in which a row was delivered; None: there is none."""
        return self.tables.interval.get((row.incarnation, row.tp, row.interval))

    def start(self, tp: int) -> int:
        """Where the group starts: the log's start. If its reset policy is ``latest``: the lowest offset that was
        delivered, or that was certainly the group's by the time at which it was sent (``starts_at_end``)."""
        if self.tables.resets_to_end:
            delivered = (row.offset for row in self.rows.get(tp, ()))
            return min((self.tables.first_written.get(tp, sys.maxsize), *delivered))
        return self.tables.log_start(tp)

    def domain(self, tp: int) -> range:
        """The offsets that the group must have processed: from its start to before its final committed offset."""
        return range(self.start(tp), max(self.start(tp), self.tables.final_committed(tp)))

    def declared(self, tp: int, by_ns: int) -> str:
        """The excuse: a declared act on the partition was in effect at ``by_ns``; empty: there was none."""
        return self.tables.declared(tp, by_ns)


Rule = Callable[[History], Iterable[Detection]]
