"""Times of a history: nanoseconds of ``CLOCK_MONOTONIC``, and windows of them."""

from __future__ import annotations

from typing import NamedTuple

NS = 1_000_000_000
FOREVER = (1 << 63) - 1


class Window(NamedTuple):
    """From ``begin_ns`` to ``end_ns``."""

    begin_ns: int
    end_ns: int

    @classmethod
    def around(cls, at_ns: int, uncertainty_ns: int) -> Window:
        """When something may have been that a broker's clock tells."""
        return cls(at_ns - uncertainty_ns, at_ns + uncertainty_ns)

    def common(self, other: Window) -> Window:
        """The part that both have; it is empty (or negative) when they do not meet."""
        return Window(max(self.begin_ns, other.begin_ns), min(self.end_ns, other.end_ns))

    def meets(self, other: Window) -> bool:
        """Whether they have at least a moment in common."""
        return self.begin_ns <= other.end_ns and other.begin_ns <= self.end_ns

    @property
    def length_ns(self) -> int:
        """How long; not above 0 when empty."""
        return self.end_ns - self.begin_ns
