"""Define the scalar functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from acep.functions.scalar_function import Example, ScalarFunction

__all__ = ["NUMBERS"]


def _round(x: Any, digits: int = 0) -> Any:
    if isinstance(x, int) and digits >= 0:
        return x
    if math.isinf(x) or not -300 <= digits <= 300:
        return x
    # Round half away from zero, as in SQL; Python's round goes to the even neighbour.
    result = Decimal(repr(x)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return int(result) if isinstance(x, int) else float(result)


def _of_double(name: str, function: Callable[[float], float], sentence: str, x: float, gives: float) -> ScalarFunction:
    """Return the entry of a function of a double, for which the native core has an operation of the same name."""
    node = {} if name == "log10" else {name.capitalize(): ("this",)}  # of LOG10 sqlglot makes a LOG
    return ScalarFunction(name, ("number",), "float", sentence, Example(f"{name}(a.x)", {"x": x}, gives), function,
                          operations={"float": name.upper()}, nodes=node)  # fmt: skip


def _of_sql(name: str, function: Callable[[float], float], sentence: str, x: float, gives: float) -> ScalarFunction:
    """Return the entry of a function of a double that SQL alone has."""
    node = {} if name == "log2" else {name.capitalize(): ("this",)}
    example = Example(f"{name.upper()}(A.x)", {"x": x}, gives)
    return ScalarFunction(f"sql {name}", ("number",), "float", sentence, example, function, nodes=node)


NUMBERS = (
    ScalarFunction(
        "abs", ("length",), "argument", "the number or the duration without its sign",
        Example("abs(a.x)", {"x": -3}, 3), abs, operations={"integer": "ABS_I", "float": "ABS_F"},
        of_decimals="units", nodes={"Abs": ("this",)},
    ),
    _of_double("sqrt", math.sqrt, "the square root", 6.25, 2.5),
    ScalarFunction(
        "floor", ("number",), "integer", "the next whole number below", Example("floor(a.x)", {"x": -2.5}, -3),
        math.floor, operations={"integer": "", "float": "FLOOR"}, of_decimals="places", nodes={"Floor": ("this",)},
    ),
    ScalarFunction(
        "ceil", ("number",), "integer", "the next whole number above", Example("ceil(a.x)", {"x": -2.5}, -2),
        math.ceil, operations={"integer": "", "float": "CEIL"}, of_decimals="places", nodes={"Ceil": ("this",)},
        synonyms=("ceiling",),
    ),
    ScalarFunction(
        "round", ("number", "integer"), "argument",
        "the number rounded to whole ones or to a number of digits, halves away from zero",
        Example("round(a.x, 1)", {"x": -2.25}, -2.3), _round, required=1,
        operations={"integer": "ROUND_I", "float": "ROUND_F"}, filling=0, of_decimals="digits",
        nodes={"Round": ("this", "decimals")},
    ),
    _of_double("exp", math.exp, "*e* to the power of the number", 0.0, 1.0),
    _of_double("ln", math.log, "the natural logarithm", 1.0, 0.0),
    _of_double("log10", math.log10, "the logarithm to base 10", 1000.0, 3.0),
    ScalarFunction(
        "power", ("number", "number"), "float", "the first number to the power of the second",
        Example("power(a.x, 3)", {"x": 2}, 8.0), math.pow, operations={"float": "POWER"}, synonyms=("pow",),
        nodes={"Pow": ("this", "expression")},
    ),
    ScalarFunction(
        "sign", ("length",), "integer", "-1, 0 or 1 as the number or the duration is below, equal to or above zero",
        Example("sign(a.x)", {"x": -2.5}, -1), lambda x: (x > 0) - (x < 0),
        operations={"integer": "SIGN_I", "float": "SIGN_F"}, of_decimals="units", nodes={"Sign": ("this",)},
    ),
    _of_sql("acos", math.acos, "the angle of a cosine", 1.0, 0.0),
    _of_sql("asin", math.asin, "the angle of a sine", 0.0, 0.0),
    _of_sql("atan", math.atan, "the angle of a tangent", 0.0, 0.0),
    ScalarFunction(
        "sql atan2", ("number", "number"), "float", "the angle of a point, whose y comes first",
        Example("ATAN2(A.y, A.x)", {"y": 0.0, "x": 1.0}, 0.0), math.atan2, nodes={"Atan2": ("this", "expression")},
    ),
    _of_sql("cos", math.cos, "the cosine", 0.0, 1.0),
    _of_sql("degrees", math.degrees, "an angle in degrees", 0.0, 0.0),
    _of_sql("log2", math.log2, "the logarithm to base 2", 8.0, 3.0),
    _of_sql("radians", math.radians, "an angle that is given in degrees", 0.0, 0.0),
    _of_sql("sin", math.sin, "the sine", 0.0, 0.0),
    _of_sql("tan", math.tan, "the tangent", 0.0, 0.0),
)  # fmt: skip
