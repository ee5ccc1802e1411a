"""Fencepost."""
