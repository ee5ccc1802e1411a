"""The promise of ownership: one partition, one member at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError

LEVELS = ("assignment", "processing")


@dataclass(frozen=True)
class Ownership:
    """Two members never own one partition at once (``assignment``), nor process records of it (``processing``).

    The first is what the group protocol gives: a member that was removed and cannot know yet (a zombie) is permitted,
    and so is what it does with the records in its hands. The second needs a fence of the program's own.
    """

    of: str = "assignment"
    kinds: ClassVar[Mapping[str, str]] = {
        "assignment-overlap": "safety",
        "coordinator-overlap": "safety",
        "delivery-outside-assignment": "safety",
        "assignment-mismatch": "safety",
        "callback-ledger": "safety",
        "early-assignment": "safety",
        "needless-revocation": "safety",
        "lost-told-as-revoked": "safety",
        "duplicate-instance": "safety",
        "generation-regression": "safety",
        "processing-after-revocation": "safety",
        "stale-backlog": "safety",
        "stale-effect": "safety",
        "processing-overlap": "safety",
    }

    def __post_init__(self) -> None:
        if self.of not in LEVELS:
            raise ScenarioError(f"Ownership of {self.of!r} is unknown; known are {', '.join(LEVELS)}")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        if kind == "lost-told-as-revoked":
            return "note"  # a client may have had the revocation in hand already when the answer came
        unpromised = self.of == "assignment" and kind in ("stale-backlog", "stale-effect", "processing-overlap")
        return "permitted" if excuse or unpromised else "violation"
