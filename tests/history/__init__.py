"""Histories for tests: written by hand or drawn at random, on disk as real run folders."""
