"""Wall-clock times of brokers as times of our clock: conversion by recorded pairs, with the uncertainty kept.

Brokers know wall time in whole milliseconds only; everything else in a history is monotonic nanoseconds. What cannot
be known better than ``uncertainty_ns`` says so, and no checker may call two such times ordered when they are closer.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fencepost.history.atomic import replacing

MS = 1_000_000


@dataclass(frozen=True)
class Timeline:
    """Converts wall time by ``pairs`` of (monotonic_ns, wall_ns), in the order in which they were taken."""

    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, pairs: Sequence[Sequence[int]]) -> Timeline:
        """From pairs as ``clock_pair`` takes them, at least one."""
        if not pairs:
            raise ValueError("a broker's times cannot be converted without a clock pair, but none came")
        return cls(tuple((int(mono), int(wall)) for mono, wall in pairs))

    @property
    def uncertainty_ns(self) -> int:
        """How far a converted time may be off, either way: half a millisecond, plus what the two clocks drifted."""
        ahead = [wall - mono for mono, wall in self.pairs]
        return MS // 2 + max((abs(b - a) for a, b in itertools.pairwise(ahead)), default=0)

    def at_ns(self, wall_ms: float) -> int:
        """The middle of the wall-clock millisecond ``wall_ms`` on our clock; 0 for a time that the broker lacks."""
        if wall_ms <= 0:
            return 0
        wall_ns = int(wall_ms) * MS + MS // 2
        return wall_ns - self._ahead_ns(wall_ns)

    def _ahead_ns(self, wall_ns: int) -> int:
        """How far wall time is ahead of ours: interpolated between the pairs around it, constant outside."""
        after = bisect.bisect_right([wall for _, wall in self.pairs], wall_ns)
        before = self.pairs[max(after - 1, 0)]
        if after in (0, len(self.pairs)):
            return before[1] - before[0]
        (mono_a, wall_a), (mono_b, wall_b) = before, self.pairs[after]
        share = (wall_ns - wall_a) / (wall_b - wall_a)
        return wall_a - mono_a + round(share * ((wall_b - mono_b) - (wall_a - mono_a)))


class Collected(NamedTuple):
    """What a collection came to: facts written, and lines of the source that could not be read (torn by a kill)."""

    facts: int
    damaged: int


def write_lines(path: Path, facts: Iterable[Mapping[str, Any]]) -> int:
    """Write one JSON object per line; the number of lines. The file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with replacing(path) as draft, draft.open("w") as file:
        for fact in facts:
            file.write(json.dumps(fact, separators=(",", ":")) + "\n")
            count += 1
    return count
