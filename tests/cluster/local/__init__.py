"""The back-end local, and what a run leaves."""
