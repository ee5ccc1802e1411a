"""Runs take turns: a machine has places for as many clusters as its cores and memory carry, whoever starts them.

Without this, runs at the same time (two terminals, pytest-xdist, two jobs of one CI machine) starve each other's
brokers, and members miss heartbeats for reasons that nobody planned. ``runner.run`` takes a turn for every run, and so
does the fixture ``chaos_cluster``.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from fencepost.clock import eventually
from fencepost.errors import ClusterError
from fencepost.model import former_names

CORES_A_RUN = 2
MEMORY_A_RUN_BYTES = 2_500_000_000
WAIT_S = 3600.0
MAX_RUNS = (
    "FENCEPOST_MAX_RUNS"  # an environment variable: how many runs at once, instead of what a machine is taken for
)
HELD = "FENCEPOST_TURN"  # set in the environment of who holds a place, and so in that of its children
_LOG = logging.getLogger(__name__)


def places() -> int:
    """How many runs this machine carries at once; at least one.

    Raises:
        ClusterError: ``FENCEPOST_MAX_RUNS`` says otherwise, but not how many.
    """
    if asked := former_names.variable(os.environ, MAX_RUNS):
        if not asked.isdecimal() or int(asked) < 1:
            raise ClusterError(f"{MAX_RUNS} wants a number of runs at once, 1 or more, but {asked!r} came")
        return int(asked)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min((os.cpu_count() or 1) // CORES_A_RUN, memory // MEMORY_A_RUN_BYTES))


@contextmanager
def turn(
    what: str, folder: Path | None = None, within_s: float = WAIT_S, tell: Callable[[str], None] = _LOG.warning
) -> Iterator[None]:
    """Wait for a place and hold it. A process that dies gives its place back.

    Who holds a place already, or was started by somebody who does, shares that one and never waits.

    Args:
        what: for whom it is, as those who wait will read it.
        folder: where the locks are; by default the same for all runs of this user.
        tell: called with a sentence whenever others hold all places, and again when these change.

    Raises:
        ClusterError: see ``places``.
        WaitTimeout: the others did not end in time; names them.
    """
    if HELD in os.environ:
        yield
        return
    home = folder or Path(tempfile.gettempdir()) / f"fencepost-turns-{_user()}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = ""
    with ExitStack() as stack:
        locks = [stack.enter_context((home / str(n)).open("a+")) for n in range(places())]

        def free() -> TextIO | None:
            nonlocal told
            found = next((lock for lock in locks if _try(lock)), None)
            if found is None and _holders(locks) != told:
                told = _holders(locks)
                tell(f"waiting for {told} to end: this machine carries {_so_many(len(locks))} at once")
            return found

        place = eventually(
            free,
            within_s,
            f"one of the machine's places for a run ({len(locks)})",
            state=lambda: f"held by {_holders(locks)}",
            hint=f"End what holds them; the locks are in {home}",
            every_s=0.1,
        )
        place.truncate(0)
        place.write(f"{what} (process {os.getpid()}, since {time.strftime('%H:%M:%S')})")
        place.flush()
        os.environ[HELD] = str(os.getpid())
        try:
            yield
        finally:
            del os.environ[HELD]


def _user() -> int:
    """Whose run this is, outside of a user namespace: inside, ``unshare --map-root-user`` makes everybody user 0."""
    user, told = os.getuid(), Path("/proc/self/uid_map")
    if not told.exists():  # not Linux
        return user
    maps = [[int(number) for number in line.split()] for line in told.read_text().splitlines()]
    return next((outside + user - inside for inside, outside, count in maps if 0 <= user - inside < count), user)


def _try(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holders(locks: Sequence[TextIO]) -> str:
    names = []
    for lock in locks:
        lock.seek(0)
        names.append(lock.read() or "a run that has just begun")
    return " and ".join(names)


def _so_many(count: int) -> str:
    return "one run" if count == 1 else f"{count} runs"
