"""What is asked for: the scenario, its group, where it comes from, and its topics in a cluster."""
