"""Match events in one process: a whole table at once, or a stream batch by batch."""
