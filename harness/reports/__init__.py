"""Reports of a run folder: an HTML page, JUnit for CI, and a summary for the terminal."""
