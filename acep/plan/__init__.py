"""Compile a query for the columns of a stream to a plan: everything an engine needs, as plain data."""
