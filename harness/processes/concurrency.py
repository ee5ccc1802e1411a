"""Limits concurrent runs: a machine has permits for as many clusters as its cores and memory carry.

Without a limit, concurrent runs (two terminals, pytest-xdist, two jobs of one CI machine) starve each other's brokers,
and members miss heartbeats for unplanned reasons. ``runner.run`` takes a permit for every run, and so does the fixture
``chaos_cluster``.
"""

from __future__ import annotations

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
from fencepost_member import lock

CORES_A_RUN = 2
MEMORY_A_RUN_BYTES = 2_500_000_000
WAIT_S = 3600.0
MAX_RUNS = "FENCEPOST_MAX_RUNS"  # environment variable: the number of concurrent runs, instead of the computed one
HELD = "FENCEPOST_TURN"  # set in the environment of the holder of a permit, and so of its child processes
_LOG = logging.getLogger(__name__)


def max_concurrent_runs() -> int:
    """How many concurrent runs this machine carries; at least one.

    Raises:
        ClusterError: ``FENCEPOST_MAX_RUNS`` is not a number above 0.
    """
    if asked := former_names.variable(os.environ, MAX_RUNS):
        if not asked.isdecimal() or int(asked) < 1:
            raise ClusterError(f"found {MAX_RUNS}={asked!r}; use the number of concurrent runs, 1 or more")
        return int(asked)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min((os.cpu_count() or 1) // CORES_A_RUN, memory // MEMORY_A_RUN_BYTES))


@contextmanager
def run_permit(
    what: str, folder: Path | None = None, within_s: float = WAIT_S, report: Callable[[str], None] = _LOG.warning
) -> Iterator[None]:
    """Wait for a permit and hold it. A process that dies releases its permit.

    Re-entrant: child processes reuse the holder's permit and never wait.

    Args:
        what: the holder's name, which waiting processes print.
        folder: where the locks are; by default the same for all runs of this user.
        report: called with a sentence whenever others hold all permits, and again when the holders change.

    Raises:
        ClusterError: see ``max_concurrent_runs``.
        WaitTimeout: the others did not end in time; names them.
    """
    if HELD in os.environ:
        yield
        return
    home = folder or Path(tempfile.gettempdir()) / f"fencepost-turns-{_user()}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    reported = ""
    with ExitStack() as stack:
        locks = [stack.enter_context((home / str(n)).open("a+")) for n in range(max_concurrent_runs())]

        def free() -> TextIO | None:
            nonlocal reported
            found = next((file for file in locks if lock.try_take(file)), None)
            if found is None and _holders(locks) != reported:
                reported = _holders(locks)
                report(f"waiting for {reported} to end: this machine carries {_so_many(len(locks))} at once")
            return found

        place = eventually(
            free,
            within_s,
            f"one of the machine's permits for a run ({len(locks)})",
            state=lambda: f"held by {_holders(locks)}",
            hint=f"End the runs that hold them; the locks are in {home}",
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
    """The user's id outside of a user namespace: inside, ``unshare --map-root-user`` makes everybody user 0."""
    user, mapping = os.getuid(), Path("/proc/self/uid_map")
    if not mapping.exists():  # not Linux
        return user
    maps = [[int(number) for number in line.split()] for line in mapping.read_text().splitlines()]
    return next((outside + user - inside for inside, outside, count in maps if 0 <= user - inside < count), user)


def _holders(locks: Sequence[TextIO]) -> str:
    names = []
    for file in locks:
        file.seek(0)
        names.append(file.read() or "a run that has just begun")
    return " and ".join(names)


def _so_many(count: int) -> str:
    return "one run" if count == 1 else f"{count} runs"
