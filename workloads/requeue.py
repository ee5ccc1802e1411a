"""Re-queueing: what takes too long, or cannot be processed yet, goes to the end of its partition, and comes again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from fencepost.history import EventKind
from fencepost.interfaces import Promise
from fencepost.workloads._common import at_least_once, check_deadline
from fencepost.workloads._writing import Writing
from fencepost_member.config import REQUEUE, TRANSACTION
from fencepost_member.planted import REQUEUES


@dataclass(frozen=True)
class Requeue(Writing):
    """One thread per member polls; a record that takes too long is written again, behind all others of its partition,
    and finished by that. Its copy is a record as any other: it may be re-queued again, as often as it takes too long.

    Which records were written again is read in the topics once the run is over. See ``Load`` for what producers write,
    and ``Writing`` for the other options. What comes after the record, under its key, is processed before its copy is:
    that is for records that have nothing to do with each other. Other groups that read the topics see both.

    Attributes:
        handler: what processes records; a record for which it raises is re-queued. One that can never be processed
            goes round for ever.
        deadline_ms: a handler of ours gets no longer for a record; with a ``handler`` it is 0. So that the member keeps
            its partitions, all records of a poll should be re-queued within ``max.poll.interval.ms``.
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
        """At-least-once, and what is re-queued comes again; with transactions once.

        ``Order`` goes by the log, in which a copy lies where it was written last.
        """
        from fencepost.checkers import Requeued

        requeued = Requeued("exactly-once" if self.commit == TRANSACTION else "at-least-once")
        return at_least_once(requeued, by_key=True)
