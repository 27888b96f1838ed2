"""Keep state as bytes: plain data with arrays, and a checked seal around it."""
