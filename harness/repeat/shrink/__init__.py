"""Shrinking: smaller cases of a failed run are performed until none of them fails in the same way."""
