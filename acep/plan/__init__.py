"""From a query and the columns of a stream to a plan: all that an engine needs, as plain data."""
