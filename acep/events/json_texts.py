"""Write lists as texts of JSON, as Spark writes them: ``CAST(a.tags AS text)``."""

from __future__ import annotations

import json
import math
import re
from typing import Any

__all__ = ["json_text"]

CODE = re.compile(r"(\\+)u00[01][0-9a-f]")


def json_text(value: Any) -> str | None:
    """Return a list as JSON without blanks; letters of codes are great, as Spark writes them."""
    if value is None:
        return None
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))
    return CODE.sub(lambda code: code[0].upper().replace("U", "u") if len(code[1]) % 2 else code[0], text)


def _finite(value: Any) -> Any:
    """Return a value with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return list(map(_finite, value))
    return {name: _finite(inner) for name, inner in value.items()} if isinstance(value, dict) else value
