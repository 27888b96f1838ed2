"""Start a stopped query in another form, from its state."""
