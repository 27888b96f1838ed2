"""Read CSV files in blocks of rows, and find the types of their columns."""
