"""Which orders have a label, for tests."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping

from shop.fakes import number


def printed(settings: Mapping[str, str]) -> Iterator[int]:
    """Every label on the list of what was printed."""
    with sqlite3.connect(os.environ["SHOP_DATABASE"], timeout=30) as database:
        for (order_id,) in database.execute("SELECT id FROM labels"):
            yield number(order_id)
