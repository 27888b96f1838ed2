"""Typed columns for block programs: values that Python has, and the same as the native core sees them."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import acep
from acep.pattern.evaluation import Compiled, compile_expression
from acep.pattern.expressions import Attribute, Expr
from acep.pattern.walk import leaves_of
from acep.plan.lower.bytecode import BlockProgram, lower_expression
from acep.plan.schema import Kind

TICK_NS = Fraction(1000)

KINDS = {
    "i": Kind.INT,
    "j": Kind.INT,
    "k": Kind.INT,
    "f": Kind.FLOAT,
    "g": Kind.FLOAT,
    "s": Kind.STRING,
    "t": Kind.STRING,
    "p": Kind.BOOL,
    "q": Kind.BOOL,
    "u": Kind.TIMESTAMP,
    "v": Kind.TIMESTAMP,
    "n": Kind.NULL,
}
LEAVES = tuple(Attribute("a", None, name) for name in KINDS)

_AROUND = [-(2**63), -(2**62), -(2**53), -(2**31), -1000, 0, 1000, 2**31, 2**53, 2**62, 2**63 - 1]
INTS = sorted({n + d for n in _AROUND for d in (-5, -2, -1, 0, 1, 2, 5) if -(2**63) <= n + d < 2**63})
FLOATS = [
    *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 0.1, 2.675, -2.675, 1.0, -1.0, 2.0, 3.0, 1e-9, 12345.678, 99.5, -99.95),
    *(2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**62, 2.0**63, -(2.0**63), math.nextafter(2.0**63, 0), 2.0**64),
    *(5e-324, -5e-324, 2.2e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e27, 1e28, 9.99e15, 700.0, 710.0),
    *(math.inf, -math.inf, math.nan),
]
TEXTS = ["", "a", "b", "ab", "B", "é", "z", "\uffff", "\U0001f600", "a\x00b"]
MOMENTS = [
    *(0, -1, 1, 86_399_999_999, 86_400_000_000, 951_782_400_000_000, 1_709_164_800_000_000, 4_102_444_800_000_000),
    *(-62_135_596_800_000_000, -62_135_596_800_000_001, 253_402_300_799_999_999, 253_402_300_800_000_000),
    *(2**63 - 1, -(2**63), 1_700_000_000_123_456, -2_208_988_800_000_000),
]
POOLS: dict[Kind, Sequence[Any]] = {
    Kind.INT: INTS,
    Kind.FLOAT: FLOATS,
    Kind.STRING: TEXTS,
    Kind.BOOL: [False, True],
    Kind.TIMESTAMP: MOMENTS,
    Kind.NULL: [None],
}


def expression(text: str) -> Expr:
    """An expression over the columns ``a.i``, ``a.f``, ..."""
    ((_, expr),) = acep.parse(f"PATTERN SEQ(ANY a) WITHIN 9 RETURN {text} AS z").returns
    return expr


def random_value(kind: Kind, rng: random.Random) -> Any:
    """A value of a kind, extreme or ordinary, never null."""
    if kind is Kind.INT and rng.random() < 0.4:
        return rng.choice([rng.randint(-20, 20), rng.getrandbits(64) - 2**63])
    if kind is Kind.FLOAT and rng.random() < 0.4:
        bits = rng.getrandbits(64)
        return rng.choice(
            [rng.uniform(-100, 100), round(rng.uniform(-9, 9), 3), struct.unpack("<d", struct.pack("<Q", bits))[0]]
        )
    return rng.choice(POOLS[kind])


def random_columns(rows: int, rng: random.Random, nulls: float = 0.15) -> dict[str, list[Any]]:
    """For each column ``rows`` values; some columns have no nulls."""
    columns = {}
    for name, kind in KINDS.items():
        share = rng.choice([0.0, nulls])
        columns[name] = [None if rng.random() < share else random_value(kind, rng) for _ in range(rows)]
    return columns


class Loaded:
    """Columns in the native core: ``single`` names those that come as one value for all rows."""

    def __init__(self, native: Any, columns: dict[str, list[Any]], single: frozenset[str], rng: random.Random) -> None:
        self.native = native
        self.texts = native.Texts()
        self.rows = len(next(iter(columns.values())))
        self.columns = {n: [c[0]] * self.rows if n in single else c for n, c in columns.items()}
        self.inputs = []
        for name, kind in KINDS.items():
            values = self.columns[name][:1] if name in single else self.columns[name]
            nulls = any(v is None for v in values) or rng.random() < 0.3
            words = [self.word(v, kind, rng) for v in values]
            valid = [0 if v is None else rng.choice([1, 255]) for v in values]
            given = np.array(valid, np.uint8) if nulls else None
            self.inputs.append((np.array(words, np.int64), given))

    def word(self, value: Any, kind: Kind, rng: random.Random) -> int:
        """A value as a word; where there is none, anything."""
        if value is None:
            return rng.choice([0, 1, 2**63 - 1, -(2**63), rng.getrandbits(64) - 2**63])
        if kind is Kind.STRING:
            return int(self.texts.intern(value))
        if kind is Kind.FLOAT:
            return int(np.float64(value).view(np.int64))
        return int(value)

    def lower(self, expr: Expr) -> BlockProgram:
        return lower_expression(expr, LEAVES, tuple(KINDS.values()), TICK_NS, self.texts.intern)

    def build(self, program: BlockProgram) -> Any:
        return self.native.BlockProgram(np.array(program.code, np.int64), program.slots, program.leaves)

    def expected(self, expr: Expr) -> list[Any]:
        compiled: Compiled = compile_expression(expr, TICK_NS)
        picked = [self.columns[leaf.name] for leaf in leaves_of(expr) if isinstance(leaf, Attribute)]
        return [compiled.run([column[row] for column in picked]) for row in range(self.rows)]

    def values(self, program: BlockProgram, block: int) -> list[Any]:
        words, valid = self.build(program).value(self.rows, self.inputs, self.texts, block)
        return [self.python(int(w), program.result) if ok else None for w, ok in zip(words, valid, strict=True)]

    def python(self, word: int, kind: Kind) -> Any:
        match kind:
            case Kind.BOOL:
                return bool(word)
            case Kind.FLOAT:
                return float(np.int64(word).view(np.float64))
            case Kind.STRING:
                return self.texts.text(word)
            case _:
                return word

    def passed(self, program: BlockProgram, block: int) -> list[bool]:
        return [bool(x) for x in self.build(program).test(self.rows, self.inputs, self.texts, block)]


def same(got: Any, wanted: Any, kind: Kind) -> bool:
    """Whether a program's value is Python's: of one type (an integer may come as a float), and floats to the bit."""
    if wanted is None or got is None:
        return got is wanted
    if kind is Kind.FLOAT:
        if isinstance(wanted, int):
            return bool(got == wanted)
        return struct.pack("<d", got) == struct.pack("<d", wanted) or (got != got and wanted != wanted)
    return type(got) is type(wanted) and got == wanted
