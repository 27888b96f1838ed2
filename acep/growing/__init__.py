"""Files that grow: how far each was taken, over rotation and truncation."""
