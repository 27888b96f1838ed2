"""Run statements of SQL with MATCH_RECOGNIZE over tables."""
