"""The record-level rows of a run as plain tuples. Only the oracle holds them in memory at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fencepost.checkers.tables.reading import Reader
from fencepost.checkers.tables.rows import Damage
from fencepost.history import DELIVERED_COLUMNS, LOG_COLUMNS, PRODUCED_COLUMNS


class Delivered(NamedTuple):
    """A delivered record: the incarnation that received it, and the columns DELIVERED_COLUMNS."""

    incarnation: str
    tp: int
    offset: int
    key: int
    writer: int
    seq: int
    interval: int
    poll: int
    position: int
    ord: int
    delivered_ns: int
    begin_ns: int
    done_ns: int
    state: int
    thread: int


class Produced(NamedTuple):
    """A send: the columns PRODUCED_COLUMNS; offset -1: unknown."""

    tp: int
    offset: int
    key: int
    writer: int
    seq: int
    sent_ns: int
    acked_ns: int
    outcome: int


class Logged(NamedTuple):
    """A visible record of the log at the audit: the columns LOG_COLUMNS."""

    tp: int
    offset: int
    key: int
    writer: int
    seq: int
    appended_ms: int


@dataclass(frozen=True)
class Records:
    """All record-level rows of a run, and the damage of their files."""

    delivered: tuple[Delivered, ...] = ()
    produced: tuple[Produced, ...] = ()
    log: tuple[Logged, ...] = ()
    damage: tuple[Damage, ...] = ()


def load_records(run: Path) -> Records:
    """Every delivered, produced and logged row, as it was recorded; ``damage`` names the unreadable files."""
    reader = Reader(run)
    delivered = [
        Delivered(path.stem, *row)
        for path in reader.files("delivered", "delivered")
        for row in reader.rows("delivered", path, DELIVERED_COLUMNS)
    ]
    produced = [
        Produced(*row)
        for path in reader.files("produced", "produced")
        for row in reader.rows("produced", path, PRODUCED_COLUMNS)
    ]
    log = [Logged(*row) for path in reader.files("log", "log") for row in reader.rows("log", path, LOG_COLUMNS)]
    delivered.sort(key=lambda r: (r.tp, r.incarnation, r.ord))
    log.sort(key=lambda r: (r.tp, r.offset))
    return Records(tuple(delivered), tuple(produced), tuple(log), tuple(reader.damage))
