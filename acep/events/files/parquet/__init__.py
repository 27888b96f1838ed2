"""Read Parquet files in batches of rows, within bounds."""
