"""Runs the callbacks of clients that are written in Python on the thread of the member's loop."""

from __future__ import annotations

import queue
import time
from concurrent.futures import Future
from typing import Any, Callable, Iterable, Optional, Union

from fencepost_member.adapters import ClientListener
from fencepost_member.adapters.errors import FENCED, error_name


def report(
    listener: ClientListener, what: str, partitions: Iterable[Any], apply: Callable[[], None] = lambda: None
) -> None:
    """Call the listener's ``what``: ``assigned``, ``revoked`` or ``lost``. These clients also report a revocation of no
    partitions, which is skipped."""
    tps = sorted((p.topic, p.partition) for p in partitions)
    if tps or what == "assigned":
        getattr(listener, what)(tps, apply)


def report_error(listener: ClientListener, error: BaseException) -> None:
    """Report an exception of a poll."""
    name = error_name(error)
    listener.error(name, repr(error), name == FENCED)


class CallbackBridge:
    """A queue between the threads of a client and the thread of the member's loop."""

    def __init__(self) -> None:
        """The queue is empty."""
        self._asked: queue.SimpleQueue[Union[Callable[[], None], Future[Any]]] = queue.SimpleQueue()

    def submit(self, callback: Callable[[], None]) -> Future[None]:
        """From any thread: have the caller's thread run ``callback``; the future ends when it has run."""
        ran: Future[None] = Future()

        def run() -> None:
            try:
                callback()
            finally:
                ran.set_result(None)

        self._asked.put(run)
        return ran

    def follow(self, call: Future[Any]) -> None:
        """Queue the end of ``call`` in the order in which it happens, even if ``wait`` is called only later."""
        call.add_done_callback(self._asked.put)

    def wait(self, call: Future[Any], within_s: Optional[float] = None) -> bool:
        """On the caller's thread: wait until ``call`` ends (True) or the time is up (False), and run the callbacks that
        other threads queued before."""
        until_s = None if within_s is None else time.monotonic() + within_s
        self.follow(call)
        while True:
            try:
                asked = self._asked.get(timeout=None if until_s is None else max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                return False
            if asked is call:
                return True
            if not isinstance(asked, Future):  # a future here is an earlier call whose wait is over
                asked()
