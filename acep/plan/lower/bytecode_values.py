"""Define the typed values of block programs, and operations on them as in :mod:`acep.pattern.evaluation`.

A Python value is an integer or a float at run time, but a column of a program is always one of the two. If both are
possible, as from ``greatest(a.volume, a.price)``, a value is :class:`Mixed`: both columns, and a flag that selects one.
Operations are applied to both columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from acep.pattern import expressions as ex
from acep.pattern.evaluation import compile_expression
from acep.plan.decimals import EXCHANGED, HIGHEST, LOWEST
from acep.plan.lower.bytecode_words import CannotLower, Op, Words, bits_of
from acep.plan.schema import Kind

__all__ = ["INTEGERS", "Constant", "Mixed", "Operand", "Single", "Values", "Vector", "constant"]

INTEGERS: Final = (Kind.INT, Kind.TIMESTAMP)
NUMBERS: Final = (*INTEGERS, Kind.FLOAT)
_NAMES: Final = {"=": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
_ARITHMETIC: Final = {"+": "ADD", "-": "SUB", "*": "MUL", "/": "DIV", "%": "MOD"}


@dataclass(frozen=True)
class Constant:
    """A value that is the same in all rows. An integer may exceed 64 bits."""

    value: ex.Value
    kind: Kind


@dataclass(frozen=True)
class Vector:
    """A computed value of the program, identified by its number ``number``."""

    number: int
    kind: Kind


Single: TypeAlias = Constant | Vector


@dataclass(frozen=True)
class Mixed:
    """An integer in some rows and a float in others. ``floating`` (never null) selects; both columns may hold nulls."""

    ints: Single
    floats: Single
    floating: Single


Operand: TypeAlias = Constant | Vector | Mixed
Parts: TypeAlias = tuple[Single | None, Single | None, Single]


def constant(value: ex.Value, kind: Kind | None = None) -> Constant:
    """Return a constant of the kind of its value, or of ``kind`` if given."""
    if kind is None:
        kind = Kind.NULL if value is None else _KINDS[type(value)]
    return Constant(value, kind)


_KINDS: Final = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.STRING}
NULL: Final = constant(None)
TRUE: Final = constant(True)
FALSE: Final = constant(False)


def is_null(x: Operand) -> bool:
    """Return whether a value is the constant null."""
    return isinstance(x, Constant) and x.value is None


class Values:
    """The operations on values. They fold constants and write all other operations into ``words``."""

    def __init__(self, code_of_text: Callable[[str], int], tick_ns: Fraction | None) -> None:
        self.words = Words()
        self.code = code_of_text
        self._tick_ns = tick_ns

    def fold(self, expr: ex.Expr, kind: Kind | None = None) -> Constant:
        """Evaluate an expression without references."""
        value: ex.Value = compile_expression(expr, self._tick_ns).run(())
        return constant(value, kind if value is not None else None)

    # Conversion of values to numbers of the program.

    def word(self, x: Single) -> int:
        """Return the number of a value as 64-bit words."""
        if isinstance(x, Vector):
            return self.words.number_of(x.number) if x.kind is Kind.BOOL else x.number
        match x.value:
            case None:
                return self.words.give(Op.NONE)
            case str(text):
                bits = self.code(text)
            case float(number):
                bits = bits_of(number)
            case integer:
                bits = int(integer)
                if not LOWEST <= bits <= HIGHEST:
                    raise CannotLower(f"the integer {integer} is beyond 64 bits")
        return self.words.give(Op.CONST, immediates=(bits,))

    def truth(self, x: Single) -> int:
        """Return the number of a condition as truth values."""
        self._check_condition(x)
        return x.number if isinstance(x, Vector) else self.words.give(Op.TRUTH, self.word(x))

    def _check_condition(self, x: Single) -> None:
        if x.kind not in (Kind.BOOL, Kind.NULL):
            raise CannotLower(f"a {x.kind.value} is no condition")

    def give(self, kind: Kind, op: Op, *reads: Single, immediates: tuple[int, ...] = ()) -> Vector:
        """Add an operation on words and return its result as a vector of ``kind``."""
        return Vector(self.words.give(op, *[self.word(x) for x in reads], immediates=immediates), kind)

    def single(self, x: Operand) -> Single:
        """Convert a value to one column: a float column if its integers are one constant that is exact as a float."""
        if not isinstance(x, Mixed):
            return x
        if isinstance(x.ints, Constant) and isinstance(x.ints.value, int) and abs(x.ints.value) <= 2**53:
            floats = self.choose(x.floating, x.floats, constant(float(x.ints.value)))
            assert not isinstance(floats, Mixed)
            return floats
        raise CannotLower("its value is an integer in some rows and a float in others")

    # Conditions.

    def all_of(self, x: Single, y: Single) -> Single:
        """Return x AND y."""
        return self._join(Op.AND, x, y, decisive=False)

    def any_of(self, x: Single, y: Single) -> Single:
        """Return x OR y."""
        return self._join(Op.OR, x, y, decisive=True)

    def _join(self, op: Op, x: Single, y: Single, *, decisive: bool) -> Single:
        for operand, other in ((x, y), (y, x)):
            if isinstance(operand, Constant) and operand.value is not None:
                self._check_condition(operand)
                return constant(decisive) if operand.value is decisive else other
        return Vector(self.words.give(op, self.truth(x), self.truth(y)), Kind.BOOL)

    def negate(self, x: Single) -> Single:
        """Return NOT x."""
        if isinstance(x, Constant):
            self._check_condition(x)
            return NULL if x.value is None else constant(not x.value)
        return Vector(self.words.give(Op.NOT, self.truth(x)), Kind.BOOL)

    def missing(self, x: Operand) -> Single:
        """Return x IS NULL."""
        if isinstance(x, Constant):
            return constant(x.value is None)
        if isinstance(x, Mixed):
            return self.conditional(x.floating, self.missing(x.floats), self.missing(x.ints))
        return Vector(self.words.give(Op.UNKNOWN if x.kind is Kind.BOOL else Op.IS_NULL, x.number), Kind.BOOL)

    def conditional(self, condition: Single, x: Single, y: Single) -> Single:
        """Return the condition x where ``condition`` (never null) holds, else the condition y."""
        if isinstance(condition, Constant):
            return x if condition.value else y
        return self.any_of(self.all_of(condition, x), self.all_of(self.negate(condition), y))

    # Values of several kinds.

    def spread(self, function: Callable[..., Operand], *values: Operand) -> Operand:
        """Apply a function of single values to values that may be mixed."""
        for i, x in enumerate(values):
            if isinstance(x, Mixed):
                ints = self.spread(function, *values[:i], x.ints, *values[i + 1 :])
                floats = self.spread(function, *values[:i], x.floats, *values[i + 1 :])
                return self.choose(x.floating, floats, ints)
        return function(*values)

    def choose(self, condition: Single, x: Operand, y: Operand) -> Operand:
        """Return x where ``condition`` (never null) holds, else y."""
        if isinstance(condition, Constant):
            return x if condition.value else y
        if isinstance(x, Mixed) or isinstance(y, Mixed):
            return self._choose_parts(condition, x, y)
        kinds = [v.kind for v in (x, y) if v.kind is not Kind.NULL]
        if not kinds:
            return NULL
        if kinds[0] is Kind.BOOL:
            return self.conditional(condition, x, y)
        if Kind.FLOAT in kinds and set(kinds) & set(INTEGERS):
            return self._choose_parts(condition, x, y)
        chosen = self.words.give(Op.SELECT, self.truth(condition), self.word(x), self.word(y))
        return Vector(chosen, _one_kind(*kinds))

    def _choose_parts(self, condition: Single, x: Operand, y: Operand) -> Operand:
        def choose_part(a: Single | None, b: Single | None) -> Single:
            if a is None or b is None:
                single = a if b is None else b
                assert single is not None
                return single
            part = self.choose(condition, a, b)
            assert not isinstance(part, Mixed)
            return part

        (i, f, g), (j, h, k) = _parts(x), _parts(y)
        return Mixed(choose_part(i, j), choose_part(f, h), self.conditional(condition, g, k))

    def compare(self, op: str, x: Operand, y: Operand) -> Single:
        """Compare two values, exactly for all kinds of numbers."""
        result = self.spread(lambda a, b: self._compare(op, a, b), x, y)
        assert not isinstance(result, Mixed)
        return result

    def _compare(self, op: str, x: Single, y: Single) -> Single:
        if is_null(x) or is_null(y):
            return NULL
        if isinstance(x, Constant):
            if isinstance(y, Constant):
                return self.fold(ex.Binary(op, ex.Literal(x.value), ex.Literal(y.value)))
            return self._compare(EXCHANGED[op], y, x)
        if x.kind is Kind.STRING and y.kind is Kind.STRING:
            return self._compare_same_kind(op, "I" if op in ("=", "!=") else "S", x, y)
        if x.kind is Kind.BOOL and y.kind is Kind.BOOL:
            return self._compare_same_kind(op, "I", x, y)
        if x.kind not in NUMBERS or y.kind not in NUMBERS:
            raise CannotLower(f"a {x.kind.value} compared with a {y.kind.value}")
        if isinstance(y, Constant):
            return self._compare_constant(op, x, y)
        if x.kind is Kind.FLOAT:
            if y.kind is Kind.FLOAT:
                return self._compare_same_kind(op, "F", x, y)
            op, x, y = EXCHANGED[op], y, x
        return self._compare_same_kind(op, "M" if y.kind is Kind.FLOAT else "I", x, y)

    def _compare_same_kind(self, op: str, suffix: str, x: Single, y: Single) -> Vector:
        if op in (">", ">=") and suffix != "M":
            op, x, y = EXCHANGED[op], y, x
        return self.give(Kind.BOOL, Op[f"{_NAMES[op]}_{suffix}"], x, y)

    def _compare_constant(self, op: str, x: Vector, y: Constant) -> Single:
        """Compare a number with a constant, converted to an equivalent bound of the same kind as the number."""
        suffix, find = ("F", _float_bound) if x.kind is Kind.FLOAT else ("I", _whole_bound)
        op, bound = find(op, y.value)
        return self._compare_same_kind(op, suffix, x, constant(bound))

    # Numbers.

    def as_float(self, x: Single) -> Single:
        """Convert a number to a float, rounded like Python's ``float``; null if it is too large."""
        if x.kind in (Kind.FLOAT, Kind.NULL):
            return x
        if x.kind not in INTEGERS:
            raise CannotLower(f"a {x.kind.value} where a number is needed")
        if isinstance(x, Constant):
            assert isinstance(x.value, int)
            try:
                return constant(float(x.value))
            except OverflowError:
                return NULL
        return self.give(Kind.FLOAT, Op.FLOAT, x)

    def arithmetic(self, op: str, x: Operand, y: Operand) -> Operand:
        """Apply one of + - * / %."""
        return self.spread(lambda a, b: self._arithmetic(op, a, b), x, y)

    def _arithmetic(self, op: str, x: Single, y: Single) -> Single:
        if is_null(x) or is_null(y):
            return NULL
        if x.kind not in NUMBERS or y.kind not in NUMBERS:
            raise CannotLower(f"`{op}` of a {x.kind.value} and a {y.kind.value}")
        is_integer = x.kind in INTEGERS and y.kind in INTEGERS
        moment = is_integer and op in ("+", "-") and (x.kind is Kind.TIMESTAMP) != (y.kind is Kind.TIMESTAMP)
        if isinstance(x, Constant) and isinstance(y, Constant):
            return self.fold(
                ex.Binary(op, ex.Literal(x.value), ex.Literal(y.value)), Kind.TIMESTAMP if moment else None
            )
        if is_integer:
            kind = Kind.TIMESTAMP if moment else Kind.FLOAT if op == "/" else Kind.INT
            return self.give(kind, Op[f"{_ARITHMETIC[op]}_I"], x, y)
        x, y = self.as_float(x), self.as_float(y)
        if is_null(x) or is_null(y):
            return NULL
        return self.give(Kind.FLOAT, Op[f"{_ARITHMETIC[op]}_F"], x, y)

    def extreme(self, extreme: str, x: Operand, y: Operand) -> Operand:
        """Return the least (MIN) or greatest (MAX) of two values.

        It is the other one if one is null, and the first if they are equal."""
        if is_null(x) or is_null(y):
            return y if is_null(x) else x
        if isinstance(x, Mixed) or isinstance(y, Mixed) or (x.kind is Kind.FLOAT) != (y.kind is Kind.FLOAT):
            better = self.compare("<" if extreme == "MIN" else ">", y, x)
            take = self.any_of(self.missing(x), self.all_of(self.negate(self.missing(y)), better))
            return self.choose(take, y, x)
        suffix = {Kind.FLOAT: "F", Kind.STRING: "S"}.get(x.kind, "I")
        return self._same_kind(Op[f"{extreme}_{suffix}"], x, y)

    def coalesce(self, x: Operand, y: Operand) -> Operand:
        """Return x, or y where x is null."""
        if is_null(x) or is_null(y) or isinstance(x, Constant):
            return y if is_null(x) else x
        if isinstance(x, Mixed) or isinstance(y, Mixed) or (x.kind is Kind.FLOAT) != (y.kind is Kind.FLOAT):
            return self.choose(self.missing(x), y, x)
        return self._same_kind(Op.COALESCE, x, y)

    def _same_kind(self, op: Op, x: Single, y: Single) -> Single:
        kind = _one_kind(x.kind, y.kind)
        vector = self.give(kind, op, x, y)
        return Vector(self.words.give(Op.TRUTH, vector.number), kind) if kind is Kind.BOOL else vector


