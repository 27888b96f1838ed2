"""Run queries by the letter of docs/semantics.md, slowly: what the native core is compared with."""
