"""Finds the anomalies of runs of any size: a small Spark session performs tasks, and the driver sums the results."""
