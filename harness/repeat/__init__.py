"""Repeated runs: replays, batches, coverage of fault and state pairs, and shrinking of a failure."""
