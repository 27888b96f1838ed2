"""Match partitions again when an earlier event comes late or is taken back, and compare with what was given."""
