"""The promise of dead letters: records that cannot be processed are kept in a topic of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.checkers.promises.effects import check_guarantee
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Parked:
    """Each committed record that cannot be processed has one dead letter.

    It is judged by the topic of dead letters, and needs the workload ``DeadLetters``. If a member dies between a dead
    letter and the commit, its successor writes a second one, unless both are in one transaction.

    Attributes:
        guarantee: ``at-least-once`` permits that a record has several, but not from one owner of its partition.
        in_order: after a record has a dead letter, no later record of its key is processed until the dead letter was
            retried.
    """

    guarantee: str = "exactly-once"
    in_order: bool = False
    kinds: ClassVar[Mapping[str, str]] = kinds_of("parked")

    def __post_init__(self) -> None:
        check_guarantee("Parked", self.guarantee)

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        many = kind == "dead-letter-twice" and cause != "one owner" and self.guarantee == "at-least-once"
        return "permitted" if many else usual_severity(kind, excuse)
