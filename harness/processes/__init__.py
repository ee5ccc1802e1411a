"""Ownership of processes and temporary files, which are removed on every exit path."""
