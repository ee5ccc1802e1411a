"""Whole runs: planted bugs, correct groups, built-in scenarios."""
