"""What a member or producer has told so far: its event file, read on while it is being written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fencepost.history import EventKind
from fencepost.model import TopicPartition
from fencepost_member.events import read
from fencepost_member.recorder import read_counts


class LiveEvents:
    """The state of one actor, as its own events tell it. ``refresh`` brings it up to date.

    A partition counts as owned from the end of its assigned callback to the begin of the callback that gives it up.

    Attributes:
        started: the detail of the started event; None before it.
        owned: partitions owned now.
        errors: how many the client reported, by Kafka's name.
        fatal: the name of the error that ended the client for good; empty: none.

    Lines that are no events are passed over: the seal tells of them.
    """

    def __init__(self, path: Path) -> None:
        """The file need not be there yet."""
        self._path, self._at = path, 0
        self.started: Mapping[str, Any] | None = None
        self.owned: frozenset[TopicPartition] = frozenset()
        self.errors: Counter[str] = Counter()
        self.fatal = ""

    def refresh(self) -> None:
        """Read what was written since the last time."""
        found = read(self._path, self._at)
        self._at = found.next_at
        for event in found.events:
            self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind in (EventKind.ASSIGNED, EventKind.REVOKED, EventKind.LOST):
            self._callback(event)
        elif kind == EventKind.ERROR:
            self.errors[event["error"]] += 1
            if event["detail"].get("fatal"):
                self.fatal = event["error"]
        elif kind == EventKind.STARTED:
            self.started = event["detail"]
        elif kind == EventKind.CLOSED:
            self.owned = frozenset()

    def _callback(self, event: Mapping[str, Any]) -> None:
        places = {TopicPartition(topic, partition) for topic, partition, _ in event["partitions"]}
        if event["kind"] != EventKind.ASSIGNED:
            self.owned -= places
        elif event["end_ns"] != 0:
            self.owned |= places


class RecordCounts(NamedTuple):
    """Records so far: sent and acknowledged by producers, delivered to and processed by members."""

    sent: int = 0
    acknowledged: int = 0
    delivered: int = 0
    processed: int = 0


def count_records(segments: Path) -> RecordCounts:
    """Sum over all segments below ``segments``, all lives included; those that cannot be read count for nothing."""
    sums = {True: [0, 0], False: [0, 0]}
    for path in segments.glob("*.seg"):
        try:
            counts = read_counts(path)
        except (OSError, ValueError):
            continue  # just being made, or damaged: the seal reports it
        ours = sums[path.name.startswith("producer-")]
        ours[0] += counts.recorded
        ours[1] += counts.finished
    return RecordCounts(*sums[True], *sums[False])
