"""Terminal output during a run and after it, without the log output of libraries."""
