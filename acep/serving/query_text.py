"""Write what a stream matches as the text that its live page shows."""

from __future__ import annotations

import os
from typing import Any

from acep.errors import AcepError
from acep.pattern.printing import canonical
from acep.pattern.query_arguments import is_clause, read_queries

__all__ = ["text_of_query"]


def text_of_query(query: Any) -> str:
    r"""Return the text of a query, of a clause, or of several queries by their names; a text is that of something else.

    >>> text_of_query("PATTERN SEQ(a x, b y) WITHIN 5")
    'PATTERN SEQ(a x, b y) WITHIN 5'
    >>> text_of_query({"up": "PATTERN SEQ(a x, b y) WITHIN 5", "rest": "PATTERN b y"})
    'up:\nPATTERN SEQ(a x, b y) WITHIN 5\n\nrest:\nPATTERN b y'
    """
    if query is None or is_clause(query):
        return "" if query is None else str(query)
    if isinstance(query, os.PathLike):
        return str(os.fspath(query))
    try:
        queries = read_queries(query)
    except AcepError:
        return str(query)
    texts = [parsed.text.strip() or canonical(parsed) for parsed in queries.queries]
    if len(texts) == 1 and not queries.names[0]:
        return texts[0]
    return "\n\n".join(f"{name}:\n{text}" for name, text in zip(queries.names, texts, strict=True))
