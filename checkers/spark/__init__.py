"""The finder of anomalies at any size: a lean Spark session, tasks cut from a history, and their tallies added up."""
