"""Functions of the user's own: where they may stand, what they are given, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.errors import DataError, QueryError, SnapshotError
from acep.pattern.printing import canonical
from acep.plan.assume import assumed_plan

ENGINES = ("reference", "auto")
EVENTS = {
    "ts": [1, 2, 3, 4, 5, 6],
    "type": ["A", "B", "A", "B", "C", "B"],
    "x": [1.0, 2.0, None, 4.0, 0.5, 3.0],
    "i": [1, 2, 3, 4, 5, 6],
    "s": ["ab", "cd", None, "xy", "", "ba"],
}


@acep.function(version="1", returns="float")
def score(x: pa.Array, y: pa.Array) -> pa.Array:
    """Twice the first argument and the second one."""
    assert isinstance(x, pa.Array)
    assert isinstance(y, pa.Array)
    return pc.add(pc.multiply(x, 2.0), y)


@acep.function(version="1.2-a", returns="text")
def turned(s: pa.Array) -> list[str | None]:
    """The letters of a text from its end."""
    return [None if text is None else text[::-1] for text in s.to_pylist()]


@acep.function(version="1", returns="boolean", name="odd")
def is_odd(i: pa.Array) -> Any:
    """Whether a number is odd, as NumPy has it."""
    return i.to_numpy() % 2 == 1


OWN = [score, turned, is_odd]


def found(text: str, engine: str = "auto", events: Any = EVENTS, **options: Any) -> list[Any]:
    """Bindings and values of each match."""
    query = acep.parse(text, functions=OWN)
    return [(m.bindings, m.values) for m in acep.match(events, query, engine=engine, **options)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("PATTERN SEQ(A a, B b) WHERE score(b.x, b.i) > score(a.x, a.i) + 5", ["a=0 b=3", "a=0 b=5"]),
        ("PATTERN B b WHERE score(b.x, 0.5) = 4.5", ["b=1"]),
        ("PATTERN A a WHERE score(a.x, a.i) IS NULL", ["a=2"]),
        ("PATTERN A a WHERE turned(a.s) = 'ba'", ["a=0"]),
        ("PATTERN ANY a WHERE upper(turned(a.s)) LIKE 'B%'", ["a=0"]),
        ("PATTERN ANY a WHERE regexp_like(turned(a.s), '^[ab]+$')", ["a=0", "a=5"]),
        ("PATTERN ANY a WHERE turned(lower(concat(a.s, 'Q'))) = 'qyx'", ["a=3"]),
        ("PATTERN ANY a WHERE odd(a.i) AND NOT odd(a.i + a.ts)", ["a=0", "a=2", "a=4"]),
        ("PATTERN SEQ(A a, ~B n, C c) WHERE score(n.x, n.i) > 13 WITHIN 9", ["a=0 c=4", "a=2 c=4"]),
        ("PATTERN SEQ(A a, ~B n, C c) WHERE score(n.x, n.i) > a.i + 9 WITHIN 9", ["a=2 c=4"]),
        (
            """PATTERN B+ b[] WHERE skip_till_next_match AND score(b[i].x, b[i].i) > score(b[i-1].x, b[i-1].i) + 1
            HAVING count(b[]) > 1 AND score(b[1].x, 1) < 6""",
            ["b=1,3"],
        ),
    ],
)
def test_where_a_function_may_stand(text: str, matches: list[str], engine: str) -> None:
    told = [" ".join(f"{v}={','.join(map(str, ids))}" for v, ids in b.items()) for b, _ in found(text, engine)]
    assert sorted(told) == matches


@pytest.mark.parametrize("engine", ENGINES)
def test_values_that_are_given(engine: str) -> None:
    text = "PATTERN SEQ(A a, C c) RETURN score(a.x, c.i - c.i + 1) AS one, turned(c.s), a.i"
    with pytest.raises(QueryError, match="takes attributes of one event"):
        found(text, engine)
    text = "PATTERN SEQ(A? a, C c) RETURN score(a.x, 1) AS one, turned(c.s), odd(c.i) AS odd OUTPUT ALL"
    ((_, first), (_, second), (_, third)) = found(text, engine)
    assert first == {"one": 3.0, "turned_c_s": "", "odd": True}
    assert second == {"one": None, "turned_c_s": "", "odd": True}
    assert third == {"one": None, "turned_c_s": "", "odd": True}


@pytest.mark.parametrize("engine", ENGINES)
def test_functions_in_queries_of_from(engine: str) -> None:
    text = "FROM (PATTERN A a WHERE odd(a.i) RETURN a.i AS i, score(a.x, 0) AS z) AS T PATTERN T t "
    text += "WHERE score(t.z, t.i) = 5"
    assert [b for b, _ in found(text, engine)] == [{"t": (0,)}]


@pytest.mark.parametrize("engine", ENGINES)
def test_several_queries_share_a_pass(engine: str) -> None:
    queries = {name: acep.parse(f"PATTERN A a WHERE {name}", functions=OWN) for name in ("odd(a.i)", "odd(a.i + 1)")}
    told = acep.match(EVENTS, queries, engine=engine)
    assert {name: len(matches) for name, matches in told.items()} == {"odd(a.i)": 2, "odd(a.i + 1)": 0}


@pytest.mark.parametrize("engine", ENGINES)
def test_late_events_and_taken_back_ones(engine: str) -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE score(b.x, b.i) > 6 WITHIN 9", functions=OWN)
    wanted = [m.bindings for m in acep.match(EVENTS, query, engine=engine, id="i")]
    for options in ({"lateness": 9}, {"lateness": 9, "speculation": 9}):
        matcher = acep.Matcher(query, engine=engine, id="i", **options)
        given = []
        for rows in ([2, 0, 1], [5, 4, 3]):
            given += [*matcher.push({name: [column[row] for row in rows] for name, column in EVENTS.items()})]
        given += [*matcher.finish()]
        assert sorted(str(m.bindings) for m in given) == sorted(map(str, wanted))
    assert wanted


def failing(code: Callable[..., Any], returns: str = "float") -> list[Any]:
    """Both engines' message for a function."""
    own = acep.function(version="1", returns=returns, name="own")(code)
    query = acep.parse("PATTERN A a WHERE own(a.x) = own(a.x)", functions=[own])
    told = []
    for engine in ENGINES:
        with pytest.raises(DataError) as caught:
            acep.match(EVENTS, query, engine=engine)
        told.append(str(caught.value).partition("\n")[0])
    assert told[0] == told[1]
    return told[:1]


