"""Matching: events in, matches out. ``reference.py`` is the meaning of a query, step by step."""
