"""Schedules as values: entries, selectors, protocol states; and the plan, drawn from a seed. Pure."""
