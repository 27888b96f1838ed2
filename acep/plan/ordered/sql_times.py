"""Convert calls and operations of times in SQL: units, intervals, templates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from acep.functions.time_templates import check_template, read_time
from acep.pattern import expressions as ex
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.interval_spans import are_span_units, span_ns
from acep.pattern.sql.scanner import exact_number
from acep.pattern.times import UNITS, ns_of

if TYPE_CHECKING:
    from acep.plan.ordered.sql_expressions import SqlConverter

__all__ = ["TIME_FUNCTIONS", "add_months_of", "extract_part", "length_of_time", "moment_of"]

DAY = UNITS["day"]
_LONG_UNITS = {"month": 1, "quarter": 3, "year": 12}
_CUT_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_ORACLE_UNITS = {
    **dict.fromkeys(("DD", "DDD", "J"), "day"), **dict.fromkeys(("MM", "MON", "MONTH"), "month"), "Q": "quarter",
    **dict.fromkeys(("YYYY", "YY", "YEAR", "Y"), "year"), "IW": "week", "MI": "minute",
    **dict.fromkeys(("HH24", "HH12", "HH"), "hour"),
}  # fmt: skip
_PARTS = ("year", "quarter", "month", "week", "day", "doy", "isodow", "hour", "minute", "second", "epoch")
_WHOLE_UNITS = ("second", "minute", "hour", "day")
_DIFFERENCE_HINT = (
    "engines count differently: TIMESTAMPDIFF(HOUR, a, b) is the number of whole hours, and "
    "(date_trunc('hour', b) - date_trunc('hour', a)) / INTERVAL '1' HOUR that of the hours that begin"
)


def unit_name(node: Any) -> str:
    """Return the unit that an argument names, as a word or as a text, in the singular; an empty text for others."""
    kind = type(node).__name__
    name = str(node.this) if kind in ("Literal", "Var", "Identifier") else node.name if kind == "Column" else ""
    name = name.lower()
    return name[:-1] if name.endswith("s") and name[:-1] in _CUT_UNITS else name


# Lengths of time --------------------------------------------------------------------------------------


def length_of_time(converter: SqlConverter, node: Any, span: Span) -> ex.Expr:
    """Return the duration of an INTERVAL of units of fixed length."""
    amount, unit = converter.parts(node, "this", "unit")
    if type(amount).__name__ == "Neg":
        return ex.Unary("-", _duration(converter, amount.args["this"], unit, node, span), span)
    return _duration(converter, amount, unit, node, span)


def _duration(converter: SqlConverter, amount: Any, unit: Any, node: Any, span: Span) -> ex.Expr:
    if type(amount).__name__ != "Literal" or type(unit).__name__ not in ("Var", "Identifier", "IntervalSpan"):
        raise converter.refuse(node, "this INTERVAL", "a constant and a unit, as in INTERVAL '10' MINUTE")
    text = str(amount.this).strip()
    if type(unit).__name__ == "IntervalSpan":
        return ex.Duration(Fraction(_span_ns(converter, text, unit, node)), span)
    name = str(unit.this).upper()
    singular = name.removesuffix("S")
    ns = UNITS.get(singular.lower()) or UNITS.get(name.lower())
    if ns is None:
        hint = "a unit of fixed length, as in INTERVAL '30' DAY"
        if singular.lower() in _LONG_UNITS:
            hint = "months are added to a time, as in ts + INTERVAL '1' MONTH"
        raise converter.refuse(node, f"INTERVAL in `{name[:40]}`", hint)
    try:
        return ex.Duration(exact_number(text) * ns, span)
    except ValueError:
        raise converter.refuse(node, f"INTERVAL '{text[:40]}'", "a number of one unit") from None


def _span_ns(converter: SqlConverter, text: str, unit: Any, node: Any) -> int:
    """Return the nanoseconds of an interval of several units, such as '1 02:30' DAY TO MINUTE."""
    first, last = str(unit.this.this).upper(), str(unit.expression.this).upper()
    if not are_span_units(first, last):
        raise converter.refuse(node, f"INTERVAL {first} TO {last}", "as in INTERVAL '1:30' HOUR TO MINUTE")
    total = span_ns(text, first, last)
    if total is None:
        raise converter.refuse(node, f"INTERVAL '{text[:40]}' {first} TO {last}", "as in '1:30' HOUR TO MINUTE")
    return total


def add_months_of(converter: SqlConverter, node: Any, span: Span) -> ex.Expr | None:
    """Return the sum of a time and an INTERVAL of months or years, or their difference; ``None`` for others."""
    sign = -1 if type(node).__name__ == "Sub" else 1
    left, right = node.args["this"], node.args["expression"]
    for moment, interval in ((left, right), (right, left))[: 2 if sign > 0 else 1]:
        unit = interval.args.get("unit") if type(interval).__name__ == "Interval" else None
        if unit is None or type(unit).__name__ not in ("Var", "Identifier"):
            continue
        months = _LONG_UNITS.get(str(unit.this).lower().removesuffix("s"))
        if months is None:
            continue
        amount, factor = interval.this, sign * months
        if type(amount).__name__ == "Neg":
            amount, factor = amount.this, -factor
        try:
            number = exact_number(str(amount.this).strip())
        except ValueError:
            number = None
        if number is None or number.denominator != 1:
            raise converter.refuse(interval, "this INTERVAL of months", "a whole number, as in INTERVAL '1' MONTH")
        return ex.Call("sql add_months", (converter.convert(moment), ex.Literal(int(number) * factor)), span)
    return None


# Calls ------------------------------------------------------------------------------------------------


def extract_part(converter: SqlConverter, node: Any, name: str, moment: Any, span: Span) -> ex.Expr:
    """Return a part of a time or of a duration."""
    names = {"week_of_year": "week", "weekofyear": "week", "weekiso": "week", "day_of_year": "doy", "dayofyear": "doy",
             "dayofweek_iso": "isodow", "dow_iso": "isodow", "dayofmonth": "day"}  # fmt: skip
    name = names.get(name, name)
    if name in ("dow", "dayofweek", "day_of_week"):
        raise converter.refuse(node, f"EXTRACT of `{name}`", "its numbers differ among engines: ISODOW is 1 on Mondays")
    if name not in _PARTS:
        raise converter.refuse(node, f"EXTRACT of `{name[:40]}`", f"there are {', '.join(_PARTS)}")
    return ex.Call("sql extract", (ex.Literal(name), converter.convert(moment)), span)


def _part_call(name: str) -> Callable[[SqlConverter, Any, list[Any], Span], ex.Expr]:
    return lambda converter, node, arguments, span: extract_part(
        converter, node, name, _only_argument(converter, node, arguments), span
    )


def _only_argument(converter: SqlConverter, node: Any, arguments: list[Any], count: int = 1) -> Any:
    if len(arguments) != count:
        raise converter.refuse(node, f"{str(node.this).upper()} of {len(arguments)} arguments")
    return arguments[0]


def _convert_date_part(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    _only_argument(converter, node, arguments, 2)
    return extract_part(converter, node, unit_name(arguments[0]), arguments[1], span)


def _convert_date_trunc(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    _only_argument(converter, node, arguments, 2)
    places = (0, 1) if unit_name(arguments[0]) in _CUT_UNITS else (1, 0)
    unit = unit_name(arguments[places[0]])
    return _cut(converter, node, arguments[places[1]], unit, span)


def _cut(converter: SqlConverter, node: Any, moment: Any, unit: str, span: Span) -> ex.Expr:
    if unit not in _CUT_UNITS:
        raise converter.refuse(node, f"the unit `{unit[:40]}`", f"there are {', '.join(_CUT_UNITS)}")
    return ex.Call("sql date_trunc", (converter.convert(moment), ex.Literal(unit)), span)


def _convert_trunc(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    if len(arguments) == 2 and type(arguments[1]).__name__ == "Literal" and arguments[1].args.get("is_string"):
        name = str(arguments[1].this)
        return _cut(converter, node, arguments[0], _ORACLE_UNITS.get(name.upper(), name.lower()), span)
    value = converter.convert(_only_argument(converter, node, arguments))
    return ex.Call("sql trunc", (value,), span)


def _convert_add(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    """Convert DATE_ADD(unit, n, time) of Trino, DATEADD of Snowflake, TIMESTAMPADD."""
    _only_argument(converter, node, arguments, 3)
    unit, moment = unit_name(arguments[0]), converter.convert(arguments[2])
    amount = converter.convert(arguments[1])
    if unit in _LONG_UNITS:
        return ex.Call("sql add_months", (moment, ex.Binary("*", amount, ex.Literal(_LONG_UNITS[unit]))), span)
    if unit not in _CUT_UNITS:
        raise converter.refuse(node, f"the unit `{unit[:40]}`", f"there are {', '.join(_CUT_UNITS)}")
    length = ex.Duration(Fraction(UNITS[unit]))
    if isinstance(amount, ex.Literal) and isinstance(amount.value, int):
        return ex.Binary("+", moment, ex.Duration(Fraction(UNITS[unit] * amount.value)), span)
    return ex.Binary("+", moment, ex.Binary("*", amount, length), span)


def _convert_difference(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    """Convert DATE_DIFF(unit, a, b): days between dates are the same in all engines, others are not."""
    _only_argument(converter, node, arguments, 3)
    first, last = (converter.convert(argument) for argument in arguments[1:])
    if unit_name(arguments[0]) == "day" and converter.gives_date(first) and converter.gives_date(last):
        days = ex.Binary("/", ex.Binary("-", last, first), ex.Duration(Fraction(DAY)))
        return ex.Call("cast integer", (ex.Call("round", (days,)),), span)
    raise converter.refuse(node, f"{str(node.this).upper()}", _DIFFERENCE_HINT)


def _convert_whole_units(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    """Convert TIMESTAMPDIFF(unit, a, b): the number of whole units, as Flink and Spark count."""
    _only_argument(converter, node, arguments, 3)
    unit = unit_name(arguments[0]).removeprefix("sql_tsi_")
    if unit not in _WHOLE_UNITS:
        raise converter.refuse(node, f"TIMESTAMPDIFF in `{unit[:40]}`", f"there are {', '.join(_WHOLE_UNITS)}")
    first, last = (converter.convert(argument) for argument in arguments[1:])
    return ex.Call("sql timestampdiff", (ex.Literal(unit), first, last), span)


def _refuser(hint: str) -> Callable[[SqlConverter, Any, list[Any], Span], ex.Expr]:
    def refuse(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:  # noqa: ARG001
        raise converter.refuse(node, f"{str(node.this).upper()}", hint)

    return refuse


def _convert_last_day(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    month = ex.Call(
        "sql date_trunc", (converter.convert(_only_argument(converter, node, arguments)), ex.Literal("month"))
    )
    following = ex.Call("sql add_months", (month, ex.Literal(1)))
    return ex.Call("sql date", (ex.Binary("-", following, ex.Duration(Fraction(DAY))),), span)


def _convert_date(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    return ex.Call("sql date", (converter.convert(_only_argument(converter, node, arguments)),), span)


def _convert_to_char(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
    value = converter.convert(arguments[0]) if arguments else None
    if value is not None and len(arguments) == 1 and not converter.gives_date(value):
        return ex.Call("sql text", (value,), span)
    if value is None or len(arguments) != 2:
        raise converter.refuse(node, "this TO_CHAR", "as in TO_CHAR(ts, 'YYYY-MM-DD')")
    template = _template(converter, node, arguments[1])
    return ex.Call("sql to_char", (value, ex.Literal(template)), span)


def _template(converter: SqlConverter, node: Any, argument: Any) -> str:
    if type(argument).__name__ != "Literal" or not argument.args.get("is_string"):
        raise converter.refuse(node, "a template that is no constant")
    try:
        check_template(str(argument.this))
    except ValueError as error:
        hint = "there are YYYY, YY, MM, DD, HH24, HH12, AM, MI, SS, FF1 to FF6, and texts in quotation marks"
        raise converter.refuse(node, f"`{str(error)[:40]}` in a template", hint) from None
    return str(argument.this)


def _time_reader(as_date: bool) -> Callable[[SqlConverter, Any, list[Any], Span], ex.Expr]:
    def read(converter: SqlConverter, node: Any, arguments: list[Any], span: Span) -> ex.Expr:
        name = str(node.this).upper()
        is_constant = (
            bool(arguments) and type(arguments[0]).__name__ == "Literal" and arguments[0].args.get("is_string")
        )
        if not is_constant or len(arguments) > 2:
            raise converter.refuse(
                node, f"{name} of a value that is no constant", "read it before, as a column of times"
            )
        text = str(arguments[0].this)
        if len(arguments) == 1:
            moment = moment_of(text, converter.span(node))
        else:
            template = _template(converter, node, arguments[1])
            try:
                moment = ns_of(read_time(template, text))
            except ValueError:
                raise error_at(
                    f"`{text[:40]}` does not fit '{template[:40]}'",
                    converter.span(node),
                    "the format has to be that of the text, as in TO_TIMESTAMP('2024-05-01', 'YYYY-MM-DD')",
                    code="query_type",
                ) from None
        constant = ex.Timestamp(moment, span)
        return ex.Call("sql date", (constant,), span) if as_date else constant

    return read


TIME_FUNCTIONS: dict[str, Callable[[SqlConverter, Any, list[Any], Span], ex.Expr]] = {
    "add_months": _refuser("engines differ at the end of a month: write d + INTERVAL '1' MONTH"),
    "date": _convert_date,
    "date_format": _refuser("write TO_CHAR(ts, 'YYYY-MM-DD')"),
    "date_part": _convert_date_part,
    "date_sub": _refuser("write d - INTERVAL '1' DAY"),
    "epoch": _part_call("epoch"),
    "last_day": _convert_last_day,
    "now": _refuser("a result that depends on the clock is not given: write the time as a constant"),
    "to_char": _convert_to_char,
    "to_date": _time_reader(True),
    "to_timestamp": _time_reader(False),
    **dict.fromkeys(("date_trunc", "timestamp_trunc"), _convert_date_trunc),
    **dict.fromkeys(("trunc", "truncate"), _convert_trunc),
    **dict.fromkeys(("date_add", "dateadd", "timestampadd", "timestamp_add"), _convert_add),
    "timestampdiff": _convert_whole_units,
    **dict.fromkeys(("date_diff", "datediff", "timestamp_diff"), _convert_difference),
    **{
        name: _part_call(name)
        for name in ("quarter", "week", "weekofyear", "week_of_year", "dayofyear", "day_of_year", "isodow",
                     "dayofweek_iso", "dayofweek", "day_of_week", "dayofmonth")
    },
}  # fmt: skip


def moment_of(text: str, span: Span) -> int:
    """Return the time that a text is, in nanoseconds since 1970. Raises :class:`QueryError` for another text."""
    text = text.strip()
    zoned = text.removesuffix(" UTC").removesuffix("Z")
    try:
        return ns_of(datetime.fromisoformat(zoned + ("+00:00" if zoned != text else "")))
    except ValueError:
        hint = "write it as 2026-01-31 10:00:00"
        raise error_at(f"`{text[:40]}` is not a time", span, hint, code="query_type") from None
