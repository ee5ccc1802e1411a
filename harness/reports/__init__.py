"""Reports of a run folder: a page for people, JUnit for CI, a summary for the terminal."""
