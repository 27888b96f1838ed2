"""Decide which events of a micro-batch travel to the workers when time is short, and estimate what that loses."""
