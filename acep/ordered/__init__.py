"""Find the matches that OUTPUT chooses in their order, by passes over rows, without making all matches."""
