"""Warn of queries that will cost much, whatever the stream is."""
