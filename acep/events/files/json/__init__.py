"""Read JSON Lines in blocks, and find the types of attributes."""
