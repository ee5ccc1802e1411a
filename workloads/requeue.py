"""Re-queueing: a record that takes too long, or cannot be processed yet, is appended to its partition again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from fencepost.history import EventKind
from fencepost.interfaces import Promise
from fencepost.workloads._common import at_least_once, check_deadline
from fencepost.workloads._writing import Writing
from fencepost_member.config import REQUEUE, TRANSACTION
from fencepost_member.planted_bugs import REQUEUES


@dataclass(frozen=True)
class Requeue(Writing):
    """One thread per member polls; a record that takes too long is written again to the end of its partition, and then
    counts as processed. Its copy is an ordinary record, which is re-queued in turn if it takes too long.

    The harness reads the copies from the topics after the run. See ``Load`` for the records that producers write, and
    ``Writing`` for the other options. Later records of the key are processed before the copy, so re-queueing suits only
    records that are independent of each other. Other groups that read the topics receive both the record and its copy.

    Attributes:
        handler: the function that processes records; a record for which it raises is re-queued. A record that can never
            be processed is re-queued for ever.
        deadline_ms: the time limit of the built-in handler; with a ``handler`` it must be 0. For the member to keep its
            partitions, all records of a poll should be re-queued within ``max.poll.interval.ms``.
    """

    commit: str = "after-processing"
    deadline_ms: float = 500
    policies: ClassVar[Collection[str]] = ("after-processing", "after-batch", TRANSACTION)
    bugs: ClassVar[Collection[str]] = REQUEUES
    holds: ClassVar[EventKind] = EventKind.REQUEUED
    into: ClassVar[str] = ""
    on_failure: ClassVar[str] = REQUEUE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_deadline(self.deadline_ms, self.handler_ms, self.handler)

    def promises(self) -> Collection[Promise]:
        """At-least-once, and each re-queued record is in the log again; with transactions exactly once.

        ``Order`` uses the order of the log, where a re-queued record has the position of its last copy.
        """
        from fencepost.checkers import Requeued

        requeued = Requeued("exactly-once" if self.commit == TRANSACTION else "at-least-once")
        return at_least_once(requeued, by_key=True)
