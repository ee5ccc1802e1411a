"""The promise of effects: what records do to a store outside of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Effects:
    """Each record has one effect in the store, and no member writes after another one took its partition's lease.

    It is judged by the store's own order, so it goes with a workload that has one (``ExclusiveWrites``). Kafka alone
    gives it to nobody: it asks for a fence of the program's own.
    """

    kinds: ClassVar[Mapping[str, str]] = {"duplicate-effect": "safety", "stale-write": "safety"}

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        return "permitted" if excuse else "violation"
