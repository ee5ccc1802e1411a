"""The promise of rebalances: what they deal out, and what they leave where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Rebalances:
    """Once a rebalance is over, partitions lie as they should, by the coordinator's log.

    Not every assignor keeps it: ``range`` deals each topic by itself, so of many narrow topics the last members get
    nothing, and neither it nor ``roundrobin`` is sticky.

    Attributes:
        balanced: no member has two partitions more than another one.
        sticky: of members that stay, no more partitions are taken than an even share asks for.
    """

    balanced: bool = True
    sticky: bool = False
    kinds: ClassVar[Mapping[str, str]] = {"unbalanced": "safety", "not-sticky": "safety"}

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        promised = self.balanced if kind == "unbalanced" else self.sticky
        return "violation" if promised and not excuse else "permitted"
