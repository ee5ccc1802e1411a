"""Orders as the shop's web site sends them, for tests; and which of them are in its database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping


def order(key: int, seq: int) -> dict[str, object]:
    """The order number ``seq`` of the customer ``key``."""
    return {"id": f"{key}-{seq}", "customer": f"customer-{key}", "cents": 100 + seq % 9900}


def number(order_id: str) -> int:
    """The ``seq`` of an order."""
    return int(order_id.rpartition("-")[2])


def written(settings: Mapping[str, str]) -> Iterator[int]:
    """Every order in the database."""
    with sqlite3.connect(os.environ["SHOP_DATABASE"], timeout=30) as database:
        for (order_id,) in database.execute("SELECT id FROM orders"):
            yield number(order_id)
