"""What is shown on a terminal while a run goes on and after it, and what of libraries is not."""
