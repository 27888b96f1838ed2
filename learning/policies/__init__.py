"""Policies: which partial matches to keep."""
