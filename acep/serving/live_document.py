"""Put the style and the script of the live page into one document of HTML, with the policy that lets only them run."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

__all__ = ["live_document"]

FOLDER = Path(__file__).parent
SCRIPTS = ("charts.js", "tables.js", "live.js")
SLOT = re.compile(r"\{\{(\w+)\}\}")


@cache
def live_document() -> tuple[bytes, str]:
    """Return the page as a document of HTML, the same for each stream, and the policy of its content. It loads nothing
    but its state, from where it came."""
    style = f"\n{(FOLDER / 'live.css').read_text(encoding='utf-8')}"
    parts = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = f'\n"use strict";\n(() => {{\n{parts}}})();\n'
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    template = (FOLDER / "live.html").read_text(encoding="utf-8")
    slots = {"style": style, "script": script}
    return SLOT.sub(lambda slot: slots[slot[1]], template).encode(), policy


def _hash(text: str) -> str:
    """Return the hash by which a policy knows a script or a style: that of all between its tags."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
