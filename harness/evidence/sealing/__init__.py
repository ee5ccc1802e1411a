"""Segments of all processes become Parquet files; nothing is judged here."""
