"""The promise of effects: what the processing of records does outside the topics that they are read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity

GUARANTEES = ("exactly-once", "at-least-once")


def check_guarantee(promise: str, guarantee: str) -> None:
    """Raises ScenarioError if the guarantee of a promise is unknown."""
    if guarantee not in GUARANTEES:
        raise ScenarioError(f"{promise} guarantee {guarantee!r} is unknown; known are {', '.join(GUARANTEES)}")


@dataclass(frozen=True)
class Effects:
    """Each committed record has one effect, and no member writes after the next holder of the lease has written.

    It is judged by the order of the effects in a store (``ExclusiveWrites``) or a topic (``Transform``), or by the
    report of a function about a user's own program (``OwnProgram(effects=...)``), so it needs one of these workloads.
    Kafka alone does not provide it: a program needs a fence, or transactions.

    Attributes:
        guarantee: ``at-least-once`` permits that a record has several effects.
        in_order: the first effects of the records of a key are in the order of these records. It needs a sink with an
            order: ``OwnProgram(effects_in_order=True)``.
    """

    guarantee: str = "exactly-once"
    in_order: bool = False
    kinds: ClassVar[Mapping[str, str]] = kinds_of("effects")

    def __post_init__(self) -> None:
        check_guarantee("Effects", self.guarantee)

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        many = kind == "duplicate-effect" and self.guarantee == "at-least-once"
        disordered = kind == "effects-out-of-order" and not self.in_order
        return "permitted" if many or disordered else usual_severity(kind, excuse)
