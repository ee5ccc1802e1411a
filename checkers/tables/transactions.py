"""Finds the commits in the coordinator's log that came into force. Pure.

A commit of a transaction comes into force when the transaction is committed, unless a later record of its partition is
already in force. Then the commit was *overtaken*: its writer rightly receives "ok". The commits of an aborted or
unfinished transaction never come into force (KIP-98; ``GroupMetadataManager`` keeps them as pending until the marker).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Line = Mapping[str, Any]
Place = tuple[Any, Any]


class Settled(NamedTuple):
    """A line of type ``commit``, outside of transactions or of a committed transaction.

    ``ended_ns``: the ``at_ns`` of the end of the transaction; 0: no transaction."""

    line: Line
    ended_ns: int
    in_force: bool


def settled(lines: Iterable[Line]) -> list[Settled]:
    """The settled commits in the order in which they were settled, by the log; ``lines`` may be in any order."""
    found: list[Settled] = []
    pending: dict[int, list[Line]] = defaultdict(list)
    last: dict[Place, int] = {}  # the greatest order of a commit in force
    for line in sorted(lines, key=lambda line: int(line.get("order", 0))):
        producer = int(line.get("producer", -1))
        if line.get("type") == "transaction-end":
            waiting = pending.pop(producer, [])
            ended = waiting if line.get("committed") else []
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
