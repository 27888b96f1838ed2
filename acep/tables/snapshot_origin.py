"""Say in a snapshot with which queries and options it was taken, and how those of another stream differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from acep.budget import Budget
from acep.errors import SnapshotError
from acep.pattern.state_text import state_text
from acep.pattern.tree import Query

__all__ = ["difference_of", "difference_of_casts", "origin_of"]

BOUNDS = ("work", "cpu", "latency", "memory")
"""What a budget may bound."""


def origin_of(
    queries: Sequence[Query], names: Sequence[str], options: Mapping[str, Any], budget: Budget | None
) -> dict[str, Any]:
    """Return what a snapshot says of the queries, their names and the options with which it was taken, as JSON-like
    data. The values of options are text."""
    exact = [state_text(replace(query, errors=Fraction(0), weights=(), surplus=None)) for query in queries]
    errors = ", ".join(dict.fromkeys(str(query.errors) for query in queries))
    weights = ", ".join(dict.fromkeys(str({name: str(w) for name, w in query.weights}) for query in queries))
    surplus = ", ".join(dict.fromkeys(str(query.surplus) for query in queries))
    budgets = {"errors": errors, "weights": weights, "surplus": surplus}
    return {
        "queries": exact,
        "names": [*names],
        "options": budgets | {name: repr(value) for name, value in options.items()},
        "bounds": [] if budget is None else [bound for bound in BOUNDS if getattr(budget, bound) is not None],
    }


def difference_of(current: Mapping[str, Any], payload: Any) -> SnapshotError | None:
    """Return the error that says how a snapshot differs from a stream, by the payload of the one and the origin that a
    snapshot of the other would have. ``None``: it is of other queries, or it does not say.

    >>> current = origin_of([], ["x"], {"lateness": None}, None)
    >>> earlier = origin_of([], ["x"], {"lateness": 5}, None)
    >>> print(difference_of(current, {"origin": earlier}).message)
    the snapshot was taken of this query with lateness=5, and here it has lateness=None
    """
    earlier = _origin_in(payload)
    if earlier is None or earlier["queries"] != current["queries"]:
        return None
    if earlier["names"] != current["names"]:
        return SnapshotError(
            f"the snapshot is of {_form(earlier['names'])}, and here is {_form(current['names'])}",
            hint="give the queries in the same form and under the same names",
        )
    options = [name for name, value in current["options"].items() if earlier["options"].get(name, value) != value]
    if options:
        return _other_options(options, current, earlier)
    if earlier["bounds"] != current["bounds"]:
        before, now = (" and ".join(map(str, side["bounds"])) or "nothing" for side in (earlier, current))
        return SnapshotError(
            f"the snapshot was taken under a budget that bounds {before}, and here it bounds {now}",
            hint="restore it with a budget that bounds the same, or start without it",
        )
    return None


def difference_of_casts(current: Mapping[str, Any], payload: Any) -> SnapshotError | None:
    """Return the error that says that a snapshot was taken with other casts of columns than those of a stream;
    ``None``: with the same, or it does not say, as an earlier acep wrote it."""
    earlier = _origin_in(payload)
    casts = current["options"]["cast"]
    if earlier is None or earlier["options"].get("cast", casts) == casts:
        return None
    return _other_options(["cast"], current, earlier)


def _other_options(names: Sequence[str], current: Mapping[str, Any], earlier: Mapping[str, Any]) -> SnapshotError:
    """Return the error that says how options differ."""
    before, now = (", ".join(f"{name}={side['options'][name]}" for name in names) for side in (earlier, current))
    return SnapshotError(
        f"the snapshot was taken of this query with {before}, and here it has {now}",
        hint="restore it with the options that it was taken with, or start without it",
    )


def _origin_in(payload: Any) -> dict[str, Any] | None:
    """Return the origin in a payload; ``None``: it has none, as an earlier acep wrote it, or one of another form."""
    data = payload.get("origin") if isinstance(payload, dict) else None
    kinds = {"queries": list, "names": list, "options": dict, "bounds": list}
    if not isinstance(data, dict) or not all(isinstance(data.get(name), kind) for name, kind in kinds.items()):
        return None
    return data


def _form(names: Sequence[Any]) -> str:
    """Return the form in which queries with these names were given."""
    if list(names) == [""]:
        return "one query alone"
    if list(names) == [str(number) for number in range(len(names))]:
        return f"a list of {len(names)}"
    return "queries with the names " + ", ".join(map(repr, names))
