"""The tables of one run: everything that checkers may ask for, turned from events and evidence into typed rows, once.

The small tables are held by ``Tables``; records stay in their Parquet files (the oracle loads them with
``load_records``, Spark reads them where they are). Whatever is missing or damaged is a row of ``damage``.
"""

from __future__ import annotations

from fencepost.checkers.tables.loading import load
from fencepost.checkers.tables.records import Records, load_records
from fencepost.checkers.tables.tables import Tables

__all__ = ["PARTS", "Records", "Tables", "load", "load_records"]

# The parts of a history, by which checks say what they need and damage says what it hurts.
PARTS = (
    *("run", "phase", "scenario", "promises", "plan", "clock", "partitions", "events", "delivered", "produced", "log"),
    *("offsets", "requests", "metadata", "host", "effects"),
)
