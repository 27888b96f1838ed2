"""Run queries by the letter of docs/reference/semantics.md, slowly: what the native core is compared with."""
