"""Witnesses: what proves that a fault is there, and that it is gone."""
