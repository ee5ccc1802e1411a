"""Writes an invoice for each order, with FastStream on asyncio. It knows nothing of Fencepost."""
