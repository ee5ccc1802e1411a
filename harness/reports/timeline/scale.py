"""The time axis: positions in percent of its width, and ticks at round seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.reports.formatting import NS

_STEPS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
_FINER = (1, 5, 25)


class Tick(NamedTuple):
    """A tick of the axis; ``level`` 0 is always drawn, 1 and 2 only in a zoomed picture."""

    x: str
    label: str
    level: int


@dataclass(frozen=True)
class Scale:
    """Maps [begin_ns, end_ns] to 0–100 %; times outside are clipped. Labels count from ``origin_ns``."""

    begin_ns: int
    end_ns: int
    origin_ns: int

    @property
    def length_ns(self) -> int:
        """The length of the axis, never 0."""
        return max(self.end_ns - self.begin_ns, 1)

    def share(self, at_ns: int) -> float:
        """The position of ``at_ns``, 0 to 100."""
        return min(max((at_ns - self.begin_ns) / self.length_ns, 0.0), 1.0) * 100

    def x(self, at_ns: int) -> str:
        """The same, in the notation of SVG."""
        return f"{self.share(at_ns):.3f}%"

    def width(self, begin_ns: int, end_ns: int) -> float:
        """The distance between two moments, 0 to 100."""
        return max(self.share(end_ns) - self.share(begin_ns), 0.0)

    def ticks(self) -> Iterator[Tick]:
        """About ten ticks, and finer ones between them for a zoomed picture."""
        length_s = self.length_ns / NS
        step_s = next((s for s in _STEPS_S if length_s / s <= 14), length_s / 10)
        first_s = (self.begin_ns - self.origin_ns) / NS
        drawn: set[int] = set()
        for level, finer in enumerate(_FINER):
            pitch = step_s / finer
            index = int(first_s // pitch)
            while index * pitch <= first_s + length_s:
                at_s = index * pitch
                index += 1
                micros = round(at_s * 1e6)
                if at_s < first_s or micros in drawn:
                    continue
                drawn.add(micros)
                yield Tick(self.x(self.origin_ns + int(at_s * NS)), _label(at_s, step_s), level)


def _label(at_s: float, step_s: float) -> str:
    if step_s < 60:
        return f"{round(at_s, 3):g} s"
    minutes, seconds = divmod(round(at_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
