"""Describe the call that a state belongs to, in a file beside the state, so that people see whose state it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from acep.bucket_state.folders import Folder
from acep.errors import printable

__all__ = [
    "CallDescription",
    "list_differences",
    "read_description",
    "replace_description",
    "write_description",
]

FORMAT = 1
LONGEST_QUERY = 80
"""The most characters of a query that a list of differences shows."""
MOST_DIFFERENCES = 3
"""The most differences that are listed; of others there is the number."""


@dataclass(frozen=True)
class CallDescription:
    """The parts of a call that decide its fingerprint, for people, and for commands that make it again.

    ``queries`` are texts by name, ``columns`` kinds by name, ``options`` the other arguments by name, and ``buckets``
    the number of all buckets. Times of the state count in ticks of ``tick_ms`` (numerator, denominator) milliseconds,
    since 1970 if they are ``instants``. ``version`` is that of the acep that began the state. ``record``
    is what commands need besides, in a form that :mod:`acep.restarting.described_job` reads; it is empty if an earlier
    acep began the state. A state that was written from that of another call goes on ``after`` that micro-batch.
    """

    queries: Mapping[str, str]
    columns: Mapping[str, str]
    options: Mapping[str, Any]
    buckets: int
    tick_ms: tuple[int, int]
    instants: bool
    version: str
    record: Mapping[str, Any] = field(default_factory=dict)
    after: int | None = None


def write_description(folder: Folder, call: str, description: CallDescription) -> None:
    """Write the description into the folder of a call, if it has none, or one of an earlier acep without a record."""
    stored = folder.read(_path(call))
    lacks_record = stored is not None and bool(description.record) and b'"record"' not in stored
    if stored is None or (lacks_record and read_description(folder, call) is not None):
        replace_description(folder, call, description)


def replace_description(folder: Folder, call: str, description: CallDescription) -> None:
    """Write the description into the folder of a call, in place of any other."""
    content = json.dumps({"format": FORMAT, **asdict(description)}, default=str).encode()
    folder.write(_path(call), content, replace=True)


def read_description(folder: Folder, call: str) -> CallDescription | None:
    """Read the description of a call; ``None`` if there is none that can be read, as from an earlier acep."""
    try:
        data = json.loads(folder.read(_path(call)) or b"")
        queries, columns = (
            {str(name): str(text) for name, text in data[key].items()} for key in ("queries", "columns")
        )
        numerator, denominator = (int(part) for part in data["tick_ms"])
        options, buckets = dict(data["options"]), int(data["buckets"])
        if data["format"] != FORMAT or buckets < 1 or numerator < 1 or denominator < 1:
            return None
        instants, version = data["instants"] is True, str(data["version"])
        record, after = dict(data.get("record", {})), data.get("after")
        after = None if after is None else int(after)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    tick_ms = (numerator, denominator)
    return CallDescription(queries, columns, options, buckets, tick_ms, instants, version, record, after)


def list_differences(stored: CallDescription, current: CallDescription) -> str:
    """Say in a few words how the call of a state differs from another one; "" if the descriptions are the same.

    >>> stored = CallDescription({"": "PATTERN SEQ(A a)"}, {"ts": "int"}, {"buckets": 8}, 8, (1, 1), False, "1")
    >>> current = CallDescription({"": "PATTERN SEQ(B b)"}, {"ts": "float"}, {"buckets": 3}, 3, (1, 1), False, "1")
    >>> list_differences(stored, current)
    'the query (there `PATTERN SEQ(A a)`), column `ts` (there int, here float), buckets= (there 8, here 3)'
    """
    differences = [
        *_query_differences(stored.queries, current.queries),
        *_column_differences(stored.columns, current.columns),
        *_option_differences(stored.options, current.options),
    ]
    if not differences and stored.version != current.version:
        differences = [f"the version of acep (there {printable(stored.version)}, here {current.version})"]
    more = len(differences) - MOST_DIFFERENCES
    return ", ".join([*differences[:MOST_DIFFERENCES], *([f"and {more} more"] if more > 0 else [])])


def _query_differences(stored: Mapping[str, str], current: Mapping[str, str]) -> Iterator[str]:
    for name in {**stored, **current}:
        if stored.get(name) != current.get(name):
            title = f"the query `{printable(name)}`" if len(stored) > 1 or len(current) > 1 else "the query"
            text = stored.get(name)
            if text is None:
                yield f"{title} (only here)"
            else:
                part = _part_that_differs(text, current.get(name, ""))
                yield f"{title} (there `{printable(part)}`)" if name in current else f"{title} (only there)"


def _part_that_differs(text: str, other: str) -> str:
    """Return a text on one line; of a long one the part around the first place where it differs from another one.

    >>> _part_that_differs(f"PATTERN {'A+ ' * 40}WITHIN 5 min", f"PATTERN {'A+ ' * 40}WITHIN 3 min")
    '...A+ A+ A+ A+ A+ A+ A+ A+ A+ A+ A+ WITHIN 5 min'
    """
    text, other = " ".join(text.split()), " ".join(other.split())
    if len(text) <= LONGEST_QUERY:
        return text
    common = next((i for i, (left, right) in enumerate(zip(text, other, strict=False)) if left != right), len(text))
    start = text.rfind(" ", 0, max(common - LONGEST_QUERY // 2, 0)) + 1
    end = start + LONGEST_QUERY
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _column_differences(stored: Mapping[str, str], current: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({**stored, **current}):
        kinds = stored.get(name), current.get(name)
        if kinds[0] != kinds[1]:
            place = "only here" if kinds[0] is None else "only there" if kinds[1] is None else None
            yield f"column `{printable(name)}` ({place or f'there {printable(str(kinds[0]))}, here {kinds[1]}'})"


def _option_differences(stored: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[str]:
    for name in current:
        if name not in stored:  # another version of acep may name other options
            continue
        texts = _value_text(stored[name]), _value_text(current[name])
        if texts[0] != texts[1]:
            yield f"{printable(name)}= (there {texts[0]}, here {texts[1]})"


def _value_text(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else printable(str(value))


def _path(call: str) -> str:
    return f"{call}/job"
