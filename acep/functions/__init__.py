"""Define the aggregate functions of the language, each in one place."""
