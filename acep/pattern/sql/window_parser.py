"""Parse WITHIN of a MATCH_RECOGNIZE clause: a number, or an interval of units of fixed length."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.clause_tree import MatchSpan
from acep.pattern.sql.interval_spans import are_span_units, span_ns
from acep.pattern.sql.scanner import SqlToken, exact_number
from acep.pattern.times import UNITS

__all__ = ["parse_window"]

_UNITS = {"MILLISECOND": "ms", "SECOND": "s", "MINUTE": "min", "HOUR": "h", "DAY": "d", "MICROSECOND": "us"}


def parse_window(tokens: Sequence[SqlToken], start: int) -> tuple[MatchSpan, int]:
    """Parse the WITHIN that is ``tokens[start]``; return it and the place behind it.

    Raises :class:`QueryError` with the place of what does not fit.

    >>> from acep.pattern.sql.scanner import scan
    >>> parse_window(scan("WITHIN INTERVAL '10' SECOND"), 0)[0].amount
    Fraction(10000000000, 1)
    """
    index = start + 1
    is_interval = tokens[index].is_word("INTERVAL")
    index += is_interval
    token = tokens[index]
    if token.kind not in ("string", "number"):
        raise error_at(f"a constant is needed behind WITHIN, not `{token.value[:40]}`", token.span,
                       "as in WITHIN INTERVAL '10' MINUTE", code="query_syntax")  # fmt: skip
    index += 1
    if is_interval and token.kind == "string" and tokens[index].kind == "word" and tokens[index + 1].is_word("TO"):
        return _span_window(tokens, start)
    amount, unit = _interval(token, is_interval)
    if is_interval and unit is None:
        if tokens[index].kind not in ("word", "name"):
            hint = "as in WITHIN INTERVAL '10' MINUTE"
            raise error_at("a unit of time is needed here", tokens[index].span, hint, code="query_syntax")
        unit = tokens[index].value
        index += 1
    end = tokens[index - 1].end
    factor = Fraction(1) if unit is None else _unit_ns(unit, Span(token.start, end))
    return MatchSpan(amount * factor, is_interval, Span(tokens[start].start, end)), index


def _span_window(tokens: Sequence[SqlToken], start: int) -> tuple[MatchSpan, int]:
    """Parse WITHIN with an interval of several units: WITHIN INTERVAL '1:30' HOUR TO MINUTE."""
    constant, first, _, last = tokens[start + 2 : start + 6]
    span = Span(constant.start, last.end)
    names, hint = (first.value.upper(), last.value.upper()), "as in WITHIN INTERVAL '1:30' HOUR TO MINUTE"
    if not are_span_units(*names):
        raise error_at(f"{names[0][:40]} TO {names[1][:40]} are not units of an interval", span, hint,
                       code="query_syntax")  # fmt: skip
    amount = span_ns(constant.value[1:-1].strip(), *names)
    if amount is None:
        raise error_at(f"`{constant.value[1:-1][:40]}` is not an interval from {names[0]} to {names[1]}", span, hint,
                       code="query_syntax")  # fmt: skip
    if amount < 0:
        raise error_at(
            "WITHIN takes no negative length",
            constant.span,
            "write the greatest time from the first row to the last one, as in WITHIN INTERVAL '1' HOUR",
            code="query_invalid",
        )
    return MatchSpan(Fraction(amount), True, Span(tokens[start].start, last.end)), start + 6


def _interval(token: SqlToken, is_interval: bool) -> tuple[Fraction, str | None]:
    """Return the number of a constant, and the unit where the text of an interval has it, as in '10 minutes'."""
    text = token.value[1:-1].strip() if token.kind == "string" else token.value
    if token.kind == "string" and not is_interval:
        hint = "as in WITHIN INTERVAL '10' MINUTE, or WITHIN 600"
        raise error_at("a number or an INTERVAL is needed behind WITHIN", token.span, hint, code="query_syntax")
    number, _, unit = text.partition(" ")
    try:
        amount = exact_number(number)
    except ValueError:
        raise error_at(
            f"`{text[:40]}` is not a number of a unit", token.span, "as in INTERVAL '10' MINUTE", code="query_syntax"
        ) from None
    if amount < 0:
        raise error_at(
            "WITHIN takes no negative length",
            token.span,
            "write the greatest time from the first row to the last one, as in WITHIN INTERVAL '1' HOUR",
            code="query_invalid",
        )
    return amount, unit.strip() or None


def _unit_ns(unit: str, span: Span) -> Fraction:
    known_unit = _UNITS.get(unit.upper().removesuffix("S"), unit.lower())
    if known_unit not in UNITS:
        names = ", ".join(sorted(_UNITS))
        raise error_at(f"`{unit[:40]}` is not a unit of fixed length", span, f"one of {names}", code="query_syntax")
    return Fraction(UNITS[known_unit])
