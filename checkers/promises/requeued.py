"""The promise of re-queueing: a record that is re-queued is in its own partition again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.checkers.promises.effects import check_guarantee
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Requeued:
    """Each record that is committed as re-queued has one copy in its partition; ``Delivery`` covers the processing of
    the copy.

    It is judged by the log itself, and needs the workload ``Requeue``. If a member dies between the copy and the
    commit, its successor is delivered the original again: it writes a second copy, unless both are in one transaction,
    or processes the original in addition to the copy. Handlers do not take part in a transaction, so no guarantee
    excludes the latter.

    Attributes:
        guarantee: ``at-least-once`` permits that a record has several copies, but not from one owner of its partition.
        in_order: no record is processed while a copy of an earlier record of its key is behind it in the log. A program
            that re-queues cannot keep that.
    """

    guarantee: str = "exactly-once"
    in_order: bool = False
    kinds: ClassVar[Mapping[str, str]] = kinds_of("requeued")

    def __post_init__(self) -> None:
        check_guarantee("Requeued", self.guarantee)

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        permitted = {
            "per-entity-order": not self.in_order,
            "requeued-and-done": cause != "one owner",
            "requeue-twice": cause != "one owner" and self.guarantee == "at-least-once",
        }
        return "permitted" if permitted.get(kind) else usual_severity(kind, excuse)
