"""Define the functions of the language, each in one place."""
