"""The promises that a scenario may make about its group, one file each."""

from __future__ import annotations

from fencepost.checkers.promises.commits import Commits
from fencepost.checkers.promises.delivery import Delivery
from fencepost.checkers.promises.effects import Effects
from fencepost.checkers.promises.order import Order
from fencepost.checkers.promises.outside import Outside
from fencepost.checkers.promises.ownership import Ownership
from fencepost.checkers.promises.parked import Parked
from fencepost.checkers.promises.progress import Progress
from fencepost.checkers.promises.rebalances import Rebalances
from fencepost.checkers.promises.recovers import Recovers
from fencepost.checkers.promises.requeued import Requeued

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
