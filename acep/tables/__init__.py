"""Match queries and clauses over streams of tables: from a user's columns to plans, and matches back."""
