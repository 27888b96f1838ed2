"""Online algorithms with proved bounds."""
