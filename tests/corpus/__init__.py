"""Runs and hand-written histories whose verdicts no change of the code may change."""
