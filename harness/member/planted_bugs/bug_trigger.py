"""The trigger of planted bugs: they act only after the run's warm-up, when the group processes records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Mapping, Set

from fencepost_member.ownership import Tp
from fencepost_member.recording.events import read

EVERY_S = 1.0
TIMES = 3  # acts of a bug in an incarnation if the group is to recover from it
ALWAYS = 1 << 62  # times


class BugTrigger:
    """Triggers a bug one period after the warm-up, and again one period after each time.

    Attributes:
        left: the number of times that the bug will still act.
    """

    def __init__(self, events: Path, every_s: float, times: int = TIMES) -> None:
        """``events`` is the folder of the run's event logs; ``every_s`` the period; ``times`` the number of times."""
        self._harness, self._read_up_to = events / "harness.jsonl", 0
        self._every_s, self.left = every_s, times
        self._due_s = float("inf")

    @property
    def due(self) -> bool:
        """Whether the bug is to act now."""
        if self._due_s == float("inf") and self._warm():
            self._due_s = time.monotonic() + self._every_s
        return self.left > 0 and time.monotonic() >= self._due_s

    def fired(self) -> None:
        """Record that the bug acted just now."""
        self._due_s = time.monotonic() + self._every_s
        self.left -= 1

    def _warm(self) -> bool:
        found = read(self._harness, self._read_up_to)
        self._read_up_to = found.next_at
        return any(e["kind"] == "phase" and e["detail"].get("name") == "chaos" for e in found.events)


def overtaken(adapter: Any, reached: Mapping[Tp, int]) -> Set[Tp]:
    """The partitions in which the group has committed past these offsets: another member has processed the records."""
    committed = adapter.committed(list(reached)) if reached else {}
    return {tp for tp, offset in reached.items() if committed.get(tp, -1) > offset}
