"""Runs take turns: a machine has places for as many clusters as its cores and memory carry, whoever starts them.

Without this, tests that run at the same time (pytest-xdist, two jobs of one CI machine) starve each other's brokers,
and members miss heartbeats for reasons that nobody planned.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from fencepost.clock import eventually

CORES_A_RUN = 2
MEMORY_A_RUN_BYTES = 2_500_000_000
WAIT_S = 3600.0


def places() -> int:
    """How many runs this machine carries at once; at least one."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min((os.cpu_count() or 1) // CORES_A_RUN, memory // MEMORY_A_RUN_BYTES))


@contextmanager
def turn(folder: Path | None = None, within_s: float = WAIT_S) -> Iterator[int]:
    """Wait for a place and hold it; yields its number. A process that dies gives its place back.

    Raises:
        WaitTimeout: the others did not end in time.
    """
    home = folder or Path(tempfile.gettempdir()) / f"fencepost-turns-{os.getuid()}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        locks = [stack.enter_context((home / str(n)).open("w")) for n in range(places())]
        taken = eventually(
            lambda: next(((n, lock) for n, lock in enumerate(locks) if _try(lock)), None),
            within_s,
            f"one of the machine's {len(locks)} places for a run",
            hint=f"Other runs hold the locks in {home}",
            every_s=0.1,
        )
        yield taken[0]


def _try(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
