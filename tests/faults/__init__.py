"""Faults that are seeded into the product, to measure what a gate of tests finds."""
