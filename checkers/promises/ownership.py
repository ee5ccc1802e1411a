"""The promise of ownership: one partition, one member at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity

LEVELS = ("assignment", "processing")


@dataclass(frozen=True)
class Ownership:
    """Two members never own one partition at once (``assignment``), nor process records of it (``processing``).

    The group protocol provides the first: an evicted member that cannot know it yet (a zombie) is permitted, and so is
    its processing of records in flight. The second needs a fence in the program.
    """

    of: str = "assignment"
    kinds: ClassVar[Mapping[str, str]] = kinds_of("ownership")

    def __post_init__(self) -> None:
        if self.of not in LEVELS:
            raise ScenarioError(f"Ownership of {self.of!r} is unknown; known are {', '.join(LEVELS)}")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        unpromised = self.of == "assignment" and kind in (
            "work-after-reassignment",
            "stale-effect",
            "processing-overlap",
        )
        return "permitted" if unpromised else usual_severity(kind, excuse)
