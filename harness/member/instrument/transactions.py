"""Offsets that a producer of the program sends in its transaction: commits of the consumers that own the partitions.

Such a commit begins when its offsets are sent, and is answered when the transaction has ended (KIP-98). The program is
done with what is below them when it sends them, whatever becomes of the transaction, as with any commit.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

from fencepost_member.commits import Answer
from fencepost_member.config import TRANSACTION
from fencepost_member.instrument.program import Program
from fencepost_member.ownership import Tp

ABORTED = "LOCAL_PURGE_QUEUE"  # by the program, which met no error: as the client tells of the records in it


class Transactions:
    """Those of one producer, one after the other. A program without any calls nothing here."""

    def __init__(self, program: Program, error_name: Callable[[Exception], str]) -> None:
        """``error_name`` is Kafka's name of what the library raises."""
        self._program, self._error_name = program, error_name
        self._sent: List[Tuple[Dict[Tp, int], Answer]] = []  # of the one that is open
        self._error = ""

    @classmethod
    def of(cls, producer: Any, program: Program, error_name: Callable[[Exception], str]) -> Transactions:
        """Those of a producer whose functions are replaced one by one, and which has no constructor of ours."""
        found: Transactions = vars(producer).setdefault("_fencepost", cls(program, error_name))
        return found

    def begun(self) -> None:
        """One begins; how the one before ended nobody knows, if it did not."""
        self._sent, self._error = [], ""

    @contextmanager
    def sending(self, offsets: Mapping[Tp, int]) -> Iterator[None]:
        """Around a call that sends next offsets. To try that again is no commit of its own."""
        before = {tp: offset for meant, _ in self._sent for tp, offset in meant.items()}
        new = {tp: offset for tp, offset in offsets.items() if before.get(tp) != offset}
        for consumer, meant in self._program.of_consumers(new):
            self._sent.append((meant, consumer.committing(meant, True, True, TRANSACTION)))
        with self._failing():
            yield

    @contextmanager
    def ending(self, committed: bool) -> Iterator[None]:
        """Around a call that commits the transaction, or aborts it. One that fails is tried again, or the transaction
        is aborted instead; else nobody knows how it ended."""
        with self._failing():
            yield
        error = "" if committed else self._error or ABORTED
        sent, self._sent, self._error = self._sent, [], ""
        for meant, answered in sent:
            answered(meant, dict.fromkeys(meant, error))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._error = self._error_name(error)
            raise
