"""The state of the group from the text logs of its brokers, line by line while they are written.

It parses lines of Kafka's ``GroupMetadataManager`` and ``CoordinatorRuntime`` (tested with 4.3.1), and of the
coordinator of Kafka 3 (3.9.1), which logs nearly the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.interfaces.group_snapshot import CoordinatorStatus

_WHO = r"\[Group(?:Coordinator|MetadataManager) [^]]*\]:?"
_HEAD = re.compile(rf"\[([-\d]+ [:\d]+,\d{{3}})\] \w+ {_WHO} (.*)")


class CoordinatorLog:
    """The state of the group according to the lines that were read so far.

    Attributes:
        signs: that state.
    """

    def __init__(self, group: str, partition: int, timeline: Callable[[], WallClockConverter]) -> None:
        """``partition``: the group's partition of ``__consumer_offsets``; ``timeline`` returns a current clock
        conversion."""
        self.signs = CoordinatorStatus()
        self._timeline = timeline
        name, kept = re.escape(group), rf"__consumer_offsets-{partition}\b"
        self._meanings = (
            (rf"Preparing to rebalance group {name} in state", self._prepared),
            (rf"Stabilized group {name} generation ", self._stabilized),
            (rf"Assignment received from leader \S+ for group {name} for generation", self._assigned),
            (rf"Group {name} with generation \d+ is now empty", self._assigned),
            (rf"\[GroupId {name}\] Bumped group epoch to ", self._bumped),
            (rf"Member (\S+) in group {name} has failed, removing it from the group", self._removed),
            (rf"\[GroupId {name}\] Member (\S+) fenced from the group because", self._removed),
            (rf"Scheduling loading of [\w ]*from {kept}", self._loading),
            (rf"(?:Finished loading|Failed to load|Cancelled loading|Error loading)[\w ]* from {kept}", self._loaded),
            (rf"Scheduling unloading of [\w ]*(?:for|from) {kept}", self._unloading),
        )
        self._compiled = [(re.compile(pattern), take) for pattern, take in self._meanings]

    def feed(self, broker: int, lines: Iterable[str]) -> None:
        """Read more lines of a broker's log. Lines about other things than the group are ignored."""
        for line in lines:
            head = _HEAD.match(line)
            if head is None:
                continue
            for pattern, take in self._compiled:
                if found := pattern.match(head[2]):
                    wall_ms = datetime.fromisoformat(head[1].replace(",", ".") + "+00:00").timestamp() * 1000
                    take(broker, self._timeline().at_ns(round(wall_ms)), *found.groups())
                    break

    def _prepared(self, broker: int, at_ns: int) -> None:
        self.signs = replace(self.signs, broker=broker, joining_ns=self.signs.joining_ns or at_ns, syncing_ns=0)

    def _stabilized(self, broker: int, at_ns: int) -> None:
        self.signs = replace(self.signs, broker=broker, joining_ns=0, syncing_ns=at_ns, rebalanced_ns=at_ns)

    def _assigned(self, broker: int, at_ns: int) -> None:
        """The rebalance has ended: the coordinator waits for no member."""
        self.signs = replace(self.signs, broker=broker, joining_ns=0, syncing_ns=0)

    def _bumped(self, broker: int, at_ns: int) -> None:
        self.signs = replace(self.signs, broker=broker, rebalanced_ns=at_ns)

    def _removed(self, broker: int, at_ns: int, member_id: str) -> None:
        self.signs = replace(self.signs, broker=broker, removed={**self.signs.removed, member_id: at_ns})

    def _loading(self, broker: int, at_ns: int) -> None:
        """The coordinator moves to this broker: a rebalance on another broker no longer counts."""
        loading = {**self.signs.loading, broker: at_ns}
        self.signs = replace(self.signs, loading=loading, joining_ns=0, syncing_ns=0)

    def _loaded(self, broker: int, at_ns: int) -> None:
        loading = dict(self.signs.loading)
        loaded = {**self.signs.loaded, broker: loading.pop(broker)} if broker in loading else self.signs.loaded
        self.signs = replace(self.signs, loading=loading, loaded=loaded)

    def _unloading(self, broker: int, at_ns: int) -> None:
        self._loaded(broker, at_ns)
        if broker == self.signs.broker:
            self.signs = replace(self.signs, joining_ns=0, syncing_ns=0)
