"""Read Sigma rules as rules of acep (docs/howto/sigma.md)."""
