"""How a member processes a record's content: it ignores it, calls a handler, produces a result to another topic, writes
a dead letter, or re-queues the record at the end of its own partition."""

from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, Tuple

from fencepost_member.adapters import Headers, Output, Tp
from fencepost_member.config import PARK, REQUEUE, LoopConfig
from fencepost_member.user_functions import encoded, handler_of, poisoned

Content = Tuple[Optional[bytes], Optional[bytes], Headers]  # key, value, headers
Handler = Callable[[Optional[bytes], Optional[bytes]], Any]


class OverdueError(Exception):
    """The handler of a record took longer than its deadline, and the record is neither parked nor re-queued."""


class Disposition:
    """Processes contents. Any thread may call it; only the polling thread calls ``assigning``."""

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """Process the record at ``offset``. False: it cannot be processed, and was parked or re-queued."""
        raise NotImplementedError

    def overdue(self, tp: Tp, offset: int, content: Content) -> bool:
        """Park or re-queue a record whose handler took too long; returns False. Raises OverdueError if neither is
        configured."""
        raise OverdueError

    def assigning(self, partitions: List[Tp]) -> None:
        """Called in the assigned callback, before the client applies it."""


def disposition_for(
    loop: LoopConfig, output: Optional[Output], parking: Callable[..., Disposition]
) -> Optional[Disposition]:
    """The treatment that the loop's configuration asks for; None: contents are ignored.

    Args:
        parking: the class, or a function, that creates a ``DeadLetter``.

    Raises:
        ConfigError: the handler cannot be imported.
    """
    handler: Optional[Handler] = None
    parks = loop.on_failure in (PARK, REQUEUE)
    if loop.handler:
        handler = handler_of(loop.handler)
    elif loop.poison_every or parks:
        handler = poisoned(loop.poison_every)
    if output is None:
        return CallHandler(handler) if handler else None
    return parking(loop, handler, output) if parks else Produce(handler, output)


class CallHandler(Disposition):
    """Calls the handler; its exception ends the member."""

    def __init__(self, handler: Handler) -> None:
        """``handler`` is the user's."""
        self._handler = handler

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Disposition``."""
        self._handler(*content[:2])
        return True


class Produce(Disposition):
    """Writes the handler's result to the output, or the record's own value if there is no handler. The handler's
    exception ends the member."""

    def __init__(self, handler: Optional[Handler], output: Output) -> None:
        """``handler`` is the user's; None: there is none."""
        self._handler, self._output = handler, output

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Disposition``."""
        made = self._handler(*content[:2]) if self._handler else content[1]
        self._output.write(tp, offset, content[0], made if made is None else encoded(made))
        return True


class DeadLetter(Disposition):
    """Calls the handler several times, and writes a record that still fails to the output unchanged: as a dead letter,
    or, if the output is the record's own partition, at its end (the record is re-queued)."""

    def __init__(self, loop: LoopConfig, handler: Handler, output: Output) -> None:
        """``handler`` raises an exception on failure; ``loop`` has ``attempts`` and ``retry_ms``."""
        self._attempts, self._retry_s = loop.attempts, loop.retry_ms / 1000
        self._handler, self._output = handler, output
        self._never = threading.Event()  # retries wait on it

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Disposition``."""
        for attempt in range(self._attempts):
            if attempt:
                self._never.wait(self._retry_s)
            try:
                self._handler(*content[:2])
                return True
            except Exception:  # any failure of the handler leads to a dead letter
                self.failed(tp, offset, content)
        return self.gave_up(tp, offset, content)

    def overdue(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Disposition``: the record is not tried again."""
        return self.gave_up(tp, offset, content)

    def failed(self, tp: Tp, offset: int, content: Content) -> None:
        """An attempt failed."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """The record cannot be processed; see ``Disposition``."""
        self._output.write(tp, offset, *content)
        return False


class OrderedDeadLetter(DeadLetter):
    """Parks also the later records of a parked record's key, which keeps the order of each key.

    A member that is assigned a partition reads which keys earlier owners parked in it.
    """

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Disposition``."""
        if content[0] is not None and self._output.parked.holds(tp, content[0]):
            return self.gave_up(tp, offset, content)
        return super().__call__(tp, offset, content)

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``DeadLetter``."""
        if content[0] is not None:
            self._output.parked.add(tp, offset, content[0])
        return super().gave_up(tp, offset, content)

    def assigning(self, partitions: List[Tp]) -> None:
        """See ``Disposition``."""
        self._output.parked.assigning(partitions)
