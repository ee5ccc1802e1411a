"""What becomes of a record's content: nothing, a handler's business, a record in another topic, a dead letter, or the
same record at the end of its own partition."""

from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, Tuple

from fencepost_member.adapters import Headers, Output, Tp
from fencepost_member.config import PARK, REQUEUE, LoopConfig
from fencepost_member.functions import encoded, handler_of, poisoned

Content = Tuple[Optional[bytes], Optional[bytes], Headers]  # key, value, headers
Handler = Callable[[Optional[bytes], Optional[bytes]], Any]


class OverdueError(Exception):
    """The handler of a record takes longer than it may."""


class Treatment:
    """Any thread may treat records; the one that polls takes partitions."""

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """Treat the record at ``offset``. False: it cannot be processed, and is parked."""
        raise NotImplementedError

    def overdue(self, tp: Tp, offset: int, content: Content) -> bool:
        """What becomes of a record whose handler takes too long; likewise. Raises OverdueError: nothing."""
        raise OverdueError

    def taking(self, partitions: List[Tp]) -> None:
        """In the assigned callback, before the client takes partitions."""


def treatment(loop: LoopConfig, output: Optional[Output], parking: Callable[..., Treatment]) -> Optional[Treatment]:
    """What the loop asks for; None: contents do not matter.

    Args:
        parking: what makes a ``Parking``.

    Raises:
        ConfigError: there is no such handler.
    """
    handler: Optional[Handler] = None
    parks = loop.on_failure in (PARK, REQUEUE)
    if loop.handler:
        handler = handler_of(loop.handler)
    elif loop.poison_every or parks:
        handler = poisoned(loop.poison_every)
    if output is None:
        return Calling(handler) if handler else None
    return parking(loop, handler, output) if parks else Making(handler, output)


class Calling(Treatment):
    """The handler sees to it; what it raises ends the member."""

    def __init__(self, handler: Handler) -> None:
        """``handler`` is the user's."""
        self._handler = handler

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Treatment``."""
        self._handler(*content[:2])
        return True


class Making(Treatment):
    """What the handler gives is written to the output; without one, the record's own value. What it raises ends the
    member."""

    def __init__(self, handler: Optional[Handler], output: Output) -> None:
        """``handler`` is the user's, if there is one."""
        self._handler, self._output = handler, output

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Treatment``."""
        made = self._handler(*content[:2]) if self._handler else content[1]
        self._output.write(tp, offset, content[0], made if made is None else encoded(made))
        return True


class Parking(Treatment):
    """A record is tried several times, and what still fails is written to the output as it is: a dead letter, or where
    the output is the record's own partition, the record once more, behind all others (it is re-queued)."""

    def __init__(self, loop: LoopConfig, handler: Handler, output: Output) -> None:
        """``handler`` raises where it fails; of ``loop`` count ``attempts`` and ``retry_ms``."""
        self._attempts, self._retry_s = loop.attempts, loop.retry_ms / 1000
        self._handler, self._output = handler, output
        self._never = threading.Event()  # who waits to try again waits on it

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Treatment``."""
        for attempt in range(self._attempts):
            if attempt:
                self._never.wait(self._retry_s)
            try:
                self._handler(*content[:2])
                return True
            except Exception:  # whatever the handler raises: of these things dead letters are made
                self.failed(tp, offset, content)
        return self.gave_up(tp, offset, content)

    def overdue(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Treatment``: it is not tried again."""
        return self.gave_up(tp, offset, content)

    def failed(self, tp: Tp, offset: int, content: Content) -> None:
        """An attempt failed."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """The record cannot be processed; see ``Treatment``."""
        self._output.write(tp, offset, *content)
        return False


class InOrder(Parking):
    """What comes after a record that is parked, under its key, is parked behind it: in each entity's order.

    Whoever takes a partition learns what others parked of it.
    """

    def __call__(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Treatment``."""
        if content[0] is not None and self._output.parked.holds(tp, content[0]):
            return self.gave_up(tp, offset, content)
        return super().__call__(tp, offset, content)

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Parking``."""
        if content[0] is not None:
            self._output.parked.add(tp, offset, content[0])
        return super().gave_up(tp, offset, content)

    def taking(self, partitions: List[Tp]) -> None:
        """See ``Treatment``."""
        self._output.parked.taking(partitions)
