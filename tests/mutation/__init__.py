"""Mutation testing of the checkers: whether a wrong line of them would be noticed."""
