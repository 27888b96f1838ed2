"""Find the time of the events of a stream in a MATCH_RECOGNIZE clause: the first key of ORDER BY."""

from __future__ import annotations

from acep.errors import QueryError
from acep.pattern.expressions import error_at
from acep.plan.ordered.ordered_plan import OrderedPlan

__all__ = ["check_time_option", "order_error", "time_column"]


def time_column(plan: OrderedPlan) -> str:
    """Return the column of event times: the first key of ORDER BY.

    Raises :class:`QueryError` if there is none, as no stream can be searched then, and for a clause that reads whole
    partitions."""
    if plan.windows:
        raise QueryError("on a stream a partition has no end, and the clause has an aggregate OVER all of its rows",
                         hint="write the value as a constant", code="query_invalid")  # fmt: skip
    if not plan.order:
        raise order_error()
    key = plan.order[0]
    if key.is_descending or key.column not in plan.names:
        written = plan.clause.order[0]
        error = error_at("on a stream the first key of ORDER BY is the column of event times, ascending",
                         written.expression.span, "ORDER BY ts", code="query_invalid")  # fmt: skip
        error.located(plan.clause.text)
        raise error
    return key.column


def order_error() -> QueryError:
    """Return the error for a clause without ORDER BY."""
    hint = "add ORDER BY with the column of event times"
    return QueryError("on a stream rows come in the order of time, and the clause has no ORDER BY", hint=hint,
                      code="query_invalid")  # fmt: skip


def check_time_option(ts: str, name: str) -> None:
    """Raise :class:`QueryError` if a user names another time column than the clause does."""
    if ts not in ("ts", name):
        raise QueryError(f"the clause has the times in `{name}`, and ts={ts!r}", hint=f'ts="{name}", or leave it out',
                         code="option_invalid")  # fmt: skip
