"""The history graph: what became of partial matches, by match vector."""
