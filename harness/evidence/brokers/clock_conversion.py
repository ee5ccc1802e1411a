"""Converts wall-clock times of brokers on this machine to the monotonic clock, by recorded clock pairs.

Brokers record wall time in whole milliseconds; all other times of a history are monotonic nanoseconds. A converted time
has an ``uncertainty_ns``; a checker must not consider two such times ordered if their difference is smaller.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fencepost.history.atomic import replacing

MS = 1_000_000


class Moment(NamedTuple):
    """A time of a broker on our clock: the true time is in ``at_ns`` ± ``uncertainty_ns``; 0: never."""

    at_ns: int
    uncertainty_ns: int


class Timeline(Protocol):
    """Dates the records of a partition."""

    def moment(self, wall_ms: int, term: int) -> Moment:
        """When the leader with the epoch ``term`` wrote the wall time ``wall_ms``; 0 for 0 or less (no time)."""


@dataclass(frozen=True)
class WallClockConverter:
    """Converts wall time with ``pairs`` of (monotonic_ns, wall_ns), in the order in which they were measured.

    It is for brokers that have this machine's clock. Satisfies ``Timeline``.
    """

    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, pairs: Sequence[Sequence[int]]) -> WallClockConverter:
        """A timeline of pairs as ``clock_pair`` returns them. Raises ValueError if there is none."""
        if not pairs:
            raise ValueError("converting a broker's times needs at least one clock pair, but there is none")
        return cls(tuple((int(mono), int(wall)) for mono, wall in pairs))

    @property
    def uncertainty_ns(self) -> int:
        """The largest error of a converted time, in both directions: half a millisecond plus the clocks' drift."""
        ahead = [wall - mono for mono, wall in self.pairs]
        return MS // 2 + max((abs(b - a) for a, b in itertools.pairwise(ahead)), default=0)

    def at_ns(self, wall_ms: float) -> int:
        """The middle of the wall-clock millisecond ``wall_ms`` on our clock; 0 for 0 or less (no time)."""
        if wall_ms <= 0:
            return 0
        wall_ns = int(wall_ms) * MS + MS // 2
        return wall_ns - self._ahead_ns(wall_ns)

    def moment(self, wall_ms: int, term: int) -> Moment:
        """See ``Timeline``. The leader does not matter: all of them have this clock."""
        return Moment(self.at_ns(wall_ms), self.uncertainty_ns)

    def _ahead_ns(self, wall_ns: int) -> int:
        """How far wall time is ahead of our clock: interpolated between the pairs around it, constant outside."""
        after = bisect.bisect_right([wall for _, wall in self.pairs], wall_ns)
        before = self.pairs[max(after - 1, 0)]
        if after in (0, len(self.pairs)):
            return before[1] - before[0]
        (mono_a, wall_a), (mono_b, wall_b) = before, self.pairs[after]
        share = (wall_ns - wall_a) / (wall_b - wall_a)
        return wall_a - mono_a + round(share * ((wall_b - mono_b) - (wall_a - mono_a)))


class Collected(NamedTuple):
    """The result of a collection: facts that were written, and source lines that could not be read (cut by a kill)."""

    facts: int
    damaged: int


def write_lines(path: Path, facts: Iterable[Mapping[str, Any]]) -> int:
    """Write one JSON object per line, atomically; return the number of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with replacing(path) as draft, draft.open("w") as file:
        for fact in facts:
            file.write(json.dumps(fact, separators=(",", ":")) + "\n")
            count += 1
    return count
