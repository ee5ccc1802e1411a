"""What is to happen and when, as values: entries, selectors, protocol states; and from a seed, the plan. Pure."""
