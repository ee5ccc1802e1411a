"""The cleaner: a small process that removes what a run created in foreign systems, however its harness ended.

Like the reaper it has one end of a pipe as its standard input, and only the harness holds the other end: end of file
means that the harness has finished or died. There is no other clean-up. The reaper does not kill the cleaner, and
neither Ctrl-C nor the end of the harness ends it. It reports what it could not remove to the harness. If the harness is
gone, it writes that to the standard error of the harness, where a user still finds it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from fencepost.errors import ClusterError
from fencepost.processes.reaper import TOKEN_VARIABLE

READY = b"ready\n"
GOODBYE = b"."
FAILED = 1


class CleanupProcess:
    """The running process."""

    def __init__(self, module: str, task: str, keep_open: Sequence[int] = ()) -> None:
        """Start it.

        Args:
            module: the module to run, which calls ``serve``.
            task: a line that describes the clean-up.
            keep_open: file descriptors that it holds until it has ended.

        Raises:
            ClusterError: it does not start.
        """
        environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
            pass_fds=keep_open,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Passed through the pipe, and not in a file: it may contain secrets.
        with suppress(BrokenPipeError):
            self._process.stdin.write(task.encode() + b"\n")
            self._process.stdin.flush()
        if self._process.stdout.readline() != READY:
            self.finish(0)
            raise ClusterError("the process that removes what a run creates elsewhere did not start")

    def finish(self, within_s: float) -> list[str]:
        """Let it clean up and end; returns a sentence about each failure. May be called twice."""
        if self._process.stdout is None or self._process.stdout.closed:
            return []
        try:
            answer, _ = self._process.communicate(GOODBYE, timeout=within_s)
        except subprocess.TimeoutExpired:
            return [f"everything that process {self._process.pid} is still removing"]
        left, code = answer.decode(errors="replace").splitlines(), self._process.returncode
        return left or ([f"what the clean-up did not remove before it ended with exit code {code}"] if code else [])


def serve(perform: Callable[[str, bool], Sequence[str]]) -> None:
    """Read the task, wait for the end of the harness, clean up, and report failures.

    Args:
        perform: performs the task, given whether the harness died before it asked for that; returns a sentence about
            each object that it could not remove.

    Raises:
        SystemExit: it failed with an error, which was reported; the exit code is ``FAILED``.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a signal to the harness's whole group must not end us before it
    task = sys.stdin.buffer.readline().decode()
    terminal = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)  # what libraries log is not for the user
    with suppress(BrokenPipeError):
        os.write(1, READY)
    died = True
    while os.read(0, 1):
        died = False
    try:
        left, code = perform(task, died), 0
    except Exception as error:  # a defect, and nobody else is left to report it
        why = " ".join(f"{type(error).__name__}: {error}".split())
        left, code = [f"what was not removed before the clean-up failed ({why})"], FAILED
        with suppress(OSError):
            os.write(terminal, traceback.format_exc().encode())
    for sentence in left:
        _report(sentence, terminal)
    sys.exit(code)


def _report(sentence: str, terminal: int) -> None:
    """Tell the harness; if it does not listen any more, write to its standard error."""
    try:
        os.write(1, f"{sentence}\n".encode())
    except BrokenPipeError:
        with suppress(OSError):  # the terminal was closed, too
            os.write(terminal, f"fencepost left behind: {sentence}\n".encode())
