"""Summaries of bounded size with stated error bounds; installed as ``acep.sketches``.

They are the count-min array, the memories of a history (dense, and as a sketch of match maps) and the ring that
assigns bits to bundles. They do not depend on patterns or policies, and import only the errors of acep. Error
bounds: docs/explanation/sketches.md.
"""
