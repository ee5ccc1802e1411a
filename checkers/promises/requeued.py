"""The promise of re-queueing: what goes to the end of its own partition comes again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.checkers.promises.effects import check_guarantee
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Requeued:
    """Each record that is committed as re-queued lies in its partition once more; then ``Delivery`` says that somebody
    processes it.

    It is judged by the log itself; it goes with the workload ``Requeue``. After a member that dies between the copy and
    the commit, its successor gets the original, too: it writes a second copy, unless both are in one transaction, or
    processes it beside the copy. What handlers do is in no transaction, so no guarantee excludes the latter.

    Attributes:
        guarantee: ``at-least-once`` permits that a record has several copies, but not by one owner of its partition.
        in_order: no record is processed while an earlier one of its key lies behind it. Who re-queues cannot keep that.
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
