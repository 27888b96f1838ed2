"""Read events from files: CSV, JSON Lines and Parquet, in blocks and in the order of time."""
