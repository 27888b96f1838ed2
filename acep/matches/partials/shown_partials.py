"""Show partial matches, as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from acep.display import ROWS, list_text, page, table
from acep.matches.rendering import PARTS, bound_text, named_texts, shown_value

if TYPE_CHECKING:
    from acep.matches.partials.partial_matches import PartialMatch, PartialMatches

__all__ = ["partial_line", "partial_page", "partials_page", "partials_text"]


def partial_line(partial: PartialMatch) -> str:
    """Return a partial match as one line: its key, state, times, events, error, sequences and utility."""
    start, end = (shown_value(time, "start", partial._zoned) for time in (partial.start, partial.end))
    parts = [*named_texts(partial.key, "key", partial._zoned), f"state {partial.state}", f"{start}..{end}"]
    parts.append(bound_text(partial))
    parts += [] if partial.until is None else [f"until={shown_value(partial.until, 'start', partial._zoned)}"]
    parts += [f"error={partial.error}"] if partial.error else []
    parts += [] if partial.sequences == 1 else [f"sequences={_number(partial.sequences)}"]
    parts += [] if partial.utility is None else [f"utility={partial.utility}"]
    return "  ".join(parts)


def _number(sequences: int | None) -> str:
    return "more than 2^63" if sequences is None else f"{sequences:,}"


def _cells(partial: PartialMatch) -> list[tuple[str, str]]:
    zoned = partial._zoned
    times = {"start": partial.start, "end": partial.end, "until": partial.until}
    key = [(name, shown_value(value, f"key.{name}", zoned)) for name, value in islice(partial.key.items(), PARTS)]
    return [
        ("state", partial.state),
        *key,
        *((name, "" if time is None else shown_value(time, "start", zoned)) for name, time in times.items()),
        ("error", str(partial.error)),
        ("bindings", bound_text(partial)),
        ("sequences", _number(partial.sequences)),
        ("utility", "" if partial.utility is None else str(partial.utility)),
    ]


def partial_page(partial: PartialMatch) -> str:
    """Return a partial match as HTML: its fields."""
    return page("1 partial match", table(["field", "value"], [[name, text] for name, text in _cells(partial)]))


def _title(partials: PartialMatches) -> str:
    number, total = len(partials), partials.total
    title = f"{number:,} partial match{'es' if number > 1 else ''}" if number else "no partial matches"
    return title if total == number else f"{title}, of {'more than 2^63' if total is None else f'{total:,}'}"


def partials_text(partials: PartialMatches) -> str:
    """Return the first partial matches, a line each."""
    return list_text(_title(partials), [partial_line(partial) for partial in partials[:ROWS]], len(partials))


def partials_page(partials: PartialMatches) -> str:
    """Return the first partial matches as an HTML table."""
    cells = [_cells(partial) for partial in partials[:ROWS]]
    heads = [name for name, _ in cells[0]] if cells else []
    rows = [[text for _, text in row] for row in cells]
    return page(_title(partials), table(heads, rows, len(partials)) if cells else "")
