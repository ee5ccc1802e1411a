"""The timeline of a report: intervals, time axis, rows and shapes."""
