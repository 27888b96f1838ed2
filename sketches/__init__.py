"""Summaries of bounded size with stated errors; installed as ``acep.sketches``.

Here belong the count-min array, the memories of a history (dense, and as a sketch of match maps) and the ring that
gives bundles their bits. They know nothing of patterns or policies and import nothing else of acep. Their bounds:
docs/sketches.md.
"""
