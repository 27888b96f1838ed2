"""Compile expressions to block programs: flat words that the native core runs over columns, up to 256 rows at a time.

Results equal those of :mod:`acep.pattern.evaluation`, value for value. An expression that a program cannot express
(text functions, LIKE) raises :class:`CannotLower`; it is computed in Python and passed as a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Final

from acep.functions.lookup import find_scalar, is_time_part
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE, EXACT, in_ticks
from acep.pattern.scalars.casts import CASTS, TIMESTAMP_TEXT
from acep.plan.decimals import EXCHANGED
from acep.plan.lower.bytecode_values import INTEGERS, Constant, Mixed, Operand, Single, Values, Vector, constant
from acep.plan.lower.bytecode_words import READS, CannotLower, Op, bits_of
from acep.plan.schema import Kind

if TYPE_CHECKING:
    from acep.functions.scalar_function import ScalarFunction

__all__ = ["BlockProgram", "CannotLower", "lower_expression", "program_lines"]

_OF_PLACES: Final = (Op.ORDER_I, Op.ORDER_M, Op.QUOTIENT, Op.FLOOR_I, Op.CEIL_I)
_MOST_TICK: Final = 2**62


@dataclass(frozen=True)
class BlockProgram:
    """An expression compiled to words.

    ``code`` holds 64-bit words: an operation, its result slot, its operand slots, and its own arguments; floats are
    stored as their bits. ``slots`` is the number of vectors needed, ``leaves`` the number of inputs, ``result`` the
    kind of the result (``Kind.NULL``: null in all rows). Texts are codes; truth values are 0 or 1.
    """

    code: tuple[int, ...]
    slots: int
    leaves: int
    result: Kind


def lower_expression(
    expr: ex.Expr,
    leaves: Sequence[ex.Leaf],
    kinds: Sequence[Kind],
    tick_ns: Fraction | None,
    code_of_text: Callable[[str], int],
) -> BlockProgram:
    """Compile an expression over inputs ``leaves`` of ``kinds``. Inputs that it does not refer to are allowed.

    Texts in the expression get their codes from ``code_of_text``. Durations and timestamps become ticks of ``tick_ns``
    nanoseconds. Raise :class:`CannotLower` if there is no such program, and :class:`~acep.errors.QueryError` for a
    time if ``tick_ns`` is unknown.

    >>> price, last = ex.Attribute("a", None, "price"), ex.Attribute("b", None, "price")
    >>> rise = ex.Binary(">", price, ex.Binary("*", last, ex.Literal(1.5)))
    >>> program = lower_expression(rise, [price, last], [Kind.FLOAT, Kind.FLOAT], None, {}.__getitem__)
    >>> for line in program_lines(program):
    ...     print(line)
    s0 = LEAF 1
    s1 = CONST 4609434218613702656
    s2 = MUL_F s0 s1
    s0 = LEAF 0
    s1 = LT_F s2 s0
    RETURN s1
    >>> program.code[-5:], program.slots, program.leaves, program.result
    ((1, 2, 0, 0, 1), 3, 2, <Kind.BOOL: 'bool'>)
    """
    values = Values(code_of_text, tick_ns)
    # Without spans, references at several places of a query are one input.
    index = {replace(leaf, span=None): i for i, leaf in enumerate(leaves)}
    lowering = _ExpressionLowering(index, tuple(kinds), tick_ns, values)
    result = values.single(lowering.lower(expr))
    number = values.truth(result) if result.kind is Kind.BOOL else values.word(result)
    code, slots = values.words.program(number)
    return BlockProgram(code, slots, len(leaves), result.kind)


def program_lines(program: BlockProgram) -> tuple[str, ...]:
    """Return a readable listing of a program, one operation a line."""
    lines: list[str] = []
    code, position = program.code, 0
    while True:
        op = Op(code[position])
        if op is Op.RETURN:
            return (*lines, f"RETURN s{code[position + 1]}")
        first = position + 2 + READS[op]
        n_immediates = {Op.LEAF: 1, Op.CONST: 1, Op.PART: 3, **dict.fromkeys(_OF_PLACES, 1)}.get(op, 0)
        if op in (Op.IN_I, Op.IN_F):
            n_immediates = 1 + code[first]
        words = [f"s{slot}" for slot in code[position + 2 : first]] + [
            str(word) for word in code[first : first + n_immediates]
        ]
        lines.append(" ".join([f"s{code[position + 1]} =", op.name, *words]))
        position = first + n_immediates


@dataclass(frozen=True)
class _ExpressionLowering:
    index: dict[ex.Leaf, int]
    kinds: tuple[Kind, ...]
    tick_ns: Fraction | None
    values: Values

    def lower(self, expr: ex.Expr) -> Operand:
        values = self.values
        match expr:
            case ex.Attribute() | ex.Length() | ex.Aggregate():
                return self._leaf(self.index[replace(expr, span=None)])
            case ex.Literal(value=value):
                return constant(value)
            case ex.Duration(ns=ns):
                return constant(in_ticks(ns, self.tick_ns, expr))
            case ex.Timestamp(ns=ns):
                ticks = in_ticks(ns, self.tick_ns, expr)
                return constant(ticks, Kind.TIMESTAMP if isinstance(ticks, int) else None)
            case ex.Unary(op="-", operand=x):
                return values.spread(self._minus, self.lower(x))
            case ex.Unary(operand=x):
                return values.negate(self._condition(x))
            case ex.Binary(op="and", left=left, right=right):
                return values.all_of(self._condition(left), self._condition(right))
            case ex.Binary(op="or", left=left, right=right):
                return values.any_of(self._condition(left), self._condition(right))
            case ex.Binary(op=op, left=left, right=right) if op in EXCHANGED:
                return values.compare(op, self.lower(left), self.lower(right))
            case ex.Binary(op=op, left=left, right=right):
                return values.arithmetic(op, self.lower(left), self.lower(right))
            case ex.Call():
                return self._call(expr)
            case ex.In(operand=x, values=parts, negated=negated):
                is_in = self._lower_in(self.lower(x), [self.lower(part) for part in parts])
                return values.negate(is_in) if negated else is_in
            case ex.Between(operand=x, low=low, high=high, negated=negated):
                inner = self.lower(x)
                above = values.compare(">=", inner, self.lower(low))
                inside = values.all_of(above, values.compare("<=", inner, self.lower(high)))
                return values.negate(inside) if negated else inside
            case ex.IsNull(operand=x, negated=negated):
                missing = values.missing(self.lower(x))
                return values.negate(missing) if negated else missing
            case ex.Like(operand=x, pattern=pattern, negated=negated):
                text = self.lower(x)
                if isinstance(text, Constant):
                    return values.fold(ex.Like(ex.Literal(text.value), pattern, negated))
                raise CannotLower("LIKE looks into a text")

    def _leaf(self, number: int) -> Single:
        kind = self.kinds[number]
        if kind is Kind.NULL:
            return constant(None)
        column = self.values.words.give(Op.LEAF, immediates=(number,))
        if kind is Kind.BOOL:
            column = self.values.words.give(Op.TRUTH, column)
        return Vector(column, kind)

    def _condition(self, expr: ex.Expr) -> Single:
        x = self.lower(expr)
        if isinstance(x, Mixed) or x.kind not in (Kind.BOOL, Kind.NULL):
            raise CannotLower("a number or a text where a condition is needed")
        return x

    def _minus(self, x: Single) -> Single:
        if isinstance(x, Constant):
            return self.values.fold(ex.Unary("-", ex.Literal(x.value)))
        self._number(x, "a minus sign")
        return self.values.give(*((Kind.FLOAT, Op.NEG_F) if x.kind is Kind.FLOAT else (Kind.INT, Op.NEG_I)), x)

    def _number(self, x: Single, what: str) -> None:
        if x.kind not in (*INTEGERS, Kind.FLOAT):
            raise CannotLower(f"{what} of a {x.kind.value}")

    def _case(self, call: ex.Call) -> Operand:
        values = self.values
        result = self.lower(call.args[-1])
        for when, then in zip(call.args[-3::-2], call.args[-2::-2], strict=True):
            condition = self._condition(when)
            holds = values.all_of(values.negate(values.missing(condition)), condition)
            result = values.choose(holds, self.lower(then), result)
        return result

    def _call(self, call: ex.Call) -> Operand:
        if call.name == CASE:
            return self._case(call)
        if call.name in EXACT and call.name not in CASTS:
            return self._exact(call)
        args = [self.lower(arg) for arg in call.args]
        if call.name == TIMESTAMP_TEXT or is_time_part(call.name):
            in_ticks(0, self.tick_ns, ex.Timestamp(0, call.span))
        entry = find_scalar(call.name)
        match entry.operations.get("pair") if entry is not None else None:
            case "COALESCE":
                return reduce(self.values.coalesce, args)
            case "MIN" | "MAX" as extreme:
                return reduce(lambda x, y: self.values.extreme(extreme, x, y), args)
        return self.values.spread(lambda *singles: self._strict(call.name, singles), *args)

    def _exact(self, call: ex.Call) -> Operand:
        """Lower an exact function of decimals, whose last arguments are numbers of decimal places."""
        reads = 2 if call.name in ("decimal order", "decimal quotient") else 1
        args = [self.lower(arg) for arg in call.args[:reads]]
        places = [arg.value for arg in call.args[reads:] if isinstance(arg, ex.Literal) and isinstance(arg.value, int)]

        def lower_single(*args: Single) -> Single:
            if any(isinstance(x, Constant) and x.value is None for x in args):
                return constant(None)
            if args[0].kind not in INTEGERS or args[-1].kind not in (*INTEGERS, Kind.FLOAT):
                raise CannotLower(f"{call.name} of a {args[0].kind.value} and a {args[-1].kind.value}")
            if call.name == "decimal order" and args[1].kind is Kind.FLOAT:
                if places[1]:
                    raise CannotLower("a float with decimal places")
                return self.values.give(Kind.INT, Op.ORDER_M, *args, immediates=(places[0],))
            if call.name == "decimal order":
                return self.values.give(Kind.INT, Op.ORDER_I, *args, immediates=(places[1] - places[0],))
            if call.name == "decimal quotient":
                return self.values.give(Kind.FLOAT, Op.QUOTIENT, *args, immediates=(places[0],))
            op = Op[f"{call.name.removeprefix('decimal ').upper()}_I"]
            return self.values.give(Kind.INT, op, *args, immediates=(places[0],))

        return self.values.spread(lower_single, *args)

    def _strict(self, name: str, args: tuple[Single, ...]) -> Single:
        """Lower a function that is null where any argument is null."""
        if any(isinstance(x, Constant) and x.value is None for x in args):
            return constant(None)
        literals = tuple(ex.Literal(x.value) for x in args if isinstance(x, Constant))
        entry = find_scalar(name)
        if name == "round" and any(x.kind is not Kind.INT for x in args[1:]):
            raise CannotLower("round to a number of digits that is no integer")
        if len(literals) == len(args):
            return self.values.fold(ex.Call(name, literals))
        if entry is None or not entry.operations:
            assert entry is not None or name in CASTS
            raise CannotLower(f"{name} looks into texts" if _is_of_texts(entry) else f"{name} has no operation")
        for x in args:
            self._number(x, name)
        return self._number_call(entry, args)

    def _number_call(self, entry: ScalarFunction, args: tuple[Single, ...]) -> Single:
        """Lower a function of numbers or times by its operation for integers, or else for floats."""
        is_integer = args[0].kind in INTEGERS and "integer" in entry.operations
        if entry.part is not None:
            return self._part(entry.part, entry.name, args[0])
        if "integer" not in entry.operations:
            args = tuple(self.values.as_float(x) for x in args)
            if any(x.kind is Kind.NULL for x in args):
                return constant(None)
        operation = entry.operations["integer" if is_integer else "float"]
        if entry.filling is not None and len(args) < len(entry.takes):
            if is_integer:
                return args[0]
            args = (*args, constant(entry.filling))
        if not operation:
            return args[0]
        is_whole = entry.gives == "integer" or (entry.gives == "argument" and is_integer)
        return self.values.give(Kind.INT if is_whole else Kind.FLOAT, Op[operation], *args)

    def _part(self, number: int, name: str, moment: Single) -> Single:
        if moment.kind not in INTEGERS:
            raise CannotLower(f"{name} of a {moment.kind.value}")
        assert self.tick_ns is not None
        us = Fraction(self.tick_ns) / 1000
        if max(us.numerator, us.denominator) >= _MOST_TICK:
            raise CannotLower("a tick of a length beyond 64 bits")
        immediates = (number, us.numerator, us.denominator)
        return self.values.give(Kind.INT, Op.PART, moment, immediates=immediates)

    def _lower_in(self, x: Operand, parts: list[Operand]) -> Single:
        """Lower ``x IN (parts)``. Constant parts are tested by one operation."""
        values = self.values
        if isinstance(x, Constant) and x.value is None:
            return x
        is_in: Single = constant(False)
        if isinstance(x, Vector) and x.kind is not Kind.BOOL:
            constants = [p for p in parts if isinstance(p, Constant) and p.value is not None]
            if len(constants) > 1:
                is_in = self._lower_in_constants(x, constants)
                parts = [p for p in parts if not isinstance(p, Constant) or p.value is None]
        for part in parts:
            is_in = values.any_of(is_in, values.compare("=", x, part))
        return is_in

    def _lower_in_constants(self, x: Vector, constants: list[Constant]) -> Single:
        # A number that is no value of x's kind equals no row, so it is left out. Nulls in x still give null.
        if x.kind is Kind.STRING:
            words = [bits for c in constants if isinstance(text := c.value, str) for bits in [self.values.code(text)]]
        elif x.kind is Kind.FLOAT:
            words = [bits_of(float(n)) for c in constants if isinstance(n := c.value, (int, float)) and _float_has(n)]
        else:
            words = [int(n) for c in constants if isinstance(n := c.value, (int, float)) and _integer_has(n)]
        members = tuple(sorted(set(words)))
        return self.values.give(
            Kind.BOOL, Op.IN_F if x.kind is Kind.FLOAT else Op.IN_I, x, immediates=(len(members), *members)
        )


def _is_of_texts(entry: ScalarFunction | None) -> bool:
    return entry is None or entry.takes[0] == "text"


def _integer_has(number: float) -> bool:
    return -(2**63) <= number < 2**63 and number == int(number)


def _float_has(number: float) -> bool:
    try:
        return float(number) == number
    except OverflowError:
        return False
