"""The promise of commits: records below the committed offset are finished, and only the partition's owner commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity

ORDERS = ("after-processing", "before-processing")


@dataclass(frozen=True)
class Commits:
    """Commits go forward, are written by the owner, and the next owner begins at the committed offset, unless the
    user's program itself moved its position.

    A stale answer of a coordinator is a note; its consequences break this promise, or another one.

    Attributes:
        order: ``after-processing`` forbids a commit past an unfinished record; ``before-processing`` (at most once)
            permits it.
    """

    order: str = "after-processing"
    kinds: ClassVar[Mapping[str, str]] = kinds_of("commits")

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ScenarioError(f"Commits order {self.order!r} is unknown; known are {', '.join(ORDERS)}")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        if excuse:
            return "permitted"
        if kind == "stale-offset-answer":
            return "note"
        if kind == "commit-ahead" and self.order == "before-processing":
            return "permitted"
        if kind == "commit-regression" and cause == "own retry":
            return "note"
        return usual_severity(kind, excuse)
