"""Show results to people, as HTML in a notebook and as text in a terminal: escaped, and bounded in size."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from acep.errors import printable

__all__ = [
    "MOST_TEXT",
    "ROWS",
    "TIMED",
    "bounded_repr",
    "clip_text",
    "clipped_lines",
    "fields_text",
    "interactive_page",
    "list_text",
    "make_pages_with",
    "marked_breaks",
    "page",
    "page_of",
    "picture",
    "preformat",
    "rate_text",
    "several_text",
    "show_with",
    "table",
    "text_of",
    "write_with",
]

ROWS = 10  # results that are shown, and entries of a list or dict
COLUMNS, MAX_ROWS = 30, 50  # columns and rows of any table
LONGEST = 80  # characters of a text
MOST_TEXT = 20_000  # characters of an answer of many lines
LARGEST = 200_000  # characters of a picture
TIMED = 0.1  # seconds below which a time says too little of the speed
DIGITS = 3  # of a speed
# Pages of nbconvert give <pre> the font of the text around it, and break its lines within words.
MONOSPACED = (
    "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;line-height:1.3;"
    "white-space:pre;word-break:normal;overflow-x:auto"
)
_BREAKS = re.compile(r"\r\n|\r|\n")
BREAK = "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"
_ANY_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_QUOTED = re.compile(r"--[^\r\n]*|'(?:[^']|'')*'|`(?:[^`]|``)*`")

# Text ------------------------------------------------------------------------------------------


def clip_text(text: str, limit: int = LONGEST) -> str:
    r"""Return the beginning of a text, with its length if something is left out; controls are written as escapes.

    >>> clip_text("a\nb"), clip_text("x" * 1000, 3)
    ('a\\nb', 'xxx... (1,000 characters)')
    """
    return printable(text[:limit]) + _cut(text, limit)


def marked_breaks(text: str, *, quoted: bool = True) -> str:
    r"""Return a query's text with an arrow in place of each end of a line inside of quotes, so that what follows it
    does not look as a line of the query. Not ``quoted``: in place of all of them.

    >>> print(marked_breaks("PATTERN A a -- it's one\nWHERE a.x = 'one\ntwo'"))
    PATTERN A a -- it's one
    WHERE a.x = 'one↵two'
    """
    if not quoted:
        return _ANY_BREAK.sub(BREAK, text)
    return _QUOTED.sub(lambda m: m[0] if m[0].startswith("--") else _ANY_BREAK.sub(BREAK, m[0]), text)


def clipped_lines(text: str, limit: int) -> str:
    r"""Return the beginning of a text of several lines, each as by :func:`clip_text`; blanks stand for tabs.

    >>> clipped_lines("a\n\tb\x1b\r\nc", 8), clipped_lines("ab\ncd", 4)
    ('a\n    b\\x1b\nc', 'ab\nc... (5 characters)')
    """
    return "\n".join(printable(line.expandtabs(4)) for line in _BREAKS.split(text[:limit])) + _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    return "" if len(text) <= limit else f"... ({len(text):,} characters)"


def bounded_repr(value: Any) -> str:
    """Return what ``repr`` gives of a value, with the beginning only of long texts, lists, tuples and dicts.

    >>> bounded_repr({"a": tuple(range(1000))})
    "{'a': (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 1,000 in all)}"
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= LONGEST else f"{value[:LONGEST]!r}... ({len(value):,} characters)"
    if type(value) is dict:
        entries = [f"{bounded_repr(key)}: {bounded_repr(entry)}" for key, entry in islice(value.items(), ROWS)]
        return f"{{{_first_parts(value, entries)}}}"
    if type(value) in (list, tuple):
        inside = _first_parts(value, [bounded_repr(element) for element in value[:ROWS]])
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    return clip_text(repr(value), 2 * LONGEST)


def _first_parts(value: Any, begin: list[str]) -> str:
    return ", ".join(begin) + (f", ... {len(value):,} in all" if len(value) > ROWS else "")


def fields_text(record: Any, names: Sequence[str] | None = None) -> str:
    """Return a dataclass as ``repr`` does, bounded; ``names``: only these of its fields."""
    shown_names = [field.name for field in fields(record) if field.repr] if names is None else names
    inside = ", ".join(f"{name}={bounded_repr(getattr(record, name))}" for name in shown_names)
    return f"{type(record).__name__}({inside})"


def list_text(title: str, lines: Sequence[str], total: int) -> str:
    """Return a title and the lines below it, some of ``total``."""
    return "\n".join([title, *(f"  {line}" for line in lines), *(["  ..."] if total > len(lines) else [])])


