"""The promise of order: records of one key are processed in the order in which they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Order:
    """No record begins to be processed before an earlier one of its key was first finished, and no poll skips one but
    what the user's program itself moved its position past.

    No former owner finishes a record again that it began after it had been told that the partition was no longer its.
    And each producer's records land in the order in which they were sent, unless its client is not idempotent.
    A member that commits before it processes cannot keep this: evicted with records in hand, it finishes them after
    the new owner went on.
    """

    by: str = "key"
    kinds: ClassVar[Mapping[str, str]] = kinds_of("order")

    def __post_init__(self) -> None:
        if self.by != "key":
            raise ScenarioError(f"Order by {self.by!r} is unknown; known is key")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        return usual_severity(kind, excuse)
