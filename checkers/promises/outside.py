"""The promise of what is seen from outside: all that brokers can tell of a group whose members tell nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.checkers.promises.progress import Progress


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
    kinds: ClassVar[Mapping[str, str]] = {
        "lost-write": "safety",
        "duplicate-write": "safety",
        "nonmonotonic-send": "safety",
        "stale-offset-answer": "safety",
        "commit-regression": "safety",
        "commit-beyond-end": "safety",
        "foreign-commit": "safety",
        "zombie-commit": "safety",
        "coordinator-overlap": "safety",
        "generation-regression": "safety",
        "duplicate-instance": "safety",
        "unconsumed": "liveness",
        "stuck-partition": "liveness",
        "slow-recovery": "liveness",
        "collateral-stop": "liveness",
        "orphaned-partition": "liveness",
        "never-stable": "liveness",
        "dead-member": "liveness",
    }

    def __post_init__(self) -> None:
        Progress(self.within_s, self.recovers_within_s)

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        if kind == "commit-regression" and cause == "own retry":
            return "note"
        if kind == "stale-offset-answer" and not cause:
            return "note"
        return "permitted" if excuse else "violation"
