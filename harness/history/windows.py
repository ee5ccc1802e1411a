"""Times of a history, in nanoseconds of ``CLOCK_MONOTONIC``, and windows of them."""

from __future__ import annotations

from typing import NamedTuple

NS = 1_000_000_000
FOREVER = (1 << 63) - 1


class Window(NamedTuple):
    """The time from ``begin_ns`` to ``end_ns``."""

    begin_ns: int
    end_ns: int

    @classmethod
    def around(cls, at_ns: int, uncertainty_ns: int) -> Window:
        """The window in which an event may have happened whose time a broker's clock gives."""
        return cls(at_ns - uncertainty_ns, at_ns + uncertainty_ns)

    def common(self, other: Window) -> Window:
        """The intersection; empty (or negative) if the windows do not meet."""
        return Window(max(self.begin_ns, other.begin_ns), min(self.end_ns, other.end_ns))

    def meets(self, other: Window) -> bool:
        """Whether the windows have at least one moment in common."""
        return self.begin_ns <= other.end_ns and other.begin_ns <= self.end_ns

    @property
    def length_ns(self) -> int:
        """The length; 0 or less if the window is empty."""
        return self.end_ns - self.begin_ns
