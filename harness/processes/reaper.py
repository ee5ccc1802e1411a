"""The reaper: a small process that removes what its harness left behind, however the harness ended.

It is started before anything else of a run, in a session of its own, with one end of a pipe as its standard input.
The harness holds the only other end and never writes. End of file therefore means that the harness is gone *and*
that no child of it is still between fork and exec (such a child holds a copy of that end), so that every process of
the run can be found by the token in its environment. There is one way to clean up: the harness itself closes the
pipe, too, and waits.

Runs as a script with only the standard library and psutil, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

TOKEN_VARIABLE = "FENCEPOST_OWNER"
# Two scans in a row must find nothing: a process may fork during a scan.
QUIET_SCANS = 2
SCANS = 200
# Marker files in the owner's directory: this table of the packet filter has a chain of the owner, or soon will.
CHAINS = {"packets": "filter", "redirects": "nat"}
# Likewise: the Docker engine has containers or networks of this owner.
CONTAINERS = "containers"
REMOVAL_S = 60.0
LOCK_S = 5  # how long iptables waits while others change the packet filter
IPTABLES_S = 10.0


def owned(token: str) -> Iterator[psutil.Process]:
    """The running processes whose environment contains ``token``, without zombies."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(TOKEN_VARIABLE) == token:
                yield process


def kill_all(token: str) -> list[int]:
    """Kill the processes of ``token``, frozen ones too, until none is left.

    Returns:
        The ids of processes that did not die (in an uninterruptible state, or not ours to kill); normally none.
    """
    quiet, left = 0, []
    for _ in range(SCANS):
        left = list(owned(token))
        if not left:
            quiet += 1
            if quiet == QUIET_SCANS:
                return []
            continue
        quiet = 0
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()  # ends a frozen process as well; SIGCONT first would let it act once more
        psutil.wait_procs(left, timeout=0.05)
    return [process.pid for process in left]


def chain_of(token: str) -> str:
    """The chain of the packet filter for rules of ``token``, in any table; a name may have 28 characters."""
    return f"FENCEPOST-{token}"


def hook_of(token: str) -> list[str]:
    """The rule in OUTPUT that jumps to the chain, whose rules match addresses. (A packet that is redirected to this
    host still has the interface by which it was to leave.)"""
    return ["-p", "tcp", "-j", chain_of(token)]


def unhook(token: str, table: str) -> bool:
    """Remove the chain of ``token`` with its hook and all its rules; returns whether it is gone, or never existed."""
    chain, code = chain_of(token), 0
    for step in (["-D", "OUTPUT", *hook_of(token)], ["-F", chain], ["-X", chain], ["-S", chain]):
        argv = ["iptables", "-w", str(LOCK_S), "-t", table, *step]
        try:
            code = subprocess.run(argv, capture_output=True, timeout=IPTABLES_S, check=False).returncode
        except (OSError, subprocess.SubprocessError):
            return False
    return code == 1  # no such chain; every other error has another code


def remove_containers(token: str) -> bool:
    """Remove the containers and networks of ``token``, in a process that has the Docker library; returns success."""
    argv = [sys.executable, "-P", "-m", "fencepost.clusters.docker.removal", token]
    try:
        return subprocess.run(argv, capture_output=True, timeout=REMOVAL_S, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def clean_up(token: str, directory: Path) -> list[int]:
    """Remove the containers of ``token``, kill its processes, remove its chains of the packet filter and ``directory``.

    A directory whose chains or containers cannot be removed stays, so that the next clean-up tries again.

    Returns:
        The ids of processes that did not die.
    """
    # Containers first: processes that the engine has frozen can only be ended by the engine.
    gone = not (directory / CONTAINERS).exists() or remove_containers(token)
    left = kill_all(token)
    hooked = [mark for mark, table in CHAINS.items() if (directory / mark).exists() and not unhook(token, table)]
    if gone and not hooked:
        shutil.rmtree(directory, ignore_errors=True)
    return left


def main(token: str, directory: Path) -> None:
    """Wait for the end of the harness, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a signal to the harness's whole group must not end us before it
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while os.read(0, 1):
        pass
    clean_up(token, directory)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
