"""The cleaner: a small process that removes what a run made in what belongs to others, however its harness ended.

Like the reaper it holds one end of a pipe as its standard input, of which only the harness holds the other one: end of
file means that the harness is done, or gone. There is one way to clean up, and this is it. The reaper leaves it alone,
and neither Ctrl-C nor the end of the harness reaches it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from fencepost.errors import ClusterError
from fencepost.processes.reaper import TOKEN_VARIABLE

READY = b"ready\n"


class Cleaner:
    """The running process."""

    def __init__(self, module: str, task: str) -> None:
        """Start it.

        Args:
            module: the one that is run: it calls ``serve``.
            task: a line that says what is to be done in the end.

        Raises:
            ClusterError: it does not start.
        """
        environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Told through the pipe, and so in no file: there may be secrets in it.
        with suppress(BrokenPipeError):
            self._process.stdin.write(task.encode() + b"\n")
            self._process.stdin.flush()
        if self._process.stdout.readline() != READY:
            self.finish(0)
            raise ClusterError("the process that removes what a run makes elsewhere did not start")

    def finish(self, within_s: float) -> list[str]:
        """Let it clean up and end; what it could not do. May be called twice."""
        if self._process.stdout is None or self._process.stdout.closed:
            return []
        try:
            said, _ = self._process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            return [f"what process {self._process.pid} still tries to remove"]
        return said.decode(errors="replace").splitlines()


def serve(perform: Callable[[str], Sequence[str]]) -> None:
    """Read the task, wait for the end of the harness, clean up, and say what could not be done.

    Args:
        perform: does the task; gives a sentence about each thing that is left.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever ends the harness with a signal must not end us before it
    task = sys.stdin.buffer.readline().decode()
    _say(READY.decode().strip())
    while os.read(0, 1):
        pass
    for sentence in perform(task):
        _say(sentence)


def _say(sentence: str) -> None:
    with suppress(BrokenPipeError):
        print(sentence, flush=True)
