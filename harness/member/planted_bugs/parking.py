"""Planted bugs: members that mishandle records that they cannot process. See ``planted_bugs``.

``swallowed-errors``
    Catches the exception of its handler, writes no dead letter, and records the record as processed.
``letter-per-attempt``
    Writes a dead letter for each failed attempt, and so several for one record.
``forgotten-keys``
    Parks later records of a parked key, but does not read which keys earlier owners of the partition parked.
``unwritten-letters``
    Buffers dead letters to write many of them at once, and commits meanwhile.
``first-retried``
    Processes records of a key again as soon as one of its dead letters is retried, while others still wait.

Members that re-queue records:

``unwritten-copies``
    Records the record as re-queued, but never writes it.
``copied-twice``
    Writes the record twice, like a program that repeats a write after a timeout.
``copied-and-done``
    Re-queues the record, and also records it as processed, like a handler that continues after re-queueing.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from fencepost_member.adapters import ClientListener, Headers, Tp
from fencepost_member.config import MemberConfig
from fencepost_member.processing.dispositions import Content, DeadLetter, OrderedDeadLetter

MANY = 1000


class SwallowedErrors(DeadLetter):
    """The bug ``swallowed-errors``, see the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``DeadLetter``."""
        return True


class LetterPerAttempt(DeadLetter):
    """The bug ``letter-per-attempt``, see the module."""

    def failed(self, tp: Tp, offset: int, content: Content) -> None:
        """See ``DeadLetter``."""
        self._output.write(tp, offset, *content)

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``DeadLetter``."""
        return False


class ForgottenKeys(OrderedDeadLetter):
    """The bug ``forgotten-keys``, see the module."""

    def assigning(self, partitions: List[Tp]) -> None:
        """See ``Disposition``."""


class UnwrittenLetters:
    """The bug ``unwritten-letters``, see the module. Satisfies ``adapters.Output``."""

    def __init__(self, config: MemberConfig, adapter: Any, listener: ClientListener) -> None:
        """See ``adapters.Outputs``."""
        self._adapter, self._library = adapter, adapter.output(config, listener)
        self.identity, self.settings, self.start = adapter.identity, self._library.settings, self._library.start
        self.parked = self._library.parked
        self._letters: List[Tuple[Tp, int, Optional[bytes], Optional[bytes], Headers]] = []

    def write(self, tp: Tp, offset: int, key: Optional[bytes], value: Optional[bytes], headers: Headers = None) -> None:
        """See ``adapters.Output``."""
        self._letters.append((tp, offset, key, value, headers))
        if len(self._letters) == MANY:
            self._write()

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``adapters.Output``."""
        return self._adapter.commit(offsets)  # type: ignore[no-any-return]

    def close(self) -> None:
        """See ``adapters.Output``."""
        self._write()
        self._library.commit({})
        self._library.close()

    def _write(self) -> None:
        while self._letters:
            self._library.write(*self._letters.pop())


def first_retried(config: MemberConfig, adapter: Any, listener: ClientListener) -> Any:
    """The bug ``first-retried``, see the module and ``adapters.Outputs``."""
    output = adapter.output(config, listener)
    parked, was_retried = output.parked, output.parked.was_retried

    def all_of_its_key(letter: bytes) -> None:
        if letter in parked.entries:
            tp, key = parked.entries[letter]
            for each in set(parked.waiting[tp][key]):
                was_retried(each)

    parked.was_retried = all_of_its_key
    return output


class UnwrittenCopies(DeadLetter):
    """The bug ``unwritten-copies``, see the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``DeadLetter``."""
        return False


class CopiedTwice(DeadLetter):
    """The bug ``copied-twice``, see the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``DeadLetter``."""
        self._output.write(tp, offset, *content)
        return super().gave_up(tp, offset, content)


class CopiedAndDone(DeadLetter):
    """The bug ``copied-and-done``, see the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``DeadLetter``."""
        return not super().gave_up(tp, offset, content)


# Name -> replacement of ``DeadLetter`` (PARKINGS, REQUEUES) or of the adapter's ``output`` (LETTERS). A member that
# parks or re-queues can have these bugs only.
PARKINGS: Dict[str, Callable[..., Any]] = {
    "swallowed-errors": SwallowedErrors,
    "letter-per-attempt": LetterPerAttempt,
    "forgotten-keys": ForgottenKeys,
}
LETTERS: Dict[str, Callable[[MemberConfig, Any, ClientListener], Any]] = {
    "unwritten-letters": UnwrittenLetters,
    "first-retried": first_retried,
}
REQUEUES: Dict[str, Callable[..., Any]] = {
    "unwritten-copies": UnwrittenCopies,
    "copied-twice": CopiedTwice,
    "copied-and-done": CopiedAndDone,
}
