"""Run queries exactly as docs/reference/semantics.md says, in plain Python. The native core is compared with this."""
