"""Parse the text of queries: SASE+ and letter expressions, their mistakes, parameters and functions."""
