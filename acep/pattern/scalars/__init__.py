"""Define functions of values that SQL and SASE+ have: of texts, of times by templates, and casts."""
