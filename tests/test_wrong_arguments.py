"""Random calls of the public functions with wrong arguments: a result or an error of acep, and nothing else.

A call takes good arguments, some of which are replaced by values of every kind. Only Python itself may raise a
``TypeError``, for arguments whose number or names do not fit.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import math
import random
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import acep
from acep.explain.stages import explain
from acep.native.compiled import why_not
from acep.spark.failures import error_in

SECONDS = 20  # that one call may take
TEXT = "PATTERN SEQ(a x, b+ y[], c z) WHERE [k] AND z.v > x.v WITHIN 9"
QUERY = acep.parse(TEXT)
COLUMNS: dict[str, Any] = {"ts": range(12), "type": list("abcabbcabcab"), "k": [1, 2] * 6, "v": [0.5, None] * 6}
EVENTS = {name: list(values) for name, values in COLUMNS.items()}


class Rude:
    """An object whose own methods fail."""

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    __hash__ = None  # type: ignore[assignment]


def looped() -> list[Any]:
    """A list that holds itself."""
    inner: list[Any] = []
    inner.append(inner)
    return inner


# Each is made anew, as a call may change or use up what it is given.
VALUES: tuple[Callable[[], Any], ...] = (
    *(
        (lambda one=one: one)
        for one in (
            *(None, True, False, 0, 1, -1, 3, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 1e-320),
            *(
                math.nan,
                math.inf,
                -math.inf,
                1j,
                "",
                " ",
                "a",
                "ts",
                "type",
                "k",
                "v",
                "nothing",
                "\0",
                "\ud800",
                "ä" * 3,
            ),
            *("x" * 100_001, "(" * 5_000, "1e999999999", "64 MB", "history", "random", "matches", "count", "native"),
            *("reference", "s", "ns", "1 hour", "9999999 weeks", TEXT, "re:ab", "PATTERN", "PATTERN a x WITHIN -1"),
            *(b"", b"ACEP", b"\x00" * 64, bytes(range(256)), (), ("a",), frozenset({"a"}), object(), object, len, ...),
            *(decimal.Decimal("NaN"), decimal.Decimal("0.1"), decimal.Decimal("1e400"), fractions.Fraction(1, 3)),
            *(dt.datetime(2024, 1, 1), dt.date.max, dt.timedelta.max, dt.timedelta(-1)),
            *(
                np.int64(3),
                np.float32("nan"),
                np.str_("ts"),
                np.datetime64("NaT"),
                np.array(1),
                np.array(["a", None], object),
            ),
            *(
                QUERY,
                acep.Budget(work=2),
                acep.regex,
                acep,
                NotImplemented,
                Path("nowhere"),
                Path("nowhere.csv"),
                range(3),
            ),
            *(
                pa.array([1]),
                pa.schema({"ts": pa.int64()}),
                pa.scalar(None),
                pd.NA,
                pd.NaT,
                pd.Series([1]),
                ValueError("x"),
            ),
        )
    ),
    list,
    dict,
    set,
    Rude,
    looped,
    lambda: [None],
    lambda: ["a", 1],
    lambda: [1, [2, [3]]],
    lambda: {"a": 1},
    lambda: {"x": None, "y": math.inf},
    lambda: {1: 2, None: 3},
    lambda: {"x": QUERY, "y": TEXT},
    lambda: [QUERY, QUERY],
    lambda: iter([1, 2]),
    lambda: (one for one in "ab"),
    lambda: bytearray(b"xyz"),
    lambda: memoryview(b"xyz"),
    lambda: {**EVENTS},
    lambda: {**EVENTS, "ts": [None] * 12},
    lambda: {**EVENTS, "ts": ["x"] * 12},
    lambda: {**EVENTS, "ts": [math.nan] * 12},
    lambda: {**EVENTS, "ts": [10**30] * 12},
    lambda: {**EVENTS, "type": [1] * 12},
    lambda: {**EVENTS, "type": [b"a"] * 12},
    lambda: {**EVENTS, "k": [object()] * 12},
    lambda: {**EVENTS, "k": [[1]] * 12},
    lambda: {**EVENTS, "v": ["\ud800"] * 12},
    lambda: {**EVENTS, "v": [2**64] * 12},
    lambda: {**EVENTS, "v": [1, "x"] * 6},
    lambda: {"ts": [2, 1], "type": ["a", "b"]},
    lambda: {"ts": [1], "type": ["a", "b"]},
    lambda: {"ts": [], "type": []},
    lambda: [{"ts": 1, "type": "a"}, {"ts": 2}, 3],
    lambda: [{"ts": 1, "type": "a"}, {}],
    lambda: np.zeros((2, 2)),
    lambda: np.zeros(3, dtype=[("ts", "i8"), ("type", "U3")]),
    lambda: pd.DataFrame(EVENTS),
    lambda: pd.DataFrame([[1, 2, 3]], columns=["ts", "ts", "type"]),
    lambda: pd.DataFrame({("a", 1): [1], ("b", 2): [2]}),
    lambda: pa.table(EVENTS),
    lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["ts", "ts"]),
    lambda: pa.table({"ts": pa.array([1, 2], pa.decimal128(38, 2)), "type": pa.array(["a", "b"])}),
    lambda: pa.table({"ts": pa.array([1], pa.time64("us")), "type": pa.array([None], pa.null())}),
)


def pushed(*batches: Any, **options: Any) -> None:
    """A Matcher, its pushes and its end."""
    query = options.pop("query", QUERY)
    matcher = acep.Matcher(query, **options)
    for batch in batches:
        matcher.push(batch)
    matcher.snapshot()
    matcher.finish()


UNHASHABLE: tuple[Callable[[], Any], ...] = (
    lambda: np.array(1),
    lambda: np.array("ts"),
    lambda: np.array([1, 2]),
    lambda: np.ones((1, 2)).view(np.matrix),
    lambda: pd.Series([1, 2]),
    lambda: pd.DataFrame({"a": [1, 2]}),
    lambda: ["ts"],
    lambda: [[1], [2]],
    lambda: [np.array([1, 2])],
    lambda: {"a": np.array([1, 2])},
    lambda: {1},
    lambda: bytearray(b"ts"),
    Rude,
)
"""Values that have no hash, or are neither equal to another value nor different."""

REFUSED = {
    acep.match: (EVENTS, ("ts", "type", "seq", "id", "unit", "duplicates", "engine", "policy", "budget")),
    acep.Matcher: (
        None,
        (
            *("ts", "type", "seq", "id", "unit", "op", "duplicates", "engine", "policy", "budget", "lateness"),
            *("speculation", "seq_gaps", "dynamic"),
        ),
    ),
    acep.learn: (EVENTS, ("ts", "type", "seq", "id", "unit", "duplicates", "policy", "seed", "budget")),
    acep.tune: (EVENTS, ("ts", "type", "seq", "id", "unit", "duplicates", "policy", "seed", "engine", "of", "effort")),
    acep.why: (EVENTS, ("ts", "type", "seq", "id", "unit")),
}
"""The functions that take options of one value, with their first argument, and these options."""


@pytest.mark.parametrize(
    ("call", "option"),
    [(call, option) for call, (_, options) in REFUSED.items() for option in options],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_an_array_or_a_list_in_place_of_one_value_is_refused_by_the_name_of_the_option(
    call: Callable[..., Any], option: str
) -> None:
    events = REFUSED[call][0]
    args = (QUERY,) if events is None else (events, QUERY)
    for make in UNHASHABLE:
        with pytest.raises(acep.AcepError) as raised:
            call(*args, **{option: make()})
        assert option in raised.value.render().splitlines()[0], shown(make())
        assert len(raised.value.render().splitlines()) <= 2


def test_an_array_of_no_dimension_names_one_row() -> None:
    assert repr(acep.why(EVENTS, QUERY, rows=np.array(1))) == repr(acep.why(EVENTS, QUERY, rows=1))


def restored(data: Any) -> None:
    acep.Matcher(QUERY).restore(data)


COMMON = ("ts", "type", "seq", "id", "unit", "policy", "seed", "history", "budget")
# What is called, with good arguments, and the names of others that it takes.
CALLS: tuple[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]], ...] = (
    (acep.match, (EVENTS, QUERY), (*COMMON, "output", "counts", "engine", "limit")),
    (acep.match, (EVENTS, QUERY), (*COMMON, "output", "counts", "engine", "limit")),
    (pushed, (EVENTS, {"ts": [20], "type": ["a"], "k": [1], "v": [1.0]}), ("query", "engine", *COMMON)),
    (restored, (b"",), ()),
    (acep.learn, (EVENTS, QUERY), COMMON),
    (acep.parse, (TEXT,), ("errors", "weights", "parameters")),
    (acep.regex, ("ab",), ("within", "errors", "by", "strategy", "weights", "output")),
    (acep.Budget, (), ("errors", "weights", "cpu", "memory", "latency", "work", "speed", "estimate", "recover")),
    (acep.read_events, ("nowhere.csv",), ("columns", "ts", "type", "cast", "unit", "format", "skip_bad_lines")),
    (acep.read_events, ("nowhere.csv",), ("max_skipped", "max_line", "max_expansion", "max_columns")),
    (acep.read_events, ("nowhere.csv",), ("delimiter", "quote", "decimal", "nulls", "multiline_cells")),
    (acep.why, (EVENTS, QUERY), ("key", "rows", "rows", "ts", "type", "seq", "id", "unit")),
    (explain, (QUERY,), ()),
    (error_in, (ValueError("x"),), ()),
)


def drawn(chance: random.Random) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """A call, in which at least one argument may be wrong."""
    call, good, names = chance.choice(CALLS)
    args, named = [*good], dict[str, Any]({"within": 5} if call is acep.regex else {})
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if names and (not args or chance.random() < 0.6):
            named[chance.choice(names)] = chance.choice(VALUES)()
        elif args:
            args[chance.randrange(len(args))] = chance.choice(VALUES)()
    if chance.random() < 0.02:
        named["nonsense"] = 1
    return call, args, named


@contextmanager
def in_time() -> Iterator[None]:
    """Fails where what is run does not come back."""

    def late(*_: Any) -> None:
        raise AssertionError(f"no end within {SECONDS} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(call: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> str | None:
    """What is wrong with the outcome of a call; ``None``: nothing."""
    with warnings.catch_warnings(), in_time():
        warnings.simplefilter("ignore")
        try:
            result = call(*args, **named)
            repr(result)
        except acep.AcepError as error:
            shown = error.render()
            return None if shown.strip() and len(shown.splitlines()) <= 4 else f"a message of many lines: {shown}"
        except TypeError as error:
            by_python = error.__traceback__ is not None and error.__traceback__.tb_next is None
            return None if by_python or "unexpected keyword argument" in str(error) else f"{error!r}"
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            return f"{error!r}"
    return None


def shown(values: Any) -> str:
    try:
        return repr(values)[:300]
    except Exception:  # noqa: BLE001 - values may be anything
        return "something that cannot be shown"


def test_wrong_arguments(cases: Callable[[int], int]) -> None:
    chance = random.Random(2026)
    for number in range(cases(4_000)):
        call, args, named = drawn(chance)
        wrong = outcome(call, args, named)
        assert wrong is None, f"call {number}, {call.__name__}: {wrong}; {shown(args)} {shown(named)}"


@pytest.mark.parametrize("name", sorted({"Matcher", *acep.__all__} - {"__version__"}))
def test_every_public_name_without_arguments_or_with_one(name: str) -> None:
    known = getattr(acep, name)
    if isinstance(known, type) and issubclass(known, Exception):
        return
    assert outcome(known, [], {}) is None
    for make in VALUES:
        if name in ("match", "learn", "parse", "regex", "read_events", "Budget", "Matcher"):
            assert outcome(known, [make()], {}) is None, shown(make())


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_policies_that_are_none() -> None:
    from acep.checks import check_policy

    for make in VALUES:
        value = make()
        if not (isinstance(value, str) and value in ("history", "random")):
            assert outcome(check_policy, [value], {}) is None, shown(value)
