"""The promise of what is seen from outside: all that brokers can tell of a group whose members tell nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.checkers.promises.progress import Progress
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Outside:
    """What brokers record of a group is in order: commits go forward, are written by the owner and not beyond the end;
    a partition has one owner by the coordinator's log; nothing that was acknowledged is missing or there twice; and
    once everything is healed, commits go on in every partition, until all is committed; beside a fault they go on in
    those that it does not touch (but in the eager protocol). For members that tell nothing.

    And a coordinator tells members no older offset than was acknowledged: nobody can see whether they begin there.

    What was delivered, and whether it was processed, no broker knows: a loss that is committed is not seen.

    Attributes:
        within_s, recovers_within_s: as of ``Progress``, judged by commits: a program is to commit more often than that.
    """

    within_s: float = 30.0
    recovers_within_s: float | None = None
    kinds: ClassVar[Mapping[str, str]] = kinds_of("outside")

    def __post_init__(self) -> None:
        Progress(self.within_s, self.recovers_within_s)

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        if kind == "commit-regression" and cause == "own retry":
            return "note"
        if kind == "stale-offset-answer" and not cause:
            return "note"
        return usual_severity(kind, excuse)
