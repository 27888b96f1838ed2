"""An independent reading of SQL's MATCH_RECOGNIZE, and random clauses: acep is compared with it and shares no code."""