def _one_kind(*kinds: Kind) -> Kind:
    if len(set(kinds)) > 1 and not set(kinds) <= set(INTEGERS):
        raise CannotLower(f"a {kinds[0].value} and a {kinds[-1].value} as one value")
    return Kind.TIMESTAMP if Kind.TIMESTAMP in kinds else kinds[0]


def _parts(x: Operand) -> Parts:
    if isinstance(x, Mixed):
        return x.ints, x.floats, x.floating
    if x.kind is Kind.NULL:
        return x, x, FALSE
    return (None, x, TRUE) if x.kind is Kind.FLOAT else (x, None, FALSE)


def _whole_bound(op: str, value: ex.Value) -> tuple[str, int]:
    """Return (comparison, 64-bit integer) that holds for the same 64-bit integers as ``op value``."""
    assert isinstance(value, (int, float))
    always, never = ("<=", HIGHEST), ("<", LOWEST)
    if value != value:
        return always if op == "!=" else never
    below, above = (
        (math.floor(value), math.ceil(value))
        if abs(value) != math.inf
        else (_beyond_integers(value), _beyond_integers(value))
    )
    if op in ("=", "!="):
        if below == above and LOWEST <= below <= HIGHEST:
            return op, below
        return always if op == "!=" else never
    bound = above if op in ("<", ">=") else below
    if bound > HIGHEST:
        return always if op in ("<", "<=") else never
    if bound < LOWEST:
        return never if op in ("<", "<=") else always
    return op, bound


def _beyond_integers(value: float) -> int:
    return int(math.copysign(2**64, value))


def _float_bound(op: str, value: ex.Value) -> tuple[str, float]:
    """Return (comparison, float) that holds for the same floats, including NaN, as ``op value``."""
    assert isinstance(value, (int, float))
    try:
        near = float(value)
    except OverflowError:
        near = math.copysign(math.inf, value)
    if isinstance(value, float) or near == value:
        return op, near
    if op in ("=", "!="):
        return ("<", -math.inf) if op == "=" else ("!=", math.nan)
    below = near if near < value else math.nextafter(near, -math.inf)
    return ("<=", below) if op in ("<", "<=") else (">=", math.nextafter(below, math.inf))
