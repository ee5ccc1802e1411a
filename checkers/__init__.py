"""Promises that a scenario makes about its group, and the checkers that judge a history by them.

Importing this package loads the promises only; ``judge``, ``oracle`` and ``spark`` are imported when they are needed.
"""

from __future__ import annotations

from fencepost.checkers.promises import (
    Commits,
    Delivery,
    Effects,
    Order,
    Outside,
    Ownership,
    Parked,
    Progress,
    Rebalances,
    Recovers,
    Requeued,
)

__all__ = [
    "Commits",
    "Delivery",
    "Effects",
    "Order",
    "Outside",
    "Ownership",
    "Parked",
    "Progress",
    "Rebalances",
    "Recovers",
    "Requeued",
]
