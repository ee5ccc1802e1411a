"""The tables of one run: its events and evidence as typed rows, built once for all checkers.

``Tables`` holds the small tables; records stay in their Parquet files (the oracle loads them with ``load_records``,
Spark reads the files). Every missing or damaged part is a row of ``damage``.
"""

from __future__ import annotations

from fencepost.checkers.tables.loading import load
from fencepost.checkers.tables.records import Records, load_records
from fencepost.checkers.tables.tables import Tables

__all__ = ["PARTS", "Records", "Tables", "load", "load_records"]

# The parts of a history: checks need them, damage affects them.
PARTS = (
    *("run", "phase", "scenario", "promises", "plan", "clock", "partitions", "events", "delivered", "produced", "log"),
    *("offsets", "requests", "metadata", "host", "effects"),
)
