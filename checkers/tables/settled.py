"""Which commits in the coordinator's log came into force. Pure.

Those of a transaction do when it is committed, if no later record of their partition did before; those of one that was
aborted, or never ended, do not (KIP-98; ``GroupMetadataManager`` keeps them as pending until the marker).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Line = Mapping[str, Any]
Place = tuple[Any, Any]


def settled(lines: Iterable[Line]) -> list[tuple[Line, int]]:
    """The lines of type ``commit`` that came into force, and at_ns of the end of their transactions (0: of none).

    By their order in the log, whatever that of the lines is.
    """
    found: list[tuple[Line, int]] = []
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
            if order >= last.get(place, order):
                last[place] = order
                found.append((commit, at_ns))
    return found
