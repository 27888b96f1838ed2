"""Match a stream in foreachBatch, where events are shed before they travel."""
