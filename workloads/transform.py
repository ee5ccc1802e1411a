"""Consume, transform, produce: each record becomes a record of another topic, with or without transactions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.history import EventKind
from fencepost.interfaces import Promise
from fencepost.workloads._common import at_least_once
from fencepost.workloads._writing import WritingElsewhere
from fencepost_member.config import TRANSACTION
from fencepost_member.planted_bugs import OUTPUTS


@dataclass(frozen=True)
class Transform(WritingElsewhere):
    """One thread per member polls, turns each record into one of the topic ``into``, and commits.

    The topic's final content, read with ``read_committed``, are the effects of the records. See ``Load`` for the
    records that producers write, and ``Writing`` for the other options.

    Attributes:
        handler: makes the new value: it returns bytes, text, a dict that is written as JSON, or None for no record.
            Empty: the value stays as it is.
    """

    into: str = "transformed"
    policies: ClassVar[Collection[str]] = (TRANSACTION, "after-batch", "after-processing")
    bugs: ClassVar[Collection[str]] = OUTPUTS
    holds: ClassVar[EventKind] = EventKind.EFFECT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.planted_bug and self.commit != TRANSACTION:
            raise ScenarioError(f"planted bug {self.planted_bug!r} needs the commit policy {TRANSACTION!r}")

    def promises(self) -> Collection[Promise]:
        """At-least-once, and each record has an effect; with transactions no record has two."""
        from fencepost.checkers import Effects

        return at_least_once(Effects("exactly-once" if self.commit == TRANSACTION else "at-least-once"))
