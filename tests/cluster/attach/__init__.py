"""The back-end attach."""