def rate_text(events: int, seconds: float) -> str:
    """Return events a second with three digits as a text; "" where the time is too short to know it.

    >>> rate_text(1_234_567, 0.5), rate_text(3, 2.0), rate_text(100_000, 0.0002)
    ('2,470,000', '1.5', '')
    """
    if seconds < TIMED:
        return ""
    rate = events / seconds
    return f"{rate:.{DIGITS}g}" if rate < 100 else f"{round(rate, DIGITS - len(str(int(rate)))):,.0f}"


def several_text(title: str, named: Sequence[tuple[str, str]], total: int) -> str:
    r"""Return a title and below it texts with their names, some of ``total``; the lines of a text are indented.

    >>> print(several_text("3 results", [("a", "one line"), ("b", "two\nlines")], 3))
    3 results
      a: one line
      b: two
        lines
      ...
    """
    lines = [line.replace("\n", "\n    ") for line in (f"{name}: {text}" for name, text in named)]
    return list_text(title, lines, total)


# HTML ------------------------------------------------------------------------------------------


def page(title: str, *parts: str, note: str = "") -> str:
    """Return the HTML of a title, parts that are HTML, and a note below them; title and note are texts."""
    lines = "<br>".join(_escape(clip_text(line, 5 * LONGEST)) for line in note.splitlines()[: 2 * ROWS])
    below = f"<p><small>{lines}</small></p>" if lines else ""
    head = f"<p><b>{_escape(clip_text(title, 5 * LONGEST))}</b></p>" if title else ""
    return f"<div>{head}{''.join(parts)}{below}</div>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int | None = None) -> str:
    """Return an HTML table of texts, and how many more rows there are of ``total``.

    >>> table(["<b>"], [["1"]], 3)
    '<table><thead><tr><th>&lt;b&gt;</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table><p>... and 2 more</p>'
    """
    total = len(rows) if total is None else total
    cut = len(heads) > COLUMNS
    head = _cells("th", [*heads[:COLUMNS], *([f"... {len(heads) - COLUMNS:,} more columns"] if cut else [])])
    shown_rows = rows[:MAX_ROWS]
    body = "".join(f"<tr>{_cells('td', [*row[:COLUMNS], *(['...'] if cut else [])])}</tr>" for row in shown_rows)
    note = f"<p>... and {total - len(shown_rows):,} more</p>" if total > len(shown_rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _escape(text: str) -> str:
    from html import escape  # most programs show no page

    return escape(text)


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{_escape(clip_text(text, 3 * LONGEST))}</{tag}>" for text in texts)


def preformat(text: str, limit: int = 2_000) -> str:
    """Return the HTML of a text of several lines, in letters of one width.

    >>> preformat("a < b").partition(">")[2]
    'a &lt; b</pre>'
    """
    cut = f"\n... ({len(text):,} characters)" if len(text) > limit else ""
    return f'<pre style="{MONOSPACED}">{_escape(text[:limit])}{cut}</pre>'


def picture(svg: str, otherwise: str) -> str:
    """Return the HTML of a drawing, or the text ``otherwise`` if it is too large.

    It is an image by itself, so that its styles do not reach the page, and no script in it would run."""
    if len(svg) > LARGEST:
        return page("", note=otherwise)
    return f'<img alt="drawing" src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode("ascii")}">'


# Texts and pages that later modules make ----------------------------------------------------------

_TEXTS: dict[str, Callable[[Any], str]] = {}
_PAGES: dict[str, Callable[[Any], str]] = {}
_INTERACTIVE: dict[str, Callable[..., Any]] = {}


def write_with(texts: Mapping[str, Callable[[Any], str]]) -> None:
    """Set the functions that make the texts of objects, by the names of their classes."""
    _TEXTS.update(texts)


def text_of(shown: Any) -> str:
    """Return the text of an object, by the function of :func:`write_with`. Raises :class:`KeyError` without one."""
    return _TEXTS[type(shown).__name__](shown)


def show_with(pages: Mapping[str, Callable[[Any], str]]) -> None:
    """Set the functions that make the HTML of objects, by the names of their classes."""
    _PAGES.update(pages)


def page_of(value: Any) -> str | None:
    """Return the HTML of an object, as :func:`show_with` told; ``None``: it has none."""
    render = _PAGES.get(type(value).__name__)
    return None if render is None else render(value)


def make_pages_with(pages: Mapping[str, Callable[..., Any]]) -> None:
    """Set the functions that make the interactive pages of objects, by the names of their classes."""
    _INTERACTIVE.update(pages)


def interactive_page(value: Any, *arguments: Any, **options: Any) -> Any:
    """Return the interactive page of an object, by the function of :func:`make_pages_with`."""
    return _INTERACTIVE[type(value).__name__](value, *arguments, **options)
