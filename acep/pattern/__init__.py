"""Parse the text of a query to its syntax tree: SASE+, letter expressions, and expressions over events."""
