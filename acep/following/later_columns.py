"""Say how a query may use an attribute that comes in a later file: with a cast that says its type."""

from __future__ import annotations

import pyarrow as pa

from acep.errors import QueryError
from acep.events.files.options import Options
from acep.pattern.list_parts import CONTAINS, list_of

__all__ = ["explain_unknown"]


def explain_unknown(error: QueryError, schema: pa.Schema, options: Options) -> None:
    """Add to the error for a column that the first files do not have the casts with which it may come later.

    What a query asks of a list has a type of its own, so that each such part is cast, and not the list.
    """
    unknown = [name for name in options.columns or () if name not in schema.names and name not in options.casts]
    name = next((name for name in unknown if error.message == f"unknown column `{name}`"), None)
    if name is None:
        return
    root = list_of(name)
    if root in options.casts:
        error.hint = f"`{root}` is cast, and the query uses it as a list: leave the cast of `{root}` out"
        return
    parts = [part for part in unknown if root is not None and list_of(part) == root] or [name]
    types = {part: "bool" if part.startswith(f"{CONTAINS}(") else "string" for part in parts}
    casts = ", ".join(f'"{part}": "{text}"' for part, text in types.items())
    example = "" if "string" not in types.values() else ", or another type"
    later = f"if it comes in a later file of JSON, say its type: cast={{{casts}}}{example}"
    error.hint = later if error.hint is None else f"{error.hint}; {later}"
