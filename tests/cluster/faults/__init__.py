"""Faults on a real cluster: what each does, and what proves it."""
