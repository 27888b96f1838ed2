"""Recover whole match bundles of which one match survived shedding."""
