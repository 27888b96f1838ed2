"""Serve the figures of a stream to programs that watch it."""
