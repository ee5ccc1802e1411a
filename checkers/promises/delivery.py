"""The promise of delivery: which records are processed, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity

LEVELS = ("at-least-once", "at-most-once")
DUPLICATES = ("any", "only-after-failure")
SOUGHT = "the program moved its position"  # excuse for the consequences, if the program is the user's own


@dataclass(frozen=True)
class Delivery:
    """Nothing is lost (``at-least-once``), or nothing is processed twice (``at-most-once``).

    Attributes:
        level: at-most-once permits the loss of records in flight when a member dies or is evicted; no other loss.
        duplicates: for at-least-once, ``only-after-failure`` permits duplicates only if the former owner could not
            commit; ``any`` also if it released its partition cleanly, or if the user's program itself moved its
            position back. Records that a program moved its position past still count as lost.
    """

    level: str = "at-least-once"
    duplicates: str = "any"
    kinds: ClassVar[Mapping[str, str]] = kinds_of("delivery")

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ScenarioError(f"Delivery level {self.level!r} is unknown; known are {', '.join(LEVELS)}")
        if self.duplicates not in DUPLICATES:
            raise ScenarioError(
                f"Delivery duplicates {self.duplicates!r} is unknown; known are {', '.join(DUPLICATES)}"
            )

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        if excuse.startswith("declared act") or (kind in ("duplicate-write", "aborted-read") and excuse):
            return "permitted"
        if self.level == "at-most-once":
            return "permitted" if kind == "unseen" and cause != "skipped" and excuse else "violation"
        if excuse == SOUGHT:
            return "permitted" if self.duplicates == "any" else "violation"
        if kind == "redelivery":
            return usual_severity(kind, excuse)
        if kind == "avoidable-redelivery":
            return "permitted" if self.duplicates == "any" else "violation"
        return usual_severity(kind, "")