def fails(x: pa.Array) -> pa.Array:
    """Fail, in two lines."""
    raise ValueError(f"first line\nsecond line of {len(x)}")


@pytest.mark.parametrize(
    ("code", "returns", "message"),
    [
        (fails, "float", "the function `own` failed: ValueError: first line"),
        (lambda x: x.slice(1), "float", "the function `own` returned 5 values for 6 rows"),
        (lambda x: 3, "float", "the function `own` returned a int"),
        (lambda x: pc.cast(pc.round(x), pa.int64()), "float", "the function `own` returned int64, not float"),
        (lambda x: x, "text", "the function `own` returned double, not text"),
        (
            lambda x: np.full(len(x), 2**63, np.uint64),
            "integer",
            "the function `own` returned a value that does not fit",
        ),
        (lambda: 1, "float", "the function `own` failed: TypeError: "),
    ],
)
def test_what_goes_wrong_in_a_function_is_told_in_one_line(code: Any, returns: str, message: str) -> None:
    (told,) = failing(code, returns)
    assert told.startswith(message)


@pytest.mark.parametrize("engine", ENGINES)
def test_events_of_a_push_that_failed_were_not_taken_in(engine: str) -> None:
    good = [False]

    @acep.function(version="1", returns="integer")
    def fragile(i: pa.Array) -> pa.Array:
        assert good[0], "not now"
        return i

    query = acep.parse("PATTERN SEQ(A a, B b) WHERE fragile(b.i) > 0", functions=[fragile])
    matcher = acep.Matcher(query, engine=engine)
    with pytest.raises(DataError, match="the function `fragile` failed: AssertionError: not now"):
        matcher.push(EVENTS)
    good[0] = True
    given = [*matcher.push(EVENTS), *matcher.finish()]
    assert [m.bindings for m in given] == [m.bindings for m in acep.match(EVENTS, query, engine=engine)]


def test_a_state_is_restored_with_the_same_version_only() -> None:
    def matcher(version: str, returns: str = "float") -> acep.Matcher:
        own = acep.function(version=version, returns=returns, name="own")(lambda x: x)
        return acep.Matcher(acep.parse("PATTERN SEQ(A a, B b) WHERE own(a.x) > 0 WITHIN 9", functions=[own]))

    first = matcher("1")
    first.push({name: column[:1] for name, column in EVENTS.items()})
    state = first.snapshot()
    same = matcher("1")
    same.restore(state)
    rest = {name: column[1:] for name, column in EVENTS.items()}
    assert len([*same.push(rest), *same.finish()]) == 3
    with pytest.raises(SnapshotError):
        matcher("2").restore(state)


