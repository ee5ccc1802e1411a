"""Promises that a scenario makes of its group, and the checkers that judge a history by them.

Importing this package loads the promises only; what judges (``judge``, ``oracle``, the Spark side) is imported when it
is needed.
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
    "Requeued",
]
