"""Learn a history from past events, for later runs under a budget."""
