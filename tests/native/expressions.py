"""Expressions that use every operation of block programs, in all the kinds of their operands."""

from __future__ import annotations

__all__ = ["ARITHMETIC", "COMPARING", "EXPRESSIONS"]

ARITHMETIC = ("+", "-", "*", "/", "%")
COMPARING = ("=", "!=", "<", "<=", ">", ">=")
FUNCTIONS = ("abs", "sign", "floor", "ceil", "round")
REAL = ("sqrt", "exp", "ln", "log10")
DIGITS = ("2", "0", "-2", "-19", "-300", "301", "a.j", "a.j % 25")
CHOICES = ("least", "greatest", "coalesce")
PARTS = ("hour", "minute", "second", "day", "month", "year", "dayofweek")
PAIRS = [(x, y) for x in ("a.i", "a.f", "2", "2.5", "a.n") for y in ("a.j", "a.g", "-3", "0.5")]
ALIKE = (
    "a.i, a.j",
    "a.f, a.g",
    "a.s, a.t",
    "a.p, a.q",
    "a.u, a.v",
    "NULL, a.i, a.j, 3",
    "a.f, 0",
    "0, a.f",
    "a.n, a.f",
)
MIXED = ("a.i, a.f", "a.f, a.i, a.g, a.j", "3, a.f", "a.f, a.j, NULL")
CHOSEN = (
    ("a.s", "'x'"),
    ("'y'", "a.t"),
    ("a.p", "a.q"),
    ("a.u", "a.v"),
    ("NULL", "a.i"),
    ("a.s", "NULL"),
    ("a.p", "NULL"),
)
WHENS = ("a.i > a.j", "a.p", "a.p AND a.n", "a.f IS NULL")

