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
        closed: it ended cleanly.
        owned: partitions owned now.
        generation, member_id: as of the last callback or commit; -1 and empty when unknown.
        last_callback: (kind, begin_ns, end_ns) of the latest assigned, revoked or lost; end_ns 0 while it runs.
        callbacks: how many ended, by kind.
        commits: how many ended, by outcome.
        errors: how many the client reported, by Kafka's name.
        fatal: the name of the error that ended the client for good; empty: none.
        damage: sentences about lines that are no events.
    """

    def __init__(self, path: Path) -> None:
        """The file need not be there yet."""
        self._path, self._at = path, 0
        self.started: Mapping[str, Any] | None = None
        self.closed = False
        self.owned: frozenset[TopicPartition] = frozenset()
        self.generation, self.member_id = -1, ""
        self.last_callback: tuple[str, int, int] | None = None
        self.callbacks: Counter[str] = Counter()
        self.commits: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.fatal = ""
        self.damage: list[str] = []

    def refresh(self) -> None:
        """Read what was written since the last time."""
        found = read(self._path, self._at)
        self._at = found.next_at
        self.damage += found.damage
        for event in found.events:
            self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        kind, ended = event["kind"], event["end_ns"] != 0
        if kind in (EventKind.ASSIGNED, EventKind.REVOKED, EventKind.LOST):
            self._callback(event, ended)
        elif kind == EventKind.COMMIT and ended:
            self.commits[event["outcome"]] += 1
        elif kind == EventKind.ERROR:
            self.errors[event["error"]] += 1
            if event["detail"].get("fatal"):
                self.fatal = event["error"]
        elif kind == EventKind.STARTED:
            self.started = event["detail"]
        elif kind == EventKind.CLOSED:
            self.closed = True
            self.owned = frozenset()
        if event["generation"] is not None:
            self.generation, self.member_id = event["generation"], event["member_id"] or ""

    def _callback(self, event: Mapping[str, Any], ended: bool) -> None:
        places = {TopicPartition(topic, partition) for topic, partition, _ in event["partitions"]}
        self.last_callback = (event["kind"], event["begin_ns"], event["end_ns"])
        if ended:
            self.callbacks[event["kind"]] += 1
        if event["kind"] != EventKind.ASSIGNED:
            self.owned -= places
        elif ended:
            self.owned |= places


class Progress(NamedTuple):
    """Records so far: sent and acknowledged by producers, delivered to and processed by members."""

    sent: int = 0
    acknowledged: int = 0
    delivered: int = 0
    processed: int = 0


def progress(segments: Path) -> Progress:
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
    return Progress(*sums[True], *sums[False])
