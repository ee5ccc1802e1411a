"""Checks that the lines of a program are in a possible order. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Counter as CounterOf
from typing import Dict, Iterator, Set

from fencepost_member.json_lines.reading import Line, tps
from fencepost_member.ownership import Tp

BACK_MS = 1_000  # by how much lines of several threads may be out of order


class ProtocolCheck:
    """The state that follows from the lines so far.

    Attributes:
        counts: number of lines so far, by name.
    """

    def __init__(self) -> None:
        """No line was read yet."""
        self.counts: CounterOf[str] = Counter()
        self._latest_ms = 0
        self._open: Set[str] = set()
        self._records: CounterOf[Tp] = Counter()  # record_data lines since the last records_consumed
        self._reached: Dict[Tp, int] = {}

    def faults(self, line: Line) -> Iterator[str]:
        """Why this line cannot follow the lines before it, as sentences; the line is then part of the state."""
        name, at_ms = line["name"], line["timestamp"]
        if not self.counts and name != "startup_complete":
            yield "%s precedes startup_complete, which must be the first line" % name
        if self.counts and name == "startup_complete":
            yield "startup_complete appears a second time, it must be the first line only"
        if self.counts["shutdown_complete"]:
            yield "%s follows shutdown_complete, which must be the last line" % name
        if at_ms < self._latest_ms - BACK_MS:
            earlier_ms = self._latest_ms - at_ms
            yield "the timestamp of %s is %d ms earlier than that of a previous line" % (name, earlier_ms)
        self._latest_ms = max(self._latest_ms, at_ms)
        self.counts[name] += 1
        if line.get("callback"):
            yield from self._callback(name, line["callback"])
        if name in ("record_data", "record_processed"):
            yield from self._record(name, (line["topic"], line["partition"]), line["offset"])
        elif name == "records_consumed":
            counts = {tp: p["count"] for tp, p in zip(tps(line), line["partitions"])}  # noqa: B905 (3.8)
            for tp in sorted({tp for tp in {*counts, *self._records} if counts.get(tp, 0) != self._records[tp]}):
                numbers = counts.get(tp, 0), self._records[tp]
                yield "records_consumed counts %d records of %s-%d, but there were %d record_data lines" % (
                    numbers[0],
                    *tp,
                    numbers[1],
                )
            self._records.clear()

    def _callback(self, name: str, phase: str) -> Iterator[str]:
        if (phase == "begun") == (name in self._open):
            yield "the callback of %s %s" % (name, "begins twice" if phase == "begun" else "ends but never began")
        (self._open.add if phase == "begun" else self._open.discard)(name)

    def _record(self, name: str, tp: Tp, offset: int) -> Iterator[str]:
        if name == "record_data":
            self._records[tp] += 1
            self._reached[tp] = max(offset, self._reached.get(tp, -1))
        elif offset > self._reached.get(tp, -1):
            yield "record_processed names offset %d of %s-%d, but no record_data reported it" % (offset, *tp)
