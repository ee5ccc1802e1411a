"""Members that go wrong with what they cannot process. See ``planted``.

``swallowed-errors``
    Catches what its handler raises, writes no dead letter, and calls the record done.
``letter-per-attempt``
    Writes a dead letter whenever an attempt fails, and so several for one record.
``forgotten-keys``
    Keeps the order of what it parks, but does not look at what others parked before it had the partition.
``unwritten-letters``
    Keeps dead letters back to write many of them at once, and commits meanwhile.
``first-retried``
    Takes a key for free when the first of its letters was retried, and others wait.

What they re-queue, to process it later:

``unwritten-copies``
    Is done with the record as if it had written it again, and has not.
``copied-twice``
    Writes it again twice, as who tries a write again that nobody answered in time.
``copied-and-done``
    Writes it again, and is done with it all the same, as its handler goes on behind it.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from fencepost_member.adapters import Headers, Listener, Tp
from fencepost_member.config import MemberConfig
from fencepost_member.treatment import Content, InOrder, Parking

MANY = 1000


class SwallowedErrors(Parking):
    """See the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Parking``."""
        return True


class LetterPerAttempt(Parking):
    """See the module."""

    def failed(self, tp: Tp, offset: int, content: Content) -> None:
        """See ``Parking``."""
        self._output.write(tp, offset, *content)

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Parking``."""
        return False


class ForgottenKeys(InOrder):
    """See the module."""

    def taking(self, partitions: List[Tp]) -> None:
        """See ``Treatment``."""


class UnwrittenLetters:
    """See the module. Satisfies ``adapters.Output``."""

    def __init__(self, config: MemberConfig, adapter: Any, listener: Listener) -> None:
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


def first_retried(config: MemberConfig, adapter: Any, listener: Listener) -> Any:
    """See the module, and ``adapters.Outputs``."""
    output = adapter.output(config, listener)
    parked, was_retried = output.parked, output.parked.was_retried

    def all_of_its_key(letter: bytes) -> None:
        if letter in parked.entries:
            tp, key = parked.entries[letter]
            for each in set(parked.waiting[tp][key]):
                was_retried(each)

    parked.was_retried = all_of_its_key
    return output


class UnwrittenCopies(Parking):
    """See the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Parking``."""
        return False


class CopiedTwice(Parking):
    """See the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Parking``."""
        self._output.write(tp, offset, *content)
        return super().gave_up(tp, offset, content)


class CopiedAndDone(Parking):
    """See the module."""

    def gave_up(self, tp: Tp, offset: int, content: Content) -> bool:
        """See ``Parking``."""
        return not super().gave_up(tp, offset, content)


# Name -> what takes the place of ``Parking``, or of the adapter's own ``output``, in a member that parks; there the
# others are not.
PARKINGS: Dict[str, Callable[..., Any]] = {
    "swallowed-errors": SwallowedErrors,
    "letter-per-attempt": LetterPerAttempt,
    "forgotten-keys": ForgottenKeys,
}
LETTERS: Dict[str, Callable[[MemberConfig, Any, Listener], Any]] = {
    "unwritten-letters": UnwrittenLetters,
    "first-retried": first_retried,
}
REQUEUES: Dict[str, Callable[..., Any]] = {
    "unwritten-copies": UnwrittenCopies,
    "copied-twice": CopiedTwice,
    "copied-and-done": CopiedAndDone,
}
