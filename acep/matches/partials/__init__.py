"""Give live partial matches to users: as columns, as records, as text and HTML."""
