"""The clock, and the only module that sleeps.

Every part of the harness waits with ``eventually``, which has a time limit and explains in its error what is missing.
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
    """One moment on both clocks: (monotonic_ns, wall_ns). It converts a broker's wall-clock times."""
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
        probe: returns a true value when the wait is over. Its errors are raised, unless ``forgive`` names them.
        within_s: the time limit.
        describe: what is awaited, as a noun phrase ("broker 2 to serve").
        state: describes the current state, for the message; called only when the time is over.
        hint: what a reader can do about it.
        forgive: errors of ``probe`` that mean "not yet", such as the time-out of a call that it makes.

    Raises:
        WaitTimeout: the time is over. The message has what was awaited, the current state, and the hint. Its cause is
            the forgiven error of the last call of ``probe``; without a cause, the last call returned a false value.
    """
    deadline = time.monotonic() + within_s
    while True:
        value, forgiven = _ask(probe, forgive)
        if value:
            return value
        left = deadline - time.monotonic()
        if left <= 0:
            parts = [f"waited {within_s:g} s for {describe}, which did not happen"]
            now = state()
            if now:
                parts.append(f"state now: {now}")
            if forgiven:
                parts.append(f"the last attempt failed: {forgiven}".removesuffix("."))
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
    """Yield ``now_ns()`` every ``period_s`` seconds, for samplers. A late tick is not followed by extra ticks."""
    due = time.monotonic()
    while True:
        yield time.monotonic_ns()
        due = max(due + period_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
