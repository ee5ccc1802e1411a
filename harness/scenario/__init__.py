"""Scenarios: the scenario, its group, how it is loaded and changed, and its topics in a cluster."""
