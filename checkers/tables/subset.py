"""The small tables of some partitions: a Spark worker receives only the rows of its tasks. Pure."""

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
OF_THE_DRIVER = (
    "doubled",
    "strays",
    "heartbeats",
    "joins",
    "damage",
    "not_shown",
)  # the rules for records do not use these tables


class TableSubset:
    """The tables of a run, split by partition. ``common``: the tables that do not belong to a single partition."""

    def __init__(self, tables: Tables) -> None:
        """Reads every row once."""
        nothing: Rows = dict.fromkeys((*BY_PARTITION, *OF_THE_DRIVER), ())
        self.common = replace(tables, plan={}, **nothing)
        self._rows = {name: _by_tp(getattr(tables, name)) for name in BY_PARTITION}

    def rows(self, tps: Collection[int]) -> Rows:
        """The tables of some partitions, by name; the rows of each partition keep their order."""
        return {
            name: tuple(row for tp in sorted({*tps}) for row in rows.get(tp, ())) for name, rows in self._rows.items()
        }


def _by_tp(rows: Collection[Any]) -> Mapping[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.tp].append(row)
    return found
