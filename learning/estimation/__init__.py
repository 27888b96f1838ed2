"""Estimates from trajectories: recall, utility, and drift."""
