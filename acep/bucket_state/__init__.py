"""Keep the state of buckets in files between micro-batches."""
