"""Run row pattern clauses (MATCH_RECOGNIZE) over tables in one process."""
