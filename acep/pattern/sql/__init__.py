"""Read the row pattern clause of SQL (MATCH_RECOGNIZE) into a tree."""