EXPRESSIONS = [
    *(f"{x} {op} {y}" for op in (*ARITHMETIC, *COMPARING) for x, y in PAIRS),
    *(f"a.i {op} {y}" for op in COMPARING for y in ("9007199254740993.0", "1e19", "-1e19", "0.0", "-0.5", "7.0")),
    *(f"a.i {c} {op} {y}" for c in ("+ 1", "- 1", "+ 9223372036854775807") for op in COMPARING for y in ("3", "a.j")),
    *(f"{y} {op} {c}" for c in ("1 + a.i", "a.i - 2") for op in COMPARING for y in ("-9223372036854775807", "0")),
    *(f"a.f {op} {y}" for op in COMPARING for y in ("9007199254740993", "-9223372036854775808", "0", "7")),
    *(f"a.i {op} 9223372036854775808" for op in COMPARING),
    *(f"a.s {op} {y}" for op in COMPARING for y in ("a.t", "'b'", "'nowhere'")),
    *(f"a.p {op} {y}" for op in COMPARING for y in ("a.q", "TRUE", "(a.i < a.j)")),
    *(f"a.u {op} {y}" for op in COMPARING for y in ("a.v", "TIMESTAMP '2024-02-29 12:00'")),
    *(f"{name}({x})" for name in FUNCTIONS for x in ("a.i", "a.f", "a.i + a.f")),
    *(f"{name}({x})" for name in REAL for x in ("a.i", "a.f", "abs(a.f)", "a.f / 1e3")),
    *(f"round({x}, {digits})" for x in ("a.i", "a.f", "a.f * 0.37", "2.5") for digits in DIGITS),
    *(f"power({x}, {y})" for x in ("a.i", "a.f", "2") for y in ("a.j", "a.g", "0.5", "-1")),
    *(f"{name}({args})" for name in CHOICES for args in ALIKE),
    *(f"{name}({x}) {rest}" for name in CHOICES for rest in ("> 3", "+ a.g", "* a.i > 1e9", "IS NULL") for x in MIXED),
    *(f"CASE WHEN {when} THEN {x} ELSE {y} END" for when in WHENS for x, y in CHOSEN),
    *(
        f"CASE WHEN {when} THEN {x} ELSE {y} END {rest}"
        for when in WHENS
        for x, y in PAIRS
        for rest in ("> 3", "+ a.g")
    ),
    *("CASE WHEN a.p THEN a.i WHEN a.q THEN a.f END > 3", "CASE a.i WHEN a.j THEN a.f WHEN 3 THEN a.i ELSE 7 END < 9"),
    *(
        "CASE WHEN a.n THEN 1 END IS NULL",
        "CASE WHEN TRUE THEN a.i ELSE a.f END",
        "CASE WHEN a.p THEN a.i ELSE a.j END",
        "CASE WHEN a.n THEN NULL END",
    ),
    *(
        f"CAST({x} AS {kind}) IS NULL"
        for x in ("'7'", "' -2.5 '", "7", "NULL")
        for kind in ("integer", "float", "text")
    ),
    *("sqrt(greatest(a.i, a.f))", "-least(a.i, a.f) < 3", "greatest(a.i, a.f) IN (1, 2.5, NULL)"),
    *("coalesce(least(a.i, a.f), greatest(a.j, a.g)) % 7 = 1", "round(greatest(a.f, a.i), -2) > 100"),
    *("coalesce(a.n, NULL)", "coalesce(a.i, 9) + 1", "least(a.f, 9007199254740993) > 9007199254740992"),
    *("(a.i % 1000003) % 500 = 0", "(a.i % 1000003) % 4294967295", "(a.i % 2147483648) % 2", "a.i % 4294967296"),
    *("-a.i", "-a.f", "-a.n", "(a.i > 0 OR a.n) AND a.p", "NOT (a.n OR a.p)"),
    *(
        "a.p AND a.q",
        "a.p OR a.q",
        "NOT a.p",
        "NOT (a.p AND a.i > 3) OR a.q AND a.f < 1",
        "a.p OR a.n",
    ),
    *("a.p AND TRUE", "a.n AND a.p", "a.i IN (1, 2, 1000)", "a.i NOT IN (1, 2, NULL)", "a.i IN (1, 2.0, 2.5, 1e300)"),
    "a.i IN (0, 1, 2, 3, 4, 5, 1000, 1001, 999, 9007199254740992, 9007199254740993)",
    "a.f IN (0, 1, 1.5, 2.5, 0.1, 99.5, 3, 12345.678, 9007199254740992, 9007199254740993, -1)",
    *("a.i IN (a.j, 3, a.f)", "a.f IN (0, 0.5)", "a.f NOT IN (1, a.g, 2)", "a.s IN ('a', 'é', 'zz')"),
    *("a.s NOT IN ('a', a.t, NULL)", "a.p IN (TRUE, a.q)", "3 IN (a.i, a.f)", "a.n IN (a.i, 3)", "a.i IN (a.n, 5)"),
    *("a.i IN (1e300, 0.5)", "a.i BETWEEN a.j AND 1000", "a.f NOT BETWEEN 0 AND a.g", "a.s BETWEEN 'a' AND a.t"),
    *(f"{x} IS NULL" for x in ("a.i", "a.n", "a.p", "(a.p AND a.q)", "a.f / a.g", "a.i + a.j", "3")),
    *(f"{x} IS NOT NULL" for x in ("a.i", "a.n", "a.p", "(a.p OR a.q)", "a.f % a.g", "a.i * a.j")),
    *(f"{name}({x})" for name in PARTS for x in ("a.u", "a.i", "a.u + 1 hour")),
    *(
        "a.u - a.v",
        "a.u - a.v < 1 hour",
        "a.u + 90 minutes > a.v",
        "a.u - 1 ns < a.v",
        "a.u BETWEEN a.v AND a.v + 1 day",
    ),
    *("a.i", "a.f", "a.s", "a.p", "a.u", "a.n", "TRUE", "NULL", "1", "1.5", "'x'", "length('abc') + a.i"),
    *("lower('ABC') = a.s", "'abc' LIKE 'a%' AND a.p", "a.i > 3", "a.i > a.j AND a.f < a.g", "a.i BETWEEN a.n AND 5"),
    *("a.i > 3 AND a.s = 'a' AND a.p AND a.i <= a.f", "a.s = a.t AND a.u < a.v AND a.i = a.j"),
]
