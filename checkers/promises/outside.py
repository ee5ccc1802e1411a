"""The promise about the outside of a group: everything that brokers record about members that report nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.checkers.promises.progress import Progress
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Outside:
    """The brokers' records about a group are in order; for members that report nothing.

    Commits go forward, are written by the owner, and not beyond the end of the log. A partition has one owner by the
    coordinator's log. No acknowledged record is missing or in the log twice. Once everything is healed, commits
    continue in every partition until everything is committed; during a fault they continue in the partitions that it
    does not touch (except in the eager protocol). And a coordinator does not answer with an older offset than was
    acknowledged: brokers do not show whether members begin at it.

    Brokers do not know what was delivered and processed: a loss that was committed past is not seen.

    Attributes:
        within_s, recovers_within_s: as in ``Progress``, judged by commits, so a program must commit more often.
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
        if kind == "slow-recovery" and self.recovers_within_s is None:  # another promise has the bound
            return "permitted"
        return usual_severity(kind, excuse)
