"""Work on rows in the Python workers of Spark."""
