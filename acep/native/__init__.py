"""Run plans on the native core."""
