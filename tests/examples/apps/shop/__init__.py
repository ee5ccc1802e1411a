"""A small service of a shop. It knows nothing of Fencepost."""
