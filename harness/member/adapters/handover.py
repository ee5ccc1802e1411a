"""What clients that are written in Python call back: telling it, on the thread of the member's loop."""

from __future__ import annotations

import queue
import time
from concurrent.futures import Future
from typing import Any, Callable, Iterable, Optional, Union

from fencepost_member.adapters import Listener
from fencepost_member.adapters.errors import FENCED, error_name


def tell(listener: Listener, what: str, partitions: Iterable[Any], apply: Callable[[], None] = lambda: None) -> None:
    """That these were ``assigned``, ``revoked`` or ``lost``. Such clients say so also when none was taken away."""
    tps = sorted((p.topic, p.partition) for p in partitions)
    if tps or what == "assigned":
        getattr(listener, what)(tps, apply)


def tell_error(listener: Listener, error: BaseException) -> None:
    """An exception of a poll."""
    name = error_name(error)
    listener.error(name, repr(error), name == FENCED)


class Handover:
    """For a client with threads of its own: between these and the thread of the member's loop."""

    def __init__(self) -> None:
        """Nobody has asked for anything."""
        self._asked: queue.SimpleQueue[Union[Callable[[], None], Future[Any]]] = queue.SimpleQueue()

    def ask(self, callback: Callable[[], None]) -> Future[None]:
        """From any thread: have the caller's thread run this; the answer comes when it has."""
        ran: Future[None] = Future()

        def run() -> None:
            try:
                callback()
            finally:
                ran.set_result(None)

        self._asked.put(run)
        return ran

    def follow(self, call: Future[Any]) -> None:
        """Whoever waits for ``call`` hears of its end in the order in which it came, also when that is sooner."""
        call.add_done_callback(self._asked.put)

    def wait(self, call: Future[Any], within_s: Optional[float] = None) -> bool:
        """On the caller's thread: until ``call`` ends (True), or time is up. What others ask for before is run."""
        until_s = None if within_s is None else time.monotonic() + within_s
        self.follow(call)
        while True:
            try:
                asked = self._asked.get(timeout=None if until_s is None else max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                return False
            if asked is call:
                return True
            if not isinstance(asked, Future):  # that is an earlier call, for which nobody waits any more
                asked()
