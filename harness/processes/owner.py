"""Ownership of a run's processes and temporary files: every process is started here, and none outlives its owner.

A ``ProcessOwner`` has a token, which is in the environment of every process that it starts, a temporary directory, and
if needed a chain of the packet filter and containers. When it is closed, or when the harness dies in any way, its
reaper kills the processes and removes the rest. Directories whose owner and reaper both died (a power cut) are swept by
the next owner. A program that wipes its environment can only be found by its living owner.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

from fencepost.clock import eventually
from fencepost.errors import ClusterError
from fencepost.interfaces.process import Process
from fencepost.processes import reaper
from fencepost_member import lock

PREFIX = "fencepost-"
CLOSE_S = 20.0 + reaper.REMOVAL_S


class ProcessOwner:
    """Owns processes and one temporary directory. Use ``ProcessOwner.open`` as a context manager.

    Attributes:
        token: carried by every process of this owner in the environment variable ``FENCEPOST_OWNER``.
        directory: temporary; removed when the owner is closed.
    """

    def __init__(self, token: str, directory: Path, lock: int, pipe: int, watcher: subprocess.Popen[bytes]) -> None:
        self.token = token
        self.directory = directory
        self._lock = lock
        self._pipe = pipe
        self._watcher = watcher
        self._children: list[psutil.Popen] = []

    @classmethod
    def open(cls, directory: Path | None = None) -> ProcessOwner:
        """Create an owner, its reaper first; the temporary directory is created below ``directory``.

        Raises:
            ClusterError: the reaper does not start, or the directory cannot be created.
        """
        parent = directory or Path(tempfile.gettempdir())
        sweep(parent)
        token = secrets.token_hex(8)
        try:
            parent.mkdir(parents=True, exist_ok=True)
            home, held = _locked_directory(parent, token)
        except OSError as error:
            raise ClusterError(f"no temporary directory can be created in {parent}: {error}") from error
        try:
            pipe, watcher = _start_reaper(token, home)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            os.close(held)
            raise
        return cls(token, home, held, pipe, watcher)

    def spawn(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        keep_open: Sequence[int] = (),
        groups: Sequence[int] = (),
    ) -> psutil.Popen:
        """Start a process in a session of its own (Ctrl-C at the terminal does not reach it).

        Args:
            argv: program and arguments.
            log: its stdout and stderr are appended here.
            env: variables in addition to ours.
            cwd: its working directory; the owner's by default.
            keep_open: file descriptors that it inherits (a lock that must be held while it runs).
            groups: supplementary groups in addition to ours.

        Raises:
            ClusterError: the owner is closed, or the program cannot be executed.
        """
        if self._pipe < 0:
            raise ClusterError(f"{argv[0]} cannot be started: its owner is closed")
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with log.open("ab") as output:
                process = psutil.Popen(
                    [str(part) for part in argv],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **(env or {}), reaper.TOKEN_VARIABLE: self.token},
                    cwd=cwd or self.directory,
                    start_new_session=True,
                    pass_fds=tuple(keep_open),
                    extra_groups=[*os.getgroups(), *groups] if groups else None,
                )
        except OSError as error:
            raise ClusterError(f"{argv[0]} cannot be started: {error}") from error
        self._children.append(process)
        return process

    def close(self) -> None:
        """Kill all remaining processes, suspended or not; remove packet rules and the directory. May be called twice.

        Raises:
            ClusterError: processes did not die, or rules could not be removed; names them.
        """
        if self._pipe < 0:
            return
        os.close(self._pipe)
        self._pipe = -1
        try:
            self._watcher.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()
        left = reaper.clean_up(self.token, self.directory) if self.directory.exists() else []
        for child in self._children:
            if child.pid not in left:
                send(child, signal.SIGKILL)  # it runs on only if it wiped its environment
                child.wait()
        os.close(self._lock)
        if left:
            raise ClusterError(f"processes {left} of this run did not die: look at them with ps, they may hold ports")
        if (self.directory / reaper.CONTAINERS).exists():
            raise ClusterError(f"containers with the label fencepost.owner={self.token} are left: docker rm -f them")
        for table in (table for mark, table in reaper.CHAINS.items() if (self.directory / mark).exists()):
            chain = reaper.chain_of(self.token)
            raise ClusterError(f"iptables keeps the chain {chain} of the table {table}: remove it with -F and -X")

    def __enter__(self) -> ProcessOwner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def sweep(parent: Path) -> list[Path]:
    """Clean up after owners below ``parent`` that died together with their reapers; returns their directories.

    An owner holds a lock on its directory as long as it lives, so a directory that can be locked has none.
    """
    swept = []
    for home in parent.glob(f"{PREFIX}{'[0-9a-f]' * 16}/"):  # no other program gives a folder such a name
        try:
            held = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue  # gone in the meantime, or owned by another user
        try:
            if _owned_by_us(held) and lock.try_take(held):
                reaper.clean_up(home.name.removeprefix(PREFIX), home)
                swept.append(home)
        finally:
            os.close(held)
    return swept


def wait_ended(process: Process, within_s: float) -> int:
    """Wait for ``process`` to end and reap it; its exit code (negative: the number of the signal).

    Raises:
        WaitTimeout: it still runs.
    """

    def ended() -> tuple[int] | None:
        code = process.poll()
        return None if code is None else (int(code),)

    name = f"process {process.pid} to end"
    return eventually(ended, within_s, name, state=lambda: str(process.status()), every_s=0.005)[0]


def send(process: Process, number: int) -> None:
    """Send a signal; no-op when the process has ended."""
    with suppress(psutil.NoSuchProcess):
        if process.poll() is None:
            process.send_signal(signal.Signals(number))


def _locked_directory(parent: Path, token: str) -> tuple[Path, int]:
    home = parent / f"{PREFIX}{token}"
    while True:
        home.mkdir(mode=0o700, exist_ok=True)
        held = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        lock.take(held)
        if home.exists():
            return home, held
        os.close(held)  # a sweep removed it between mkdir and lock: again


def _start_reaper(token: str, home: Path) -> tuple[int, subprocess.Popen[bytes]]:
    theirs, ours = os.pipe()
    try:
        watcher = subprocess.Popen(
            # -P: the folder of the script must not shadow modules of the standard library.
            [sys.executable, "-P", str(Path(reaper.__file__)), token, str(home)],
            stdin=theirs,
            stdout=subprocess.PIPE,
            # If we have an owner ourselves, its reaper must not kill ours.
            env={name: value for name, value in os.environ.items() if name != reaper.TOKEN_VARIABLE},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        os.close(ours)
        raise ClusterError(f"the reaper cannot be started: {error}") from error
    finally:
        os.close(theirs)
    assert watcher.stdout is not None
    with watcher.stdout as output:
        if output.readline() != b"ready\n":
            os.close(ours)
            raise ClusterError(f"the reaper ended at once with exit code {watcher.wait()}: is psutil installed?")
    return ours, watcher


def _owned_by_us(descriptor: int) -> bool:
    return os.fstat(descriptor).st_uid == os.getuid()
