"""Adds up what customers spent."""
