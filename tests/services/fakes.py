"""Made-up orders of the shop, the same ones every time."""

CUSTOMERS = ("ada", "boris", "chloe", "dmitri", "emeka", "farah", "greta", "hiro")


def order(key: int, seq: int) -> dict:
    """The order with the number `seq` of the customer account `key`."""
    return {
        "id": seq,
        "customer": f"{CUSTOMERS[key % len(CUSTOMERS)]}-{key}",
        "cents": 199 + (seq * 7919 + key * 104729) % 50_000,
    }
