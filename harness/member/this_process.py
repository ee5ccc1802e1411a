"""What a process of a user's program knows of itself in a run."""

from __future__ import annotations

from typing import Any, List

CONFIG = "FENCEPOST_MEMBER"  # the variable by which a process knows that it belongs to a run
PROGRAMS: List[Any] = []  # of this process: a ``Program`` for each client library that is instrumented
