"""Find what looks wrong with a query and its events together."""
