"""The network between members and brokers: proxies, one per (slot, broker)."""
