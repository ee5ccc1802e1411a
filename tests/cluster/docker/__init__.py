"""The back-end docker."""
