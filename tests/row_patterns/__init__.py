"""An independent reading of SQL's MATCH_RECOGNIZE, and random clauses to compare acep with it; nothing of acep in it."""
