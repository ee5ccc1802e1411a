"""Books orders in batches, each in one transaction. It knows nothing of Fencepost."""
