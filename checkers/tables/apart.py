"""The small tables of some partitions: a worker is sent those of its tasks, not what there is of all others. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from fencepost.checkers.tables.tables import Tables

Rows = dict[str, Any]
BY_PARTITION = (
    *("intervals", "commits", "accepted", "given", "seeks", "paused", "leaders", "asked_commits", "fetched", "effects"),
    "inferred",
)
OF_THE_DRIVER = ("doubled", "strays", "heartbeats", "joins", "damage")  # rules over records do not look at these


class Apart:
    """The tables of a run, taken apart. ``common``: those that have nothing to do with a single partition."""

    def __init__(self, tables: Tables) -> None:
        """Every row is looked at once."""
        nothing: Rows = dict.fromkeys((*BY_PARTITION, *OF_THE_DRIVER), ())
        self.common = replace(tables, plan={}, **nothing)
        self._rows = {name: _by_tp(getattr(tables, name)) for name in BY_PARTITION}

    def rows(self, tps: Collection[int]) -> Rows:
        """The tables of some partitions, by name; rows of a partition are in their order."""
        return {
            name: tuple(row for tp in sorted({*tps}) for row in rows.get(tp, ())) for name, rows in self._rows.items()
        }


def _by_tp(rows: Collection[Any]) -> Mapping[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.tp].append(row)
    return found
