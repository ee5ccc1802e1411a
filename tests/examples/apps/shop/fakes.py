"""Orders as the shop's web site sends them, for tests."""

from __future__ import annotations


def order(key: int, seq: int) -> dict[str, object]:
    """The order number ``seq`` of the customer ``key``."""
    return {"id": f"{key}-{seq}", "customer": f"customer-{key}", "cents": 100 + seq % 9900}
