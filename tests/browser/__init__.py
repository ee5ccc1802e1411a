"""The pages of a run in a real browser, and the picture of one."""
