"""Follow a growing folder of files without Spark: :func:`acep.follow` (docs/follow.md)."""
