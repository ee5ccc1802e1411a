"""Which commits in the coordinator's log came into force. Pure.

Those of a transaction do when it is committed, if no later record of their partition did before (else they were
*overtaken*: their writer is told that all went well, and rightly so); those of one that was aborted, or never ended, do
not (KIP-98; ``GroupMetadataManager`` keeps them as pending until the marker).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Line = Mapping[str, Any]
Place = tuple[Any, Any]


class Settled(NamedTuple):
    """A line of type ``commit`` of no transaction, or of one that was committed: at_ns of its end (0: of none)."""

    line: Line
    ended_ns: int
    in_force: bool


def settled(lines: Iterable[Line]) -> list[Settled]:
    """As they were settled, by the order of the log, whatever that of the lines is."""
    found: list[Settled] = []
    pending: dict[int, list[Line]] = defaultdict(list)
    last: dict[Place, int] = {}  # in force
    for line in sorted(lines, key=lambda line: int(line.get("order", 0))):
        producer = int(line.get("producer", -1))
        if line.get("type") == "transaction-end":
            mine = pending.pop(producer, [])
            ended = mine if line.get("committed") else []
            at_ns = int(line.get("at_ns") or 0)
        elif line.get("type") != "commit":
            continue
        elif producer >= 0:
            pending[producer].append(line)
            continue
        else:
            ended, at_ns = [line], 0
        for commit in ended:
            place, order = (commit.get("topic"), commit.get("partition")), int(commit.get("order", 0))
            last[place] = max(order, last.get(place, order))
            found.append(Settled(commit, at_ns, order == last[place]))
    return found
