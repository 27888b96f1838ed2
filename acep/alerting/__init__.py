"""Read folders of rules, match all of them in one pass, and give their matches as alerts."""
