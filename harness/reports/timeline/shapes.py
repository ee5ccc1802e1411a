"""The shapes of the timeline: x in percent of the time axis, y in pixels. The template writes them as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost.reports.formatting import moment, span
from fencepost.reports.timeline.scale import Scale, Tick

LANE = 18
BAR = 15
_GAP = 5
MARKS_MAX = 600  # of one kind that are drawn individually


@dataclass(frozen=True)
class Box:
    """A bar. ``soft`` has its transitional parts as (x, width); ``label`` is shown if there is room."""

    x: str
    width: float
    y: int
    height: int
    style: str
    title: str
    label: str = ""
    soft: tuple[tuple[str, float], ...] = ()
    href: str = ""


@dataclass(frozen=True)
class Curve:
    """A path in a stretched view box of ``width`` x ``height`` units that fills the whole time axis."""

    y: int
    width: int
    height: int
    path: str
    style: str
    title: str


@dataclass(frozen=True)
class Row:
    """A row of the picture, and its name in the margin."""

    label: str
    y: int
    height: int
    style: str = ""


@dataclass
class Drawing:
    """The whole picture; ``notes`` has sentences about merged and omitted shapes."""

    scale: Scale
    ticks: list[Tick]
    height: int = 24
    rows: list[Row] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    crosses: list[Box] = field(default_factory=list)
    rebalances: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    body_y: int = 0

    def row(self, label: str, height: int, style: str = "") -> int:
        """Add a row under the last one; returns its y."""
        y = self.height
        self.rows.append(Row(label, y, height, style))
        self.height += height + _GAP
        return y

    def heading(self, label: str) -> None:
        """Add the name of a group of rows."""
        self.height += 6
        self.row(label, 13, "group")


def from_to(scale: Scale, begin_ns: int, end_ns: int) -> str:
    """``12.000 s – 14.500 s (2.50 s)``."""
    begin, end = moment(begin_ns, scale.origin_ns), moment(end_ns, scale.origin_ns)
    return f"{begin} – {end} ({span(end_ns - begin_ns)})"


def ended(how: str) -> str:
    """How an interval or a life ended, in words."""
    return "still open at the end of the history" if how == "open" else f"ended: {how}"
