"""The promise of effects: what records do outside of the topics that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity

GUARANTEES = ("exactly-once", "at-least-once")


def check_guarantee(promise: str, guarantee: str) -> None:
    """Raises ScenarioError when a promise has a guarantee that nobody knows."""
    if guarantee not in GUARANTEES:
        raise ScenarioError(f"{promise} guarantee {guarantee!r} is unknown; known are {', '.join(GUARANTEES)}")


@dataclass(frozen=True)
class Effects:
    """Each record that is committed has one effect, and no member writes after another one took its partition's lease.

    It is judged by the order of what the effects are in: a store (``ExclusiveWrites``) or a topic (``Transform``), or
    by what a function tells of a user's own program (``OwnProgram(effects=...)``); it goes with a workload that has
    one. Kafka alone gives it to nobody: it asks for a fence, or for transactions.

    Attributes:
        guarantee: ``at-least-once`` permits that a record has several.
    """

    guarantee: str = "exactly-once"
    kinds: ClassVar[Mapping[str, str]] = kinds_of("effects")

    def __post_init__(self) -> None:
        check_guarantee("Effects", self.guarantee)

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        many = kind == "duplicate-effect" and self.guarantee == "at-least-once"
        return "permitted" if many else usual_severity(kind, excuse)
