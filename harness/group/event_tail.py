"""The events of a member or producer so far: its event file is read while it is being written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from fencepost.history import EventKind
from fencepost.model import TopicPartition
from fencepost_member.recording.events import read
from fencepost_member.recording.segments import Counts, read_counts

FREQUENT = (EventKind.COMMIT, EventKind.POLL_GAP)


class EventTail:
    """The state of one actor, by its own events. ``refresh`` brings it up to date.

    A partition counts as owned from the end of its assigned callback to the beginning of the callback that revokes it.

    Attributes:
        started: the detail of the started event; None before it.
        started_ns, closed_ns: when it began, and was closed; 0: not yet.
        owned: partitions owned now.
        member_id: its member id, as it reported last; empty: not reported yet.
        errors: number of errors that the client reported, by Kafka's name.
        fatal: the name of the error that ended the client permanently; empty: none.
        open: kinds of events that have begun and not ended, and since when, ns.
        ended: kinds of events that have ended, and when the last of them began, ns.
        lost_ns: when it last received partitions as lost; 0: never.
        ids: the member ids that the coordinator gave it.
        reported: all events of a kind, in their order, by id; without the kinds that are as frequent as records.

    Lines that are no events are skipped: the seal reports them.
    """

    def __init__(self, path: Path) -> None:
        """The file may not exist yet."""
        self._path, self._at = path, 0
        self.started: Mapping[str, Any] | None = None
        self.started_ns = self.closed_ns = 0
        self.owned: frozenset[TopicPartition] = frozenset()
        self.member_id = ""
        self.errors: Counter[str] = Counter()
        self.fatal = ""
        self.open: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.lost_ns = 0
        self.ids: frozenset[str] = frozenset()
        self.reported: defaultdict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)

    def refresh(self) -> None:
        """Read the events written since the last call."""
        found = read(self._path, self._at)
        self._at = found.next_at
        for event in found.events:
            self._apply(event)

    def _apply(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if event["end_ns"] == 0:
            self.open[kind] = event["begin_ns"]
        else:
            self.open.pop(kind, None)
            self.ended[kind] = event["begin_ns"]
        if event["member_id"]:
            self.member_id = event["member_id"]
            self.ids |= {self.member_id}
        if kind not in FREQUENT:
            self.reported[kind][event["id"]] = event
        if kind in (EventKind.ASSIGNED, EventKind.REVOKED, EventKind.LOST):
            self._callback(event)
        elif kind == EventKind.ERROR:
            self.errors[event["error"]] += 1
            if event["detail"].get("fatal"):
                self.fatal = event["error"]
        elif kind == EventKind.STARTED:
            self.started, self.started_ns = event["detail"], event["begin_ns"]
        elif kind == EventKind.CLOSED:
            self.owned, self.closed_ns = frozenset(), event["end_ns"]

    def _callback(self, event: Mapping[str, Any]) -> None:
        places = {TopicPartition(topic, partition) for topic, partition, _ in event["partitions"]}
        if event["kind"] == EventKind.LOST:
            self.lost_ns = max(self.lost_ns, event["begin_ns"])
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


def last_poll_ns(segments: Path, actor: str) -> int:
    """When an actor last called poll, by its segments below ``segments``, or the time until which its present poll
    waits for records; 0: never, or unknown."""
    return max((counts.polled_ns for counts in _counts(segments, f"{actor}.*.seg").values()), default=0)


def count_records(segments: Path) -> RecordCounts:
    """Sum over all segments below ``segments``, of all incarnations; segments that cannot be read are not counted."""
    sums = {True: [0, 0], False: [0, 0]}
    for path, counts in _counts(segments, "*.seg").items():
        ours = sums[path.name.startswith("producer-")]
        ours[0] += counts.recorded
        ours[1] += counts.finished
    return RecordCounts(*sums[True], *sums[False])


def _counts(segments: Path, names: str) -> dict[Path, Counts]:
    found = {}
    for path in segments.glob(names):
        with suppress(OSError, ValueError):  # just being created, or damaged: the seal reports it
            found[path] = read_counts(path)
    return found
