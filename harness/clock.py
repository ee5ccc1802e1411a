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
    forgive: tuple[type[Exception], ...] = (),
) -> T:
    """Call ``probe`` until it returns something true and return that.

    Args:
        probe: returns a true value when the wait is over. What it raises is raised, unless it is forgiven.
        within_s: the bound.
        describe: what is awaited, as a noun phrase ("broker 2 to serve").
        state: describes what is there now, for the message; called only when the bound is reached.
        hint: what a reader can do about it.
        forgive: errors of ``probe`` that mean "not yet", such as the time-out of a call that it makes.

    Raises:
        WaitTimeout: nothing came; says what was awaited, the state now, and the hint. Its cause is the forgiven error
            of the last call of ``probe``; without one, that call saw that it had not come.
    """
    deadline = time.monotonic() + within_s
    while True:
        value, forgiven = _ask(probe, forgive)
        if value:
            return value
        left = deadline - time.monotonic()
        if left <= 0:
            parts = [f"waited {within_s:g} s for {describe}, which did not come"]
            now = state()
            if now:
                parts.append(f"state now: {now}")
            if forgiven:
                parts.append(f"the last look failed: {forgiven}".removesuffix("."))
            if hint:
                parts.append(hint)
            raise WaitTimeout(". ".join(parts) + ".") from forgiven
        time.sleep(min(every_s, left))


def _ask(probe: Callable[[], T | None], forgive: tuple[type[Exception], ...]) -> tuple[T | None, Exception | None]:
    try:
        return probe(), None
    except forgive as error:
        return None, error


def ticks(period_s: float) -> Iterator[int]:
    """Yield ``now_ns()`` every ``period_s`` seconds, for samplers; late ticks are not made up for."""
    due = time.monotonic()
    while True:
        yield time.monotonic_ns()
        due = max(due + period_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
