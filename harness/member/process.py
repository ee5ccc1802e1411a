"""What member and producer processes have in common: signals, arguments, exit codes.

Exit codes: 0 after a clean end, 2 when the configuration cannot be used, 3 when the client gave up for good.
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
from fencepost_member.events import EventLog
from fencepost_member.recorder import Recorder

BAD_CONFIG, GAVE_UP = 2, 3


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


class Stall:
    """Whether handlers are to be slow: from SIGUSR1 to SIGUSR2, which nothing else of a member listens to.

    Attributes:
        asked: looked at for every record, so it is a plain field.
    """

    CHECK_S = 0.01

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.asked = False
        self._never = threading.Event()

    def listen(self) -> None:
        """From now on signals are heard."""
        signal.signal(signal.SIGUSR1, lambda *_: self._set(True))
        signal.signal(signal.SIGUSR2, lambda *_: self._set(False))

    def wait(self, most_s: float = math.inf) -> bool:
        """Return when nobody asks for it any more: True; or after so long: False."""
        until_s = time.monotonic() + most_s
        while self.asked:
            if time.monotonic() >= until_s:
                return False
            self._never.wait(self.CHECK_S)
        return True

    def _set(self, asked: bool) -> None:
        self.asked = asked


class Reload:
    """Whether the configuration file is to be read again: at SIGHUP, which nothing else of a member listens to."""

    def __init__(self, read: Callable[[], MemberConfig]) -> None:
        """``read`` reads it."""
        self._read, self._asked = read, False

    def listen(self) -> None:
        """From now on the signal is heard."""
        signal.signal(signal.SIGHUP, lambda *_: self._ask())

    def read(self) -> Optional[MemberConfig]:
        """What it says now, if anybody asked since the last time."""
        asked, self._asked = self._asked, False
        return self._read() if asked else None

    def _ask(self) -> None:
        self._asked = True


def event_file(run: str, actor: str) -> Path:
    """Where ``actor`` tells its events, below the history folder ``run``."""
    return Path(run) / "events" / (actor + ".jsonl")


def open_history(run: str, actor: str, now: Callable[[], int] = time.monotonic_ns) -> Tuple[EventLog, Recorder]:
    """The files in which ``actor`` records, below the history folder ``run``, by the clock ``now``."""
    events = EventLog(event_file(run, actor), actor, now)
    return events, Recorder(Path(run) / "segments", actor, now=now)


def run(program: Callable[[Sequence[str]], int], usage: str) -> int:
    """Run ``program`` with the arguments of this process; what is wrong with them is a sentence and exit code 2."""
    faulthandler.enable()
    if len(sys.argv) != 2:
        print(usage, file=sys.stderr)
        return BAD_CONFIG
    try:
        return program(sys.argv[1:])
    except ConfigError as error:
        print(error, file=sys.stderr)
        return BAD_CONFIG
