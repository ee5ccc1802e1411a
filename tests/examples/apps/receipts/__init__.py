"""Writes a receipt of each order into a topic. It knows nothing of Fencepost."""
