"""Tells the warehouse what to send."""
