"""Stacks of a process that does not end: the harness asks for them before it kills it, and they are in its log."""

from __future__ import annotations

import faulthandler
import signal
from contextlib import suppress
from typing import Optional

STACKS: Optional[int] = getattr(signal, "SIGRTMAX", None)  # no program uses it; None: the system has no such signals
STDERR = 2  # also when the program replaces sys.stderr


def print_on_signal() -> None:
    """Let the signal ``STACKS`` print the stacks of all threads on standard error, whatever they do."""
    if STACKS is not None:
        with suppress(OSError, ValueError, RuntimeError):  # standard error is closed: then there is nothing to read
            faulthandler.register(STACKS, file=STDERR, all_threads=True)
