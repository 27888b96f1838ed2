"""From text to the tree of a query: SASE+, letter expressions, expressions over events."""
