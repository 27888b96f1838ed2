"""Recommend budgets, policies and cheaper forms of a query, from replays of a sample of its stream."""
