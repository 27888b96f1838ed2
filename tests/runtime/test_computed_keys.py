"""Keys that are functions of an attribute, `[lower(user)]`: the same matches as with a column that holds the value."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import acep
from acep.cli import main
from acep.pattern.printing import canonical
from acep.plan.assume import assumed_plan
from tests.case_counts import CaseCounts

Table = dict[str, list[Any]]
KEYS: dict[str, Callable[[str], Any]] = {
    "lower(user)": str.lower,
    "upper(user)": str.upper,
    "length(user)": len,
    "substring(user, 1, 2)": lambda text: text[:2],
    "regexp_extract(user, '([a-z]+)[.]com', 1)": lambda text: (
        text[:-4] if text.endswith(".com") and text.islower() else None
    ),
    "regexp_like(user, '[.]com$')": lambda text: text.endswith(".com"),
    "ip_in(user, '10.0.0.0/8')": {"10.1.1.1": True, "9.1.1.1": False}.get,
}
TEXTS = ("ann", "Ann", "ANN", "bob", "b.com", "a.com", "10.1.1.1", "9.1.1.1", "", None)
PATTERNS = (
    "SEQ(a x, b y) WHERE [{key}] WITHIN 9",
    "SEQ(a x, b+ y[], a z) WHERE skip_till_next_match {{[{key}]}} WITHIN 20",
    "SEQ(a x, b y) WHERE partition_contiguity {{[{key}]}} WITHIN 9",
    "SEQ(a x, ~c n, b y) WHERE [{key}] AND y.n > x.n WITHIN 9",
    "SEQ(a x, b+ y[]) WHERE [{key}, n] WITHIN 9 OUTPUT LONGEST NON OVERLAP",
)


def draw_table(rng: random.Random, count: int = 40) -> Table:
    ts = sorted(rng.choices(range(60), k=count))
    users = rng.choices(TEXTS, k=count)
    return {"ts": ts, "type": rng.choices("abc", k=count), "user": users, "n": rng.choices((1, 2), k=count)}


def with_column(table: Table, key: str) -> Table:
    return table | {"k": [None if text is None else KEYS[key](text) for text in table["user"]]}


def found(table: Any, query: str, **options: Any) -> list[Any]:
    return [([*match.key.values()], match.bindings, match.error) for match in acep.match(table, query, **options)]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_computed_key_is_a_column(cases: CaseCounts, engine: str) -> None:
    n_matches = 0
    for seed in range(cases(300)):
        rng = random.Random(seed)
        key, pattern, table = rng.choice([*KEYS]), rng.choice(PATTERNS), draw_table(rng)
        query = f"PATTERN {pattern}".format(key=key)
        expected = found(with_column(table, key), f"PATTERN {pattern}".format(key="k"), engine=engine)
        assert found(table, query, engine=engine) == expected
        n_matches += len(expected)
    cases.expect({"matches": n_matches}, "matches")


QUERY = "PATTERN SEQ(a x, b y) WHERE [lower(user)] WITHIN 9"


@pytest.fixture
def table() -> Table:
    return draw_table(random.Random(7))


@pytest.fixture
def expected(table: Table) -> list[Any]:
    matches = found(with_column(table, "lower(user)"), QUERY.replace("lower(user)", "k"))
    assert len(matches) > 3
    return matches


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_it_is_computed_of_files(form: str, table: Table, expected: list[Any], tmp_path: Path) -> None:
    path, arrow = tmp_path / f"events.{form}", pa.table(table)
    if form == "csv":
        pa.csv.write_csv(arrow, path)
    elif form == "parquet":
        pa.parquet.write_table(arrow, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in arrow.to_pylist()))
    assert found(str(path), QUERY) == expected


def test_it_is_computed_of_data_frames_and_dicts(table: Table, expected: list[Any]) -> None:
    arrow = pa.table(table)
    assert found(arrow.to_pylist(), QUERY) == expected
    assert found(arrow.to_pandas(), QUERY) == expected
    columns = [arrow[name].dictionary_encode() if name == "user" else arrow[name] for name in arrow.column_names]
    assert found(pa.table(columns, arrow.column_names), QUERY) == expected


@pytest.mark.parametrize("options", [{}, {"lateness": 5}])
def test_it_is_computed_of_streams(options: dict[str, Any], table: Table, expected: list[Any]) -> None:
    matcher, arrow, matches = acep.Matcher(QUERY, **options), pa.table(table), list[Any]()
    for start in range(0, arrow.num_rows, 7):
        matches += matcher.push(arrow.slice(start, 7))
    matches += matcher.finish()
    assert sorted(str([[*m.key.values()], m.bindings]) for m in matches) == sorted(str([k, b]) for k, b, _ in expected)
    assert matches[0].key.keys() == {"lower(user)"}


def test_it_is_computed_in_a_folder(
    table: Table, expected: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox, output = tmp_path / "inbox", tmp_path / "output"
    inbox.mkdir()
    rows = pa.table(table).to_pylist()
    for number in (0, 1):
        lines = (json.dumps(row) + "\n" for row in rows[number * 20 : number * 20 + 20])
        (inbox / f"{number}.jsonl").write_text("".join(lines))
    line = ["follow", QUERY, str(inbox), "--state", str(tmp_path / "state"), "--output", str(output)]
    assert main([*line, "--end", "--no-progress"]) == 0, capsys.readouterr().err
    given = [json.loads(text) for path in output.glob("*.jsonl") for text in path.read_text().splitlines()]
    assert sorted(row["key"]["lower(user)"] for row in given) == sorted(key[0] for key, _, _ in expected)


def test_of_a_field_and_of_an_element() -> None:
    rows = [
        {"ts": n, "type": kind, "dev": {"id": name, "tags": [name]}}
        for n, (kind, name) in enumerate([("a", "X"), ("b", "x"), ("b", "y")])
    ]
    for key in ("lower(dev.id)", "lower(dev.tags[1])"):
        (match,) = acep.match(rows, f"PATTERN SEQ(a p, b q) WHERE [{key}]")
        assert (match.key, match.bindings) == ({key: "x"}, {"p": (0,), "q": (1,)})


def test_a_column_of_that_name_goes_first() -> None:
    table = {"ts": [1, 2], "type": ["a", "b"], "user": ["x", "y"], "lower(user)": ["k", "k"]}
    assert len(acep.match(table, "PATTERN SEQ(a p, b q) WHERE [lower(user)]")) == 1


def test_matches_of_inner_queries_have_it() -> None:
    table = {"ts": [1, 2, 3, 4], "type": ["a", "b", "a", "b"], "user": ["x", "X", "X", "x"]}
    query = "FROM (PATTERN SEQ(a p, b q) WHERE [lower(user)] WITHIN 1) AS T PATTERN SEQ(T s, T t) WHERE [lower(user)]"
    assert [match.key for match in acep.match(table, query)] == [{"lower(user)": "x"}]


@pytest.mark.parametrize("key", [*KEYS, 'lower("odd name")', "regexp_extract(path, 'it''s (a)', 1)"])
def test_its_text_is_the_same_key(key: str) -> None:
    query = acep.parse(f"PATTERN SEQ(a x, b y) WHERE [{key}, n] WITHIN 9")
    assert query.ties == (key, "n")
    assert acep.parse(canonical(query)).ties == query.ties
    assert assumed_plan(query).keys == query.ties


MISTAKES = {
    "[lower(x.user)]": "`[attribute]` ties the events of all variables",
    "[abs(n)]": "`abs` gives no key",
    "[concat(user, n)]": "`n` is not a value",
    "[lower(user, 1)]": "`lower` takes 1 argument",
    "[domain(user)]": "unknown function `domain`",
    "[regexp_extract(user, '(', 1)]": "is no regular expression",
    "[regexp_extract(user, 'a', x.n)]": "constants",
    "[substring(user, x.n)]": "constants",
    "[lower(upper(user))]": "",
    "[lower()]": "",
}  # fmt: skip


@pytest.mark.parametrize("key", MISTAKES)
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(acep.QueryError) as error:
        acep.parse(f"PATTERN SEQ(a x, b y) WHERE {key} WITHIN 9")
    assert MISTAKES[key] in error.value.message
    assert error.value.line == 1


def test_a_key_of_numbers_and_of_no_column_is_refused(table: Table) -> None:
    with pytest.raises(acep.QueryError, match="`lower` takes a text, and column `n` holds int values"):
        acep.match(table, "PATTERN SEQ(a x, b y) WHERE [lower(n)]")
    with pytest.raises(acep.QueryError, match="unknown column `usr`, of which the key is"):
        acep.match(table, "PATTERN SEQ(a x, b y) WHERE [lower(usr)]")


def test_commands_know_it(table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.parquet"
    pa.parquet.write_table(pa.table(table), path)
    for line in (["explain", QUERY], ["explain", QUERY, "--events", str(path)], ["lint", QUERY, str(path)]):
        assert main(line) == 0, capsys.readouterr().err
    assert main(["why", QUERY, str(path), "--key", "ann"]) == 0
    assert "lower(user)=ann" in capsys.readouterr().out
    assert main(["replay", QUERY, str(path), "--no-progress"]) == 0


def test_on_spark_it_is_refused() -> None:
    from pyspark.sql.types import StructType

    from acep.spark.columns.letter_case import as_queries_write

    columns = StructType().add("ts", "long").add("type", "string").add("user", "string")
    with pytest.raises(acep.QueryError, match=r"the key `lower\(user\)` is computed from each event") as error:
        as_queries_write(columns, QUERY, {})
    assert "make it a column" in str(error.value)
    as_queries_write(columns.add("lower(user)", "string"), QUERY, {})
