"""Tell which expressions have dates as their values: for engines these are times."""

from __future__ import annotations

from collections.abc import Callable

from acep.functions.lookup import is_choice
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.times import UNITS

__all__ = ["gives_date"]

DAY = UNITS["day"]


def gives_date(expr: ex.Expr, is_column: Callable[[ex.Expr], bool]) -> bool:
    """Return whether the value of an expression is a date. ``is_column``: whether an attribute is."""
    match expr:
        case ex.Attribute():
            return is_column(expr)
        case ex.Call(name="sql date"):
            return True
        case ex.Call(name="sql date_trunc", args=(moment, ex.Literal(value=unit))):
            return gives_date(moment, is_column) and UNITS.get(str(unit), DAY) >= DAY
        case ex.Call(name="sql add_months" | "sql trunc", args=(moment, *_)):
            return gives_date(moment, is_column)
        case ex.Call(name=name, args=args) if is_choice(name):
            return _are_dates(args, is_column)
        case ex.Call(name=name, args=args) if name == CASE:
            return _are_dates((*args[1::2], args[-1]), is_column)
        case (
            ex.Binary(op="+" | "-", left=moment, right=ex.Duration(ns=ns))
            | ex.Binary(op="+", left=ex.Duration(ns=ns), right=moment)
        ):
            return ns % DAY == 0 and gives_date(moment, is_column)
    return False


def _are_dates(values: tuple[ex.Expr, ...], is_column: Callable[[ex.Expr], bool]) -> bool:
    non_null_values = [value for value in values if not (isinstance(value, ex.Literal) and value.value is None)]
    return bool(non_null_values) and all(gives_date(value, is_column) for value in non_null_values)
