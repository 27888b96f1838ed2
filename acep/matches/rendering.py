"""Show matches, match points, match bundles and reports, as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from acep.display import ROWS, clip_text, list_text, page, table
from acep.matches.found_columns import taken_back
from acep.matches.grouping import bundle_count
from acep.matches.zoned_times import zoned_text

if TYPE_CHECKING:
    from acep.matches.answers import Bundle, Bundles, Point, Points
    from acep.matches.matches import Match, Matches
    from acep.matches.partials.partial_matches import PartialMatch
    from acep.matches.report import Report

__all__ = [
    "PARTS",
    "bound_text",
    "group_line",
    "group_page",
    "groups_page",
    "groups_text",
    "match_line",
    "match_page",
    "matches_page",
    "matches_text",
    "named_texts",
    "report_page",
    "shown_value",
]

PARTS = 20  # key attributes, variables or values in a line
_BARE = re.compile(r"[^\W\d][\w.:/@+-]*")  # texts that nobody takes for another value
_CONSTANTS = {"None", "True", "False", "nan", "inf", "NaT"}


def shown_value(value: Any, name: str = "", zoned: Collection[str] = ()) -> str:
    """Return a value as text: quoted if it is a text that could be taken for something else, or is long. ``zoned`` are
    the names of the times that have a zone.

    >>> shown_value("x"), shown_value("x y"), shown_value("5"), shown_value(5), shown_value("z" * 1000)[-23:]
    ('x', "'x y'", "'5'", '5', "'... (1,000 characters)")
    """
    if not isinstance(value, str):
        return clip_text(zoned_text(value, name, zoned))
    if len(value) <= 80 and _BARE.fullmatch(value) and value not in _CONSTANTS:
        return value
    return repr(value) if len(value) <= 80 else f"{value[:80]!r}... ({len(value):,} characters)"


def named_texts(values: dict[str, Any], part: str, zoned: Collection[str]) -> list[str]:
    """Return names with their values, at most some of them. ``part``: whether they are those of a ``key``, or the
    ``values`` of RETURN."""
    first = islice(values.items(), PARTS)
    texts = [f"{clip_text(name)}={shown_value(value, f'{part}.{name}', zoned)}" for name, value in first]
    return texts + ([f"... {len(values):,} in all"] if len(values) > PARTS else [])


def _ids(ids: Sequence[Any]) -> str:
    if len(ids) <= ROWS:
        return ",".join(map(shown_value, ids))
    return f"{','.join(map(shown_value, ids[: ROWS // 2]))},...,{shown_value(ids[-1])} ({len(ids):,} events)"


def bound_text(match: Match | PartialMatch) -> str:
    """Return the variables with the ids of their events, at most some of them."""
    texts = [f"{clip_text(var)}={_ids(ids)}" for var, ids in islice(match.bindings.items(), PARTS)]
    return " ".join(texts + ([f"... {len(match.bindings):,} variables"] if len(match.bindings) > PARTS else []))


# Matches ----------------------------------------------------------------------------------------


def match_line(match: Match) -> str:
    """Return a match as one line: its key, the times of its first and last event, its events, error and values."""
    parts = ["taken back:"] if match.op < 0 else []
    start, end = (shown_value(time, "start", match._zoned) for time in (match.start, match.end))
    parts += [*named_texts(match.key, "key", match._zoned), f"{start}..{end}", bound_text(match)]
    parts += [f"error={match.error}"] if match.error else []
    return "  ".join([*parts, *named_texts(match.values, "values", match._zoned)])


def match_page(match: Match) -> str:
    """Return a match as HTML: its fields, and the events of each variable."""
    zoned = match._zoned
    start, end = (shown_value(time, "start", zoned) for time in (match.start, match.end))
    rows = [
        [f"key {name}", shown_value(value, f"key.{name}", zoned)] for name, value in islice(match.key.items(), PARTS)
    ]
    rows += [["start (first event)", start], ["end (last event)", end]]
    rows += [["error", str(match.error)]]
    rows += [["taken back", "yes"]] if match.op < 0 else []
    values = islice(match.values.items(), PARTS)
    rows += [[f"value {name}", shown_value(value, f"values.{name}", zoned)] for name, value in values]
    bound = [[var, _ids(ids), f"{len(ids):,}"] for var, ids in islice(match.bindings.items(), PARTS)]
    events = table(["variable", "event ids", "events"], bound, len(match.bindings))
    n_hidden = max(len(match.key) - PARTS, 0) + max(len(match.values) - PARTS, 0)
    return page("1 match", table(["field", "value"], rows, len(rows) + n_hidden), events)


def _title(matches: Matches) -> str:
    number = len(matches)
    missing_text = "" if matches.exact else f"; not exact: {matches.report.missing()}"
    if not number:
        return f"no matches{missing_text}"
    if matches.revised:
        n_taken_back = taken_back(matches.found)
        n_given = number - n_taken_back
        return f"{n_given:,} match{'es' if n_given != 1 else ''}, {n_taken_back:,} taken back{missing_text}"
    bundles = bundle_count(matches.found)
    return (
        f"{number:,} match{'es' if number > 1 else ''} in {bundles:,} bundle{'s' if bundles > 1 else ''}{missing_text}"
    )


def matches_text(matches: Matches) -> str:
    """Return the first matches, a line each."""
    return list_text(_title(matches), [match_line(match) for match in matches[:ROWS]], len(matches))


def matches_page(matches: Matches) -> str:
    """Return the first matches as an HTML table, with the report."""
    last = "op" if matches.revised else "bundle"
    heads = [*matches.keys, "start", "end", "error", "bindings", last, *matches.returns]
    rows = [
        [
            *(shown_value(value, f"key.{name}", m._zoned) for name, value in m.key.items()),
            *(shown_value(value, "start", m._zoned) for value in (m.start, m.end)),
            shown_value(m.error),
            bound_text(m),
            shown_value(getattr(m, last), "start", m._zoned),
            *(shown_value(value, f"values.{name}", m._zoned) for name, value in m.values.items()),
        ]
        for m in matches[:ROWS]
    ]
    return page(_title(matches), table(heads, rows, len(matches)), note=str(matches.report))


# Groups and reports -----------------------------------------------------------------------------


def group_line(group: Bundle | Point) -> str:
    """Return a match point or a match bundle as one line."""
    if hasattr(group, "point"):
        change = getattr(group, "change", None)
        changed = [] if change is None else [f"change={change:+}"]
        point = shown_value(group.point, "start", group._zoned)
        return "  ".join(
            [*named_texts(group.key, "key", group._zoned), f"match point {point}", f"best={group.best}", *changed]
        )
    start, end = (shown_value(time, "start", group._zoned) for time in (group.start, group.end))
    parts = [*named_texts(group.key, "key", group._zoned), f"match points {start}..{end}"]
    if group.matches is not None:
        parts.append(f"{group.matches:,} match{'es' if group.matches != 1 else ''}")
    return "  ".join([*parts, f"best={group.best}"])


def _cells(group: Bundle | Point) -> list[tuple[str, str]]:
    key = [(clip_text(name), shown_value(value, f"key.{name}", group._zoned)) for name, value in group.key.items()]
    best = ("best (least error)", str(group.best))
    if hasattr(group, "point"):
        change = getattr(group, "change", None)
        changed = [] if change is None else [("change", f"{change:+}")]
        return [*key, ("point (last event)", shown_value(group.point, "start", group._zoned)), best, *changed]
    number = [] if group.matches is None else [("matches", f"{group.matches:,}")]
    start, end = (shown_value(time, "start", group._zoned) for time in (group.start, group.end))
    points = [("start (first match point)", start), ("end (last match point)", end)]
    return [*key, *points, *number, best]


def group_page(group: Bundle | Point) -> str:
    """Return a match point or a match bundle as HTML."""
    title = "1 match point" if hasattr(group, "point") else "1 match bundle"
    return page(title, table([name for name, _ in _cells(group)], [[text for _, text in _cells(group)]]))


def _groups_title(groups: Bundles | Points) -> str:
    number = f"{len(groups):,}" if len(groups) else "no"
    title = f"{number} {groups.of if len(groups) != 1 else groups.of.removesuffix('s')}"
    return title if groups.exact else f"{title}; not exact: {groups.report.missing(groups.of)}"


def groups_text(groups: Bundles | Points) -> str:
    """Return the first match points or match bundles, a line each."""
    return list_text(_groups_title(groups), [group_line(group) for group in groups[:ROWS]], len(groups))


def groups_page(groups: Bundles | Points) -> str:
    """Return the first match points or match bundles as an HTML table, with the report."""
    cells = [_cells(group) for group in groups[:ROWS]]
    heads = [name for name, _ in cells[0]] if cells else []
    rows = [[text for _, text in row] for row in cells]
    return page(_groups_title(groups), table(heads, rows, len(groups)) if cells else "", note=str(groups.report))


def report_page(report: Report) -> str:
    """Return a report as HTML."""
    first, *lines = str(report).splitlines()
    return page(first, note="\n".join(lines))
