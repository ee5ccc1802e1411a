"""Runs that are performed again: replays, batches, coverage of what was not met yet, and smaller cases of a failure."""
