"""The state of a user's program's process in a run."""

from __future__ import annotations

from typing import Any, List

CONFIG = "FENCEPOST_MEMBER"  # the environment variable that every process of a run has
PROGRAMS: List[Any] = []  # a ``InstrumentedProgram`` for each client library that is instrumented in this process
