"""In which order lines can come, whatever they tell. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Counter as CounterOf
from typing import Dict, Iterator, Set

from fencepost_member.lines.reading import Line, tps
from fencepost_member.ownership import Tp

BACK_MS = 1_000  # by how much lines of several threads may be out of order


class Order:
    """What was told so far.

    Attributes:
        counts: how many lines of each name.
    """

    def __init__(self) -> None:
        """Nothing."""
        self.counts: CounterOf[str] = Counter()
        self._latest_ms = 0
        self._open: Set[str] = set()
        self._records: CounterOf[Tp] = Counter()  # told since the last records_consumed
        self._reached: Dict[Tp, int] = {}

    def faults(self, line: Line) -> Iterator[str]:
        """What is wrong with a line at its place, as sentences; it counts as told from now on."""
        name, at_ms = line["name"], line["timestamp"]
        if not self.counts and name != "startup_complete":
            yield "%s comes before startup_complete" % name
        if self.counts and name == "startup_complete":
            yield "startup_complete comes a second time"
        if self.counts["shutdown_complete"]:
            yield "%s comes after shutdown_complete" % name
        if at_ms < self._latest_ms - BACK_MS:
            yield "%s says a time %d ms before a line that was before it" % (name, self._latest_ms - at_ms)
        self._latest_ms = max(self._latest_ms, at_ms)
        self.counts[name] += 1
        if line.get("callback"):
            yield from self._callback(name, line["callback"])
        if name in ("record_data", "record_processed"):
            yield from self._record(name, (line["topic"], line["partition"]), line["offset"])
        elif name == "records_consumed":
            told = {tp: p["count"] for tp, p in zip(tps(line), line["partitions"])}  # noqa: B905 (3.8)
            for tp in sorted({tp for tp in {*told, *self._records} if told.get(tp, 0) != self._records[tp]}):
                count = told.get(tp, 0)
                yield "records_consumed tells of %s-%d %d records, and record_data told %d" % (
                    *tp,
                    count,
                    self._records[tp],
                )
            self._records.clear()

    def _callback(self, name: str, phase: str) -> Iterator[str]:
        if (phase == "begun") == (name in self._open):
            yield "the callback of %s %s" % (name, "begins twice" if phase == "begun" else "ends, and never began")
        (self._open.add if phase == "begun" else self._open.discard)(name)

    def _record(self, name: str, tp: Tp, offset: int) -> Iterator[str]:
        if name == "record_data":
            self._records[tp] += 1
            self._reached[tp] = max(offset, self._reached.get(tp, -1))
        elif offset > self._reached.get(tp, -1):
            yield "record_processed names offset %d of %s-%d, which no record_data told" % (offset, *tp)
