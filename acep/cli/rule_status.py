"""Say in the exit status that a rule was left out."""

__all__ = ["LEFT_OUT"]

LEFT_OUT = 4
"""What is added to the exit status if a rule was left out, or could not be read."""
