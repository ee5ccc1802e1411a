"""Witnesses: proofs that a fault is in effect, and that it is gone."""
