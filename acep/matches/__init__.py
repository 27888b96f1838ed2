"""Give matches to users: records, columns, groups, tables, files and reports."""
