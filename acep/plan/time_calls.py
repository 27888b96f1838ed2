"""Expand calls of times that SQL has into operations that all engines run: units cut off, months, parts, texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import error_at
from acep.plan.decimals import Typed

__all__ = ["TIME_CALLS", "expand_time_call"]

DAY = 86_400 * 10**9
WEEK = 7 * DAY
_MONDAY = -3 * DAY  # the one before 1970-01-01
CUT_UNITS = {
    "microsecond": 10**3, "millisecond": 10**6, "second": 10**9, "minute": 60 * 10**9, "hour": 3600 * 10**9, "day": DAY,
    "week": WEEK,
}  # fmt: skip
"""The units of fixed length that a time is cut off to, in nanoseconds."""

_OF_LENGTHS = {"day": (DAY, None), "hour": (3600 * 10**9, 24), "minute": (60 * 10**9, 60), "second": (10**9, 60)}


def expand_time_call(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    """Return a call of ``TIME_CALLS`` with its resolved arguments as operations that engines run.

    Raises :class:`QueryError` for arguments of other types."""
    return TIME_CALLS[expr.name](expr, args)


def _need_time(expr: ex.Call, x: Typed, kinds: tuple[str, ...] = ("timestamp",)) -> None:
    if x.kind not in (*kinds, "null"):
        name = expr.name.removeprefix("sql ")
        raise error_at(f"{name} needs a {' or a '.join(kinds)}, not {x.named}", x.expr.span or expr.span, None,
                       code="query_type")  # fmt: skip


def _constant(x: Typed) -> object:
    assert isinstance(x.expr, ex.Literal)
    return x.expr.value


def _binary(op: str, left: ex.Expr, right: ex.Expr | float) -> ex.Expr:
    return ex.Binary(op, left, ex.Literal(right) if isinstance(right, int | float) else right)


def _length(ns: int) -> ex.Expr:
    return ex.Duration(Fraction(ns))


def _floor_quotient(left: ex.Expr, right: int) -> ex.Expr:
    """Return the quotient of small whole numbers, rounded down."""
    return ex.Call("floor", (_binary("/", left, right),))


def _cut(moment: ex.Expr, ns: int) -> ex.Expr:
    """Return a time cut off to a multiple of a length since 1970, or since a Monday for weeks."""
    length = _length(ns)
    since = ex.Binary("-", moment, ex.Timestamp(_MONDAY if ns == WEEK else 0))
    # The remainder takes the sign of the dividend; before 1970 it has to be positive too.
    above = ex.Binary("%", ex.Binary("+", ex.Binary("%", since, length), length), length)
    return ex.Binary("-", moment, above)


def _day_number(moment: ex.Expr) -> ex.Expr:
    """Return the number of days from 1970-01-01 to a time."""
    since = ex.Binary("-", _cut(moment, DAY), ex.Timestamp(0))
    return _round_quotient(ex.Binary("/", since, _length(DAY)))


def _days_to(year: ex.Expr, month: ex.Expr) -> ex.Expr:
    """Return the number of days from 1970-01-01 to the first day of a month of the Gregorian calendar."""
    # Years begin in March, so that the leap day is the last one; `shift` is 1 in January and February.
    shift = ex.Call(CASE, (_binary("<=", month, 2), ex.Literal(1), ex.Literal(0)))
    march_year = ex.Binary("-", year, shift)
    march_month = ex.Binary("+", _binary("-", month, 3), _binary("*", shift, 12))
    days = _binary("*", march_year, 365)
    for divisor, sign in ((4, "+"), (100, "-"), (400, "+")):
        days = ex.Binary(sign, days, _floor_quotient(march_year, divisor))
    days = ex.Binary("+", days, _floor_quotient(_binary("+", _binary("*", march_month, 153), 2), 5))
    return _binary("-", days, 719_468)


def _at_day(days: ex.Expr) -> ex.Expr:
    return ex.Binary("+", ex.Timestamp(0), ex.Binary("*", days, _length(DAY)))


def _round_quotient(quotient: ex.Expr) -> ex.Expr:
    """Return a quotient that is whole, but for what a double cannot hold, as an integer."""
    return ex.Call("floor", (ex.Call("round", (quotient,)),))


def _part(name: str, moment: ex.Expr) -> ex.Expr:
    return ex.Call(name, (moment,))


def _cut_to_unit(moment: ex.Expr, unit: str) -> ex.Expr:
    if unit in CUT_UNITS:
        return _cut(moment, CUT_UNITS[unit])
    year, month = _part("year", moment), _part("month", moment)
    if unit == "year":
        month = ex.Literal(1)
    if unit == "quarter":
        month = _binary("+", _binary("*", _floor_quotient(_binary("-", month, 1), 3), 3), 1)
    return _at_day(_days_to(year, month))


def _date_trunc(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    moment, unit = args
    _need_time(expr, moment)
    return Typed(_cut_to_unit(moment.expr, str(_constant(unit))), moment.kind)


def _to_date(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    (x,) = args
    _need_time(expr, x)
    if isinstance(x.expr, ex.Timestamp) and x.expr.ns % DAY == 0:
        return x
    return Typed(_cut(x.expr, DAY), x.kind)


def _to_timestamp(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    _need_time(expr, args[0])
    return args[0]


def _add_months(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    """Expand the addition of months: a day that the month does not have becomes its last one."""
    moment, months = args
    _need_time(expr, moment)
    if months.kind not in ("int", "null"):
        raise error_at(f"a number of months is an integer, not {months.named}", expr.span, code="query_type")
    x = moment.expr
    months_before = _binary("-", ex.Binary("+", _binary("*", _part("year", x), 12), _part("month", x)), 1)
    total = ex.Binary("+", months_before, months.expr)
    year = _floor_quotient(total, 12)
    month = _binary("+", _binary("-", total, _binary("*", year, 12)), 1)
    following = _binary("+", total, 1)
    next_year = _floor_quotient(following, 12)
    next_month = _binary("+", _binary("-", following, _binary("*", next_year, 12)), 1)
    first, end = _days_to(year, month), _days_to(next_year, next_month)
    day = ex.Call("least", (_part("day", x), ex.Binary("-", end, first)))
    time_of_day = ex.Binary("-", x, _cut(x, DAY))
    midnight = _at_day(_binary("-", ex.Binary("+", first, day), 1))
    return Typed(ex.Binary("+", midnight, time_of_day), moment.kind)


def _extract(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    unit, moment = str(_constant(args[0])), args[1]
    if moment.kind == "duration":
        return _extract_of_length(expr, unit, moment)
    _need_time(expr, moment)
    x = moment.expr
    days = _day_number(x)
    weekday = _binary("%", _binary("+", _binary("%", _binary("+", days, 3), 7), 7), 7)  # 0 is Monday
    match unit:
        case "epoch":
            return Typed(ex.Binary("/", ex.Binary("-", x, ex.Timestamp(0)), _length(10**9)), "float")
        case "quarter":
            return Typed(_floor_quotient(_binary("+", _part("month", x), 2), 3), "int")
        case "isodow":
            return Typed(_binary("+", weekday, 1), "int")
        case "doy":
            return Typed(_binary("+", ex.Binary("-", days, _days_to(_part("year", x), ex.Literal(1))), 1), "int")
        case "week":
            thursday = _binary("+", ex.Binary("-", days, weekday), 3)
            new_year = _days_to(_part("year", _at_day(thursday)), ex.Literal(1))
            return Typed(_binary("+", _floor_quotient(ex.Binary("-", thursday, new_year), 7), 1), "int")
    return Typed(_part(unit, x), "int")


def _extract_of_length(expr: ex.Call, unit: str, length: Typed) -> Typed:
    """Expand EXTRACT of a duration: whole units, of those that the next greater one leaves; EPOCH is all of it in
    seconds."""
    if unit == "epoch":
        return Typed(ex.Binary("/", length.expr, _length(10**9)), "float")
    if unit not in _OF_LENGTHS:
        raise error_at(f"a duration has no {unit}", length.expr.span or expr.span, "EPOCH gives its seconds",
                       code="query_type")  # fmt: skip
    ns, limit = _OF_LENGTHS[unit]
    remainder = length.expr if limit is None else ex.Binary("%", length.expr, _length(ns * limit))
    return Typed(_whole_units(remainder, ns), "int")


def _whole_units(length: ex.Expr, ns: int) -> ex.Expr:
    """Return how many times a duration has a length, cut off towards zero."""
    multiple = ex.Binary("-", length, ex.Binary("%", length, _length(ns)))
    return _round_quotient(ex.Binary("/", multiple, _length(ns)))


def _units(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    """Expand the number of whole units from one time to another."""
    unit, first, last = args
    for moment in (first, last):
        _need_time(expr, moment)
    return Typed(_whole_units(ex.Binary("-", last.expr, first.expr), _OF_LENGTHS[str(_constant(unit))][0]), "int")


def _to_char(expr: ex.Call, args: Sequence[Typed]) -> Typed:
    moment, template = args
    _need_time(expr, moment)
    x = moment.expr
    fraction = ex.Binary("-", x, _cut(x, 10**9))
    micros = ex.Call("floor", (ex.Binary("/", fraction, _length(10**3)),))
    numbers = [_part(name, x) for name in ("year", "month", "day", "hour", "minute", "second")]
    return Typed(ex.Call("sql time text", (template.expr, *numbers, micros), expr.span), "string")


TIME_CALLS: dict[str, Callable[[ex.Call, Sequence[Typed]], Typed]] = {
    "sql date_trunc": _date_trunc,
    "sql date": _to_date,
    "sql timestamp": _to_timestamp,
    "sql add_months": _add_months,
    "sql extract": _extract,
    "sql to_char": _to_char,
    "sql timestampdiff": _units,
}
"""The calls by their names in expressions, none of which a query of SASE+ can write."""
