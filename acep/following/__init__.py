"""Follow a growing folder of files without Spark: :func:`acep.follow` (docs/howto/follow.md)."""
