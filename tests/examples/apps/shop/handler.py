"""What the order service does with one order, whoever polls for it."""

from __future__ import annotations

import json
import os
import sqlite3

DATABASE = sqlite3.connect(os.environ.get("SHOP_DATABASE", "orders.db"), timeout=30, isolation_level=None)
DATABASE.execute("PRAGMA journal_mode=WAL")
DATABASE.execute("PRAGMA synchronous=NORMAL")
DATABASE.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT, cents INTEGER)")


def write(key: bytes | None, value: bytes | None) -> None:
    """Write an order; twice is as good as once."""
    DATABASE.execute("INSERT OR REPLACE INTO orders VALUES (:id, :customer, :cents)", json.loads(value or b"{}"))
