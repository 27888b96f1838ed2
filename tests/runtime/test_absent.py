"""What a query waits for in vain is said, once the stream was seen, of the line that called acep."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.cli import main
from acep.tables.absent_inputs import FIRST

EVENTS = {
    "ts": [1, 2, 3, 4],
    "type": ["login_failed", "login_failed", "ok", "Reset"],
    "user": ["x", "x", "x", None],
    "none": pa.nulls(4, pa.string()),
}
LOGIN = "no event is of type `Login_Failed`, so that nothing matches; did you mean `login_failed`?"


def told(events: Any, text: str, *, errors: int = 0, **how: Any) -> list[str]:
    """What is warned of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        acep.match(events, acep.parse(text, errors=errors), **how)
    assert all(one.category is acep.DataWarning and one.filename == __file__ for one in found)
    return [str(one.message) for one in found]


@pytest.mark.parametrize("output", ["matches", "count", "points", "bundles", "compressed", "exists", "batches"])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_type_that_never_occurs(output: str, engine: str) -> None:
    text = "PATTERN SEQ(Login_Failed+ a[], ok b) WHERE [user] WITHIN 9"
    assert told(EVENTS, text, output=output, engine=engine) == [LOGIN]
    assert told(EVENTS, text.replace("Login_F", "login_f"), output=output, engine=engine) == []


@pytest.mark.parametrize("first", [FIRST - 1, FIRST, 5 * FIRST, 8 * FIRST - 1])
@pytest.mark.parametrize("cut", [0, 5_000])
def test_a_type_may_occur_late_in_a_large_batch(first: int, cut: int) -> None:
    """The types are looked at in steps that grow, until each type of the query has occurred."""
    size = 8 * FIRST
    types = ["a"] * first + ["b"] + ["a"] * (size - first - 1)
    table = pa.table({"ts": pa.array(range(size)), "type": types})
    parts = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert told(parts, "PATTERN SEQ(a x, b y) WITHIN 1", output="count") == []
    assert told(parts, "PATTERN SEQ(a x, b y, c z) WITHIN 1", output="count") == [
        "no event is of type `c`, so that nothing matches; known: `a`, `b`"
    ]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("SEQ(ok a, gone b)", ["`gone`, so that nothing matches; known: `Reset`, `login_failed`, `ok`"]),
        ("SEQ(ok a, gone* b[])", []),
        ("SEQ(ok a, reset* b[])", ["`reset`, which the query names; did you mean `Reset`?"]),
        ("SEQ(ok a, (gone b | Reset c))", []),
        ("SEQ(ok a, (gone b | away c))", ["`gone`, so that nothing", "`away`, so that nothing"]),
        ("SEQ((gone|Reset) b, ok a)", []),
        ("SEQ(login_failed a, ~gone b, ok c)", []),
        ("SEQ(login_failed a, ~OK b, Reset c)", ["`OK`, which the query names; did you mean `ok`?"]),
        ("SEQ(login_failed a, ~OK b, ok c)", ["`OK`, which the query names; did you mean `ok`?"]),
        ("SEQ(ANY a, ok b)", []),
        ("{ok a, Resett b}", ["`Resett`, so that nothing matches; did you mean `Reset`?"]),
    ],
)
def test_what_the_query_needs(pattern: str, said: list[str]) -> None:
    found = told(EVENTS, f"PATTERN {pattern} WITHIN 9")
    assert len(found) == len(said)
    for line, part in zip(found, said, strict=True):
        assert f"no event is of type {part}" in line


def test_with_errors_matches_lack_it() -> None:
    (line,) = told(EVENTS, "PATTERN SEQ(ok a, gone b) WITHIN 9", errors=1)
    assert line.startswith("no event is of type `gone`, so that it is missing from every match; known: ")


def test_a_key_that_is_always_null() -> None:
    (line,) = told(EVENTS, "PATTERN SEQ(ok a, Reset b) WHERE [none] WITHIN 9")
    assert told(EVENTS, "PATTERN SEQ(ok a, Reset b) WHERE [none] WITHIN 9", limit=3) == [line]
    assert line == "the partition attribute `none` is null in every event, so that nothing matches"
    assert told(EVENTS, "PATTERN SEQ(ok a, Reset b) WHERE [user] WITHIN 9") == []


def test_a_type_of_a_dictionary_that_no_event_has() -> None:
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a", "b"]))
    (line,) = told(pa.table({"ts": [1, 2], "type": kinds}), "PATTERN SEQ(a x, b y) WITHIN 9")
    assert line == "no event is of type `b`, so that nothing matches; known: `a`"


def test_no_event_says_nothing_and_sources_say_it_of_theirs() -> None:
    assert told({"ts": [], "type": []}, "PATTERN SEQ(a x, b y) WITHIN 9") == []
    text = "FROM (PATTERN SEQ(Login_Failed a, ok b) WITHIN 9) AS T PATTERN SEQ(T x, T y) WITHIN 9"
    assert told(EVENTS, text) == [LOGIN]


def test_lines_name_the_queries_where_there_are_several() -> None:
    queries = {"one": "PATTERN SEQ(ok a, ok b) WITHIN 9", "two": "PATTERN SEQ(ok a, Login_Failed b) WITHIN 9"}
    matcher = acep.Matcher(queries)
    matcher.push(EVENTS)
    for answer in (lambda: acep.match(EVENTS, queries), matcher.finish):
        with pytest.warns(acep.DataWarning) as found:
            answer()
        assert [str(one.message) for one in found] == [f"query `two`: {LOGIN}"]
    keyed = ["PATTERN SEQ(ok a, ok b) WITHIN 9", "PATTERN SEQ(ok a, ok b) WHERE [none] WITHIN 9"]
    with pytest.warns(acep.DataWarning, match="^query `1`: the partition attribute `none` is null in every event"):
        acep.match(EVENTS, keyed)


def test_several_queries_say_the_same_once() -> None:
    query = acep.parse("PATTERN SEQ(Login_Failed a, ok b) WITHIN 9")
    with pytest.warns(acep.DataWarning) as found:
        acep.match(EVENTS, [query, query])
    assert [str(one.message) for one in found] == [f"queries `0` and `1`: {LOGIN}"]


def test_a_matcher_says_it_at_the_end() -> None:
    query = acep.parse("PATTERN SEQ(login_failed a, OK b) WITHIN 9")
    matcher, other = acep.Matcher(query), acep.Matcher(query)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.push({"ts": [1], "type": ["login_failed"]})
        matcher.push({"ts": [2], "type": ["ok"]})
        other.restore(matcher.snapshot())
        other.finish()  # it does not know the types that came before
    with pytest.warns(acep.DataWarning, match="`OK`.*did you mean `ok`") as found:
        matcher.finish()
    assert found[0].filename == __file__


def test_the_command_line_says_it_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "events.csv"
    file.write_text("ts,type\n1,login_failed\n2,ok\n")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["match", "PATTERN SEQ(Login_Failed a, ok b) WITHIN 9", str(file)]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"acep: warning: {LOGIN}\n")
