"""The common parts of member and producer processes: signals, arguments, exit codes.

Exit codes: 0 after a clean end, 2 when the configuration cannot be used, 3 after a fatal error of the client.
Anything else (a traceback on stderr, a signal) is a crash.
"""

from __future__ import annotations

import faulthandler
import math
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Optional, Sequence, Tuple

from fencepost_member.config import ConfigError, MemberConfig
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import Recorder
from fencepost_member.stacks import print_on_signal

BAD_CONFIG, GAVE_UP = 2, 3


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


class StallSwitch:
    """Whether handlers must stall: from SIGUSR1 to SIGUSR2, which nothing else in a member uses.

    Attributes:
        asked: whether they must now; a plain field, because it is read for every record.
    """

    CHECK_S = 0.01

    def __init__(self) -> None:
        """No stall yet."""
        self.asked = False
        self._never = threading.Event()

    def listen(self) -> None:
        """Install the signal handlers."""
        signal.signal(signal.SIGUSR1, lambda *_: self._set(True))
        signal.signal(signal.SIGUSR2, lambda *_: self._set(False))

    def wait(self, most_s: float = math.inf) -> bool:
        """Wait until the stall is over (True), or for ``most_s`` (False)."""
        until_s = time.monotonic() + most_s
        while self.asked:
            if time.monotonic() >= until_s:
                return False
            self._never.wait(self.CHECK_S)
        return True

    def _set(self, asked: bool) -> None:
        self.asked = asked


class ReloadSwitch:
    """Reads the configuration file again after SIGHUP, which nothing else in a member uses."""

    def __init__(self, read: Callable[[], MemberConfig]) -> None:
        """``read`` reads the file."""
        self._read, self._asked = read, False

    def listen(self) -> None:
        """Install the signal handler."""
        signal.signal(signal.SIGHUP, lambda *_: self._ask())

    def read(self) -> Optional[MemberConfig]:
        """The configuration as it is now, if a signal arrived since the last call; otherwise None."""
        asked, self._asked = self._asked, False
        return self._read() if asked else None

    def _ask(self) -> None:
        self._asked = True


def event_file(run: str, actor: str) -> Path:
    """The event file of ``actor``, below the history folder ``run``."""
    return Path(run) / "events" / (actor + ".jsonl")


def open_history(run: str, actor: str, now: Callable[[], int] = time.monotonic_ns) -> Tuple[EventLog, Recorder]:
    """The event log and the recorder of ``actor``, below the history folder ``run``, with the clock ``now``."""
    events = EventLog(event_file(run, actor), actor, now)
    return events, Recorder(Path(run) / "segments", actor, now=now)


def run(program: Callable[[Sequence[str]], int], usage: str) -> int:
    """Run ``program`` with the arguments of this process. Wrong arguments are a message on stderr and exit code 2."""
    faulthandler.enable()
    print_on_signal()
    if len(sys.argv) != 2:
        print(usage, file=sys.stderr)
        return BAD_CONFIG
    try:
        return program(sys.argv[1:])
    except ConfigError as error:
        print(error, file=sys.stderr)
        return BAD_CONFIG
