"""Put the data, the figures, the drawing of the automaton and the scripts of a page into one document of HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html import escape
from pathlib import Path

from acep.display import LARGEST
from acep.errors import AcepError
from acep.explain.automaton_svg import arcs_svg
from acep.pages.figures import series_figure, time_line_figure
from acep.pages.page_data import PageData, as_json
from acep.pattern.tree import Query
from acep.plots.canvas import COLOURS

__all__ = ["document"]

FOLDER = Path(__file__).parent
SCRIPTS = ("compare.js", "table.js", "time_line.js", "details.js", "page.js")
SLOT = re.compile(r"\{\{(\w+)\}\}")


def document(data: PageData, query: Query) -> str:
    """Return a page as a document of HTML that loads nothing: only its own scripts run, known by their hashes.

    Texts of the data stand in it as JSON without ``<``, and the scripts show them as texts."""
    from bokeh.embed import json_item

    figures = {"time_line": json_item(time_line_figure(data)), "series": json_item(series_figure(data))}
    scripts = [_bokeh_script(), _own_script()]
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; script-src {hashes}"
    parts = {
        "policy": policy,
        "title": escape(data.title),
        "style": (FOLDER / "page.css").read_text(encoding="utf-8"),
        "data": as_json(data),
        "figures": _safe_json(figures),
        "colours": _safe_json(COLOURS),
        "automaton": _drawing(query),
        "bokeh": scripts[0],
        "script": scripts[1],
    }
    template = (FOLDER / "page.html").read_text(encoding="utf-8")
    return SLOT.sub(lambda slot: parts[slot[1]], template)


def _safe_json(value: object) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _bokeh_script() -> str:
    """Return the scripts of bokeh, which it brings with it."""
    from bokeh.resources import Resources

    script = "\n".join(Resources(mode="inline", components=["bokeh"], minified=True, log_level="warn").js_raw)
    return re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE)


def _own_script() -> str:
    parts = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _hash(script: str) -> str:
    """Return the hash by which a policy of a page knows a script: that between its tags, with its ends of lines."""
    return base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()


def _drawing(query: Query) -> str:
    """Return the drawing of the automaton, or a sentence where it is too large."""
    try:
        drawing = arcs_svg(query)
    except AcepError as error:
        return f"<p>The automaton is not drawn: {escape(error.message)}</p>"
    return drawing if len(drawing) <= LARGEST else "<p>The automaton is too large to be drawn here.</p>"