def test_the_version_is_a_part_of_the_fingerprint_and_of_the_text() -> None:
    def query(version: str, returns: str = "float") -> acep.Query:
        own = acep.function(version=version, returns=returns, name="own")(lambda x: x)
        return acep.parse("PATTERN A a WHERE own(a.x) > 0", functions=[own])

    prints = {assumed_plan(query(*how)).fingerprint for how in (("1",), ("2",), ("1", "integer"))}
    assert len(prints) == 3
    assert assumed_plan(query("1")).fingerprint in prints
    text = canonical(query("7"))
    assert "own(a.x) /* version 7 */ > 0" in text
    own = acep.function(version="7", returns="float", name="own")(lambda x: x)
    assert canonical(acep.parse(text, functions=[own])) == text


def test_a_budget_holds_with_functions() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE score(b.x, b.i) > score(a.x, a.i) WITHIN 50", functions=OWN)
    size = 600
    events = pa.table(
        {
            "ts": range(size),
            "type": ["A", "B"] * (size // 2),
            "x": [float(n % 7) for n in range(size)],
            "i": [n % 5 for n in range(size)],
        }
    )
    exact, some = (
        {tuple(match.bindings.values()) for match in acep.match(events, query, budget=budget)}
        for budget in (None, acep.Budget(work=3))
    )
    assert some < exact
    assert some


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A a, B b) WHERE score(a.x, b.x) > 1", "`score` takes attributes of one event"),
        ("PATTERN A a WHERE score(1, 2) > a.x", "`score` takes attributes of one event"),
        ("PATTERN A+ a[] WHERE score(a[i].x, a[i-1].x) > 1", "`score` takes attributes of one event"),
        ("PATTERN A a WHERE turned(a.s) > 1", "a text cannot be compared with a number"),
        ("PATTERN A a WHERE score(a.x, 5 min) > 1", "`score` takes no duration"),
        ("PATTERN A a WHERE score(abs(score(a.x, 1)), 1) > 1", "`score` is called inside `score`"),
        ("PATTERN A a WHERE scor(a.x) > 1", "unknown function `scor`"),
    ],
)
def test_calls_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        acep.parse(text, functions=OWN)
    assert caught.value.message == message
    assert caught.value.start is not None


def test_columns_that_no_function_takes() -> None:
    events = pa.table({"ts": [1], "type": ["A"], "d": pa.array([1], pa.decimal128(9, 2))})
    with pytest.raises(QueryError, match="`odd` takes no decimal of scale 2"):
        found("PATTERN A a WHERE odd(a.d)", events=events)


twin = acep.function(version="2", returns="float", name="score")(score.code)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: acep.function(version="", returns="float"), "version='' is no version of a function"),
        (lambda: acep.function(version="*/", returns="float"), "version='*/' is no version of a function"),
        (lambda: acep.function(version="1", returns="date"), "returns='date' is no type of a result"),
        (lambda: acep.function(version="1", returns="float")(lambda x: x), "'<lambda>' is no name of a function"),
        (lambda: acep.function(score.code), "acep.function takes version= and returns=, in parentheses"),
        (acep.function, "version='' is no version of a function"),
        (lambda: acep.parse("PATTERN A a", functions=score), "functions=Function"),
        (lambda: acep.parse("PATTERN A a", functions=[is_odd.code]), "functions: <function"),
        (lambda: acep.parse("PATTERN A a", functions=[score, twin]), "functions: two are called `score`"),
    ],
)
def test_functions_that_are_none(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make()
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("name", ["lower", "avg", "prev", "cast", "stddev_samp"])
def test_names_of_the_language_are_taken(name: str) -> None:
    own = acep.function(version="1", returns="float", name=name)(lambda x: x)
    with pytest.raises(QueryError, match=f"`{name}` is a function of the language"):
        acep.parse("PATTERN A a", functions=[own])


def test_the_name_of_an_own_function_is_suggested() -> None:
    own = acep.function(name="half_of", version="1", returns="float")(lambda x: x)
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { %s(a.x) > 1 } WITHIN 5"
    for wrong in ("Half_of", "halfof"):
        with pytest.raises(QueryError, match=f"unknown function `{wrong}`(?s:.)*did you mean `half_of`"):
            acep.parse(text % wrong, functions=[own])
    with pytest.raises(QueryError, match="did you mean `floor`"):
        acep.parse(text % "floo", functions=[own])


def test_a_function_is_still_one() -> None:
    assert score(pa.array([1.0]), pa.array([2.0])).to_pylist() == [4.0]
