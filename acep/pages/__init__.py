"""Show a result as an interactive page: one file of HTML that needs no network. ``import acep`` does not import it."""
