"""A query may be a text wherever one is taken, and what stands where a query should is told from one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import acep
from acep.cli import main
from acep.explain.stages import explain
from acep.explain.why import why
from acep.functions.aggregates import names_in_queries
from acep.pattern.text.foreign_syntax import foreign_at

TEXT = "PATTERN SEQ(a x, b y) WITHIN 5"
QUERY = acep.parse(TEXT)
EVENTS = {"ts": [1, 2], "type": ["a", "b"]}


def test_a_text_is_read_wherever_a_query_is_taken() -> None:
    assert acep.match(EVENTS, TEXT).to_arrow().equals(acep.match(EVENTS, QUERY).to_arrow())
    assert acep.match(EVENTS, {"one": TEXT, "two": QUERY}, output="count") == {"one": 1, "two": 1}
    assert acep.match(EVENTS, [TEXT], output="count") == [1]
    assert len(acep.Matcher(TEXT).push(EVENTS)) == 1
    assert explain(TEXT) == explain(QUERY)
    assert str(why(EVENTS, TEXT)) == str(why(EVENTS, QUERY))
    many = {"ts": list(range(200)), "type": list("ab" * 100)}
    assert acep.learn(many, TEXT) == acep.learn(many, QUERY)


def test_a_text_is_read_on_spark() -> None:
    from acep.spark.job import make_spark_job

    pyspark = pytest.importorskip("pyspark.sql.types")
    schema = pyspark.StructType().add("ts", "long").add("type", "string")
    assert make_spark_job(schema, TEXT)[0].queries == (QUERY,)


SWAPPED = "a query stands where the events should"
NO_QUERY = "a query is a text, or what acep.parse, acep.regex or acep.Automaton gives, not "


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda: acep.match(QUERY, EVENTS), NO_QUERY + "list", "comes after the events"),
        (lambda: acep.match(TEXT, pa.table(EVENTS)), NO_QUERY + "Table", "comes after the events"),
        (lambda: acep.match(TEXT, pd.DataFrame(EVENTS)), NO_QUERY + "DataFrame", "comes after the events"),
        (lambda: acep.match(TEXT, [{"ts": 1}]), NO_QUERY + "dict", "comes after the events"),
        (lambda: acep.match(TEXT, "events.csv"), "`events.csv` is the name of a file", "of events, give them first"),
        (lambda: acep.match(TEXT, "x" * 100_001), "the query is longer than 100000", "swapped"),
        (lambda: acep.match(TEXT, TEXT), SWAPPED, "the events come first"),
        (lambda: acep.learn(QUERY, EVENTS), NO_QUERY + "dict", "comes after the events"),
        (lambda: why(QUERY, TEXT), SWAPPED, "the events come first"),
        (lambda: acep.Matcher(EVENTS), NO_QUERY + "list", "comes after the events"),  # type: ignore[arg-type]
        (lambda: acep.Matcher(TEXT).push(QUERY), SWAPPED, "the events come first"),
        (
            lambda: acep.match(EVENTS, "re:a(b|c)"),
            "a letter expression needs a window",
            "acep.regex('a(b|c)', within=5",
        ),
    ],
)
def test_what_is_no_query(call: Callable[[], Any], message: str, hint: str) -> None:
    with pytest.raises(acep.QueryError) as caught:
        call()
    assert caught.value.message.startswith(message)
    assert hint in str(caught.value.hint)


def test_swapped_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("e.csv", "ts,type\n1,a\n"), ("long.jsonl", '{"ts": 1}\n' * 20_000)):
        file = tmp_path / name
        file.write_text(text)
        assert main(["match", str(file), TEXT]) == 2
        assert capsys.readouterr().err.splitlines() == [
            f"acep: `{file}` is a file of events, not a query [file_read]",
            "hint: the query comes first, then the events",
        ]


def test_two_columns_of_a_frame_with_one_name() -> None:
    frame = pd.DataFrame([[1, 2, "a"]], columns=["ts", "ts", "type"])
    with pytest.raises(
        acep.DataError, match=r"two columns are called `ts` \[data_column\]\nhint: .*columns.duplicated"
    ):
        acep.match(frame, TEXT)


def test_the_list_of_functions_is_whole() -> None:
    with pytest.raises(acep.QueryError) as caught:
        acep.parse("PATTERN A a WHERE zzz(a.x) = 1")
    hint = caught.value.render().splitlines()[-1]
    assert hint.startswith("hint: the functions are abs, avg, ")
    assert {*names_in_queries(), "prev", "year"} <= set(hint.partition("are ")[2].split(", "))


def test_a_construct_is_found_where_reading_stopped_only() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.x = 'until' AND b.limit = 5 bad"
    assert foreign_at(text, len(text) - 3) is None
    assert foreign_at(text, text.index("until")) is None
