"""Measure MATCH_RECOGNIZE by shape, beside other systems, and on streams."""
