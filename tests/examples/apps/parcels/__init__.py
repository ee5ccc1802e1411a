"""Prints a label for each order, in a pool of threads. It knows nothing of Fencepost."""
