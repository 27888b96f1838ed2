"""Write results into files: JSON Lines, CSV and Parquet."""
