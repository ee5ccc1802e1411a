"""Records the offsets in a producer's transactions as commits of the consumers that own the partitions.

Such a commit begins when its offsets are sent, and ends with the transaction (KIP-98). As with any commit, records
below the offsets are processed when the offsets are sent, however the transaction ends.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

from fencepost_member.committing.commits import Answer
from fencepost_member.config import TRANSACTION
from fencepost_member.instrument.program import InstrumentedProgram
from fencepost_member.ownership import Tp

ABORTED = "LOCAL_PURGE_QUEUE"  # the program aborted without an error; the client reports its records by this name


class InstrumentedTransactions:
    """The transactions of one producer, one after the other."""

    def __init__(self, program: InstrumentedProgram, error_name: Callable[[Exception], str]) -> None:
        """``error_name`` returns Kafka's name of an exception of the library."""
        self._program, self._error_name = program, error_name
        self._sent: List[Tuple[Dict[Tp, int], Answer]] = []  # of the open transaction
        self._error = ""

    @classmethod
    def of(
        cls, producer: Any, program: InstrumentedProgram, error_name: Callable[[Exception], str]
    ) -> InstrumentedTransactions:
        """The transactions of a producer whose functions are replaced one by one (see ``python_recorder.replace``)."""
        found: InstrumentedTransactions = vars(producer).setdefault("_fencepost", cls(program, error_name))
        return found

    def begun(self) -> None:
        """A transaction begins. If the previous one has not ended, its outcome stays unknown."""
        self._sent, self._error = [], ""

    @contextmanager
    def sending(self, offsets: Mapping[Tp, int]) -> Iterator[None]:
        """Around a call that sends next offsets. A retry with the same offsets is not another commit."""
        before = {tp: offset for meant, _ in self._sent for tp, offset in meant.items()}
        new = {tp: offset for tp, offset in offsets.items() if before.get(tp) != offset}
        for consumer, meant in self._program.of_consumers(new):
            self._sent.append((meant, consumer.committing(meant, True, True, TRANSACTION)))
        with self._failing():
            yield

    @contextmanager
    def ending(self, committed: bool) -> Iterator[None]:
        """Around a call that commits or aborts the transaction. After a failure the program tries again or aborts;
        if it does neither, the outcome stays unknown."""
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
