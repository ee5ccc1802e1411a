"""The producer of a run."""
