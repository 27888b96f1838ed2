"""Run MATCH_RECOGNIZE clauses on Spark: in batches, in streams, in statements of SQL, as table functions."""
