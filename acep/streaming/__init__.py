"""Step the buckets of a stream, micro-batch by micro-batch, with their state in files."""
