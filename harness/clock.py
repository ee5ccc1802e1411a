"""The clock, and the only place that waits.

``eventually`` is how every part of the harness awaits something: bounded, with a message that explains itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from fencepost.errors import WaitTimeout

T = TypeVar("T")
NS = 1_000_000_000


def now_ns() -> int:
    """``CLOCK_MONOTONIC`` in nanoseconds: one clock for all processes and containers of a Linux host."""
    return time.monotonic_ns()


def clock_pair() -> tuple[int, int]:
    """The same moment as (monotonic_ns, wall_ns), so that a broker's wall-clock times can be converted."""
    before = time.monotonic_ns()
    wall = time.time_ns()
    return (before + time.monotonic_ns()) // 2, wall


def eventually(
    probe: Callable[[], T | None],
    within_s: float,
    describe: str,
    *,
    state: Callable[[], str] = lambda: "",
    hint: str = "",
    every_s: float = 0.02,
) -> T:
    """Call ``probe`` until it returns something true and return that.

    Args:
        probe: returns a true value when the wait is over. What it raises is raised.
        within_s: the bound.
        describe: what is awaited, as a noun phrase ("broker 2 to serve").
        state: describes what is there now, for the message; called only when the bound is reached.
        hint: what a reader can do about it.

    Raises:
        WaitTimeout: nothing came; says what was awaited, the state now, and the hint.
    """
    deadline = time.monotonic() + within_s
    while True:
        value = probe()
        if value:
            return value
        left = deadline - time.monotonic()
        if left <= 0:
            parts = [f"waited {within_s:g} s for {describe}, which did not come"]
            now = state()
            if now:
                parts.append(f"state now: {now}")
            if hint:
                parts.append(hint)
            raise WaitTimeout(". ".join(parts) + ".")
        time.sleep(min(every_s, left))


def ticks(period_s: float) -> Iterator[int]:
    """Yield ``now_ns()`` every ``period_s`` seconds, for samplers; late ticks are not made up for."""
    due = time.monotonic()
    while True:
        yield time.monotonic_ns()
        due = max(due + period_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
