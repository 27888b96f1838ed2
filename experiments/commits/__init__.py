"""Exact runs of this code against another commit of acep, which is built beside it, in one run."""
