"""The promise of order: records of one key are processed in the order in which they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Order:
    """The processing of a record does not begin before an earlier record of its key was first finished, and no poll
    skips a record, unless the user's program itself moved its position past it.

    A former owner does not finish records again that it began after its callback had said that the partition is gone.
    And the records of each producer are in the log in the order in which they were sent, unless its client is not
    idempotent. A member that commits before it processes cannot keep this promise: if it is evicted with records in
    flight, it finishes them after the new owner has processed later ones.
    """

    by: str = "key"
    kinds: ClassVar[Mapping[str, str]] = kinds_of("order")

    def __post_init__(self) -> None:
        if self.by != "key":
            raise ScenarioError(f"Order by {self.by!r} is unknown; known is key")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        return usual_severity(kind, excuse)
