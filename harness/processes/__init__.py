"""Who owns processes and temporary files, and removes them on every exit path."""
