"""Objects and lists in JSON Lines: only what is used is read, lists can be had in three ways, many keys cost little."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import json as arrow_json

import acep
from acep.errors import DataError, DataWarning, QueryError
from acep.events.fields import fields_of
from acep.events.files import text_bytes
from acep.events.files.json import json_lines, line_blocks
from acep.events.files.options import options_of
from acep.linting import reading
from tests.events.test_streams import make_tiny


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=[True, False], ids=["whole", "in blocks"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        make_tiny(monkeypatch)


def write(*rows: Any, name: str = "x.jsonl") -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


def bindings(path: Any, query: str, **how: Any) -> list[Any]:
    return [match.bindings for match in acep.match(path, query, **how)]


ECS = [
    {
        "@timestamp": f"2024-01-01T10:00:0{i}Z",
        "type": "a" if i % 2 else "b",
        "event": {"n": i, "category": ["process", kind], "created": f"2024-01-01T09:00:0{i}Z"},
        "process": {"args": ["/bin/sh", "-c", i, None], "pid": i},
        "tags": [] if i == 3 else [f"t{i}", "all"],
        "answers": [{"name": f"n{i}", "ttl": i}, {"name": "x", "ttl": "none"}],
    }
    for i, kind in enumerate(["start", "end", "start", "end", "info"])
]


@pytest.mark.usefixtures("_blocks")
def test_a_list_inside_an_object_that_is_used() -> None:
    """The line of the report, and a log of the Elastic Common Schema, of which a list holds several kinds."""
    write(
        {"ts": 1, "type": "a", "event": {"n": 1, "tags": ["x"]}}, {"ts": 2, "type": "b", "event": {"n": 1, "tags": []}}
    )
    assert len(bindings("x.jsonl", "PATTERN SEQ(a x, b y) WHERE [event.n]")) == 1
    write(*ECS)
    query = "PATTERN SEQ(a x, b y) WHERE y.event.n = x.event.n + 1 AND y.event.created > x.event.created"
    assert bindings("x.jsonl", query, ts="@timestamp") == [{"x": (1,), "y": (2,)}, {"x": (3,), "y": (4,)}]


@pytest.mark.usefixtures("_blocks")
def test_lists_by_index_by_what_they_contain_and_as_text() -> None:
    write(*ECS)
    where = {
        "contains(x.event.category, 'end')": [1, 3],
        "x.event.category[2] = 'end'": [1, 3],
        "x.tags[1] = 't1'": [1],
        "x.tags[1] IS NULL": [3],
        "x.tags[3] IS NULL": [1, 3],
        "contains(x.tags, 'all') AND NOT contains(x.tags, 't1')": [],
        'CAST(x.tags AS text) = \'["t1","all"]\'': [1],
        "CAST(x.tags AS text) = '[]'": [3],
        "x.answers[1].name = 'n3'": [3],  # of the elements only this is read: others are of several kinds
    }
    for condition, wanted in where.items():
        assert [one["x"][0] for one in bindings("x.jsonl", f"PATTERN a x WHERE {condition}", ts="@timestamp")] == wanted
    assert len(bindings("x.jsonl", "PATTERN SEQ(a x, a y) WHERE [event.category[2]]", ts="@timestamp")) == 1
    with pytest.raises(DataError, match=r"`answers\[\]\.ttl` is text, but a number in line 1"):
        bindings("x.jsonl", "PATTERN a x WHERE x.answers[1].ttl > 2", ts="@timestamp")


@pytest.mark.parametrize("text", ["int", "float", "bool", "timestamp"])
def test_all_elements_of_a_list_are_cast_to_texts_or_decimals_only(text: str) -> None:
    write({"ts": 1, "type": "a", "t": [1.5, 2]})
    with pytest.raises(DataError, match=f"can be cast to string or decimal, and `t\\[\\]` is cast to {text}") as wrong:
        acep.read_events("x.jsonl", cast={"t[]": text})
    assert wrong.value.hint == f'cast one of them: cast={{"t[1]": "{text}"}}'
    assert acep.read_events("x.jsonl", cast={"t[]": "string"})["t"].to_pylist() == [["1.5", "2"]]
    assert str(acep.read_events("x.jsonl", ["ts", "t[2]"], cast={"t[]": "decimal(9,1)"})["t[2]"][0]) == "2.0"


EARLY, LATE = "2024-01-15T00:00:00+02:00", "2024-01-14T23:00:00Z"  # as texts in the other order
PARTS = {"p": 1, "o.at": 1, "t[1]": 0, "o.t[1]": 0, "l[1].at": 0, "n[1][1]": 0}  # how many matches there are of times


def write_times(early: str = EARLY) -> str:
    """Write two events with times at the top, in an object, and in lists."""
    rows = []
    for i, time in enumerate((early, LATE)):
        parts = {"p": time, "o": {"at": time, "t": [time]}, "t": [time], "l": [{"at": time}], "n": [[time]]}
        rows.append({"ts": i, "type": "ab"[i], **parts})
    return write(*rows)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("part", PARTS)
def test_a_text_that_looks_like_a_time_is_one_by_whatever_way_it_comes_unless_it_is_in_a_list(
    part: str, tmp_path: Path
) -> None:
    """As docs/reference/types.md says it."""
    name, query = write_times(), f"PATTERN SEQ(a x, b y) WHERE x.{part} < y.{part} WITHIN 5"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(Path(name).read_text())
    state = {"state": tmp_path / "state", "into": tmp_path / "found"}
    counts = {
        "the file": acep.match(name, query).count(),
        "a table of all": acep.match(acep.read_events(name), query).count(),
        "a table of the part": acep.match(acep.read_events(name, ["ts", "type", part]), query).count(),
        "a follower": acep.follow(tmp_path / "in", query, **state, end=True).report.matches,
    }
    assert counts == dict.fromkeys(counts, PARTS[part])


@pytest.mark.parametrize("part", PARTS)
def test_a_cast_makes_times_of_texts_by_whatever_way_they_come(part: str, tmp_path: Path) -> None:
    name, query = write_times(), f"PATTERN SEQ(a x, b y) WHERE x.{part} < y.{part} WITHIN 5"
    cast = {part: "timestamp"}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(Path(name).read_text())
    state = {"state": tmp_path / "state", "into": tmp_path / "found"}
    matcher = acep.Matcher(query, cast=cast)
    rows = [json.loads(line) for line in Path(name).read_text().splitlines()]
    counts = {
        "a table": acep.match(acep.read_events(name, ["ts", "type", part], cast=cast), query).count(),
        "a follower": acep.follow(tmp_path / "in", query, cast=cast, **state, end=True).report.matches,
        "batches": len(matcher.push(rows)) + len(matcher.finish()),
    }
    assert counts == dict.fromkeys(counts, 1)


def test_a_cast_of_a_batch_refuses_what_has_no_parts() -> None:
    with pytest.raises(DataError, match=r"cast: `t` is int64, and there is no `t\[1\]` in it"):
        acep.Matcher("PATTERN a x WHERE x.t[1] > 3", cast={"t[1]": "int"}).push({"ts": [1], "type": ["a"], "t": [7]})
    later = acep.Matcher("PATTERN a x WHERE x.t[1] > 3", cast={"t[1]": "int"})
    batches = [{"ts": 1, "type": "a", "t": None}, {"ts": 2, "type": "a", "t": ["7"]}]
    assert [len(later.push([row])) for row in batches] == [0, 1]


def test_an_odd_text_in_an_object_is_named() -> None:
    name = write_times(early="never")
    with pytest.warns(DataWarning) as said:
        table = acep.read_events(name)
    assert table.schema.field("o").type.field("at").type == pa.string()
    assert {str(one.message).partition(" is ")[0] for one in said} == {
        f"`{name}`, line 1: `{part}`" for part in ("p", "o.at")
    }


def test_elements_are_cast_in_json_lines_only() -> None:
    table = pa.table({"ts": [1], "type": ["a"], "t": [[1]]})
    pq.write_table(table, "x.parquet")
    with pytest.raises(DataError, match=r"`t\[\]`, are cast in JSON Lines only"):
        acep.read_events("x.parquet", cast={"t[]": "string"})
    with pytest.raises(DataError, match=r"`t\[\]`, are cast in JSON Lines only"):
        acep.Matcher("PATTERN a x", cast={"t[]": "string"}).push(table)


@pytest.mark.usefixtures("_blocks")
def test_a_list_of_several_kinds_is_refused_where_it_is_used() -> None:
    write(*ECS)
    with pytest.raises(
        DataError, match=r"line 1: an element of `process\.args` is a number, but text in line 1"
    ) as wrong:
        acep.match("x.jsonl", "PATTERN a x WHERE x.process.args[1] = '/bin/sh'", ts="@timestamp")
    assert 'cast={"process.args": "string"}' in str(wrong.value.hint)
    assert 'cast={"process.args[]": "string"}' in str(wrong.value.hint)
    columns = ["@timestamp", "contains(process.args, '/bin/sh')", "process.args[3]"]
    elements = acep.read_events("x.jsonl", columns, ts="@timestamp", cast={"process.args[]": "string"})
    assert elements.column(1).to_pylist() == [True] * 5
    assert elements.column(2).to_pylist() == ["0", "1", "2", "3", "4"]
    columns = ["@timestamp", "process.args", "process.pid"]
    table = acep.read_events("x.jsonl", columns, ts="@timestamp", cast={"process.args": "string"})
    assert table.column("process.args").to_pylist()[4] == '["/bin/sh","-c",4,null]'
    assert table.column("process.pid").to_pylist() == [0, 1, 2, 3, 4]
    with pytest.raises(DataError, match="an element of"):
        acep.read_events("x.jsonl", ts="@timestamp")


def test_lists_are_read_as_lists() -> None:
    rows = [{"ts": 1, "n": [1, 2], "s": ["a", None], "o": [{"k": 1.5}], "l": [[1], []]}, {"ts": 2, "n": [], "l": None}]
    write(*rows)
    table = acep.read_events("x.jsonl")
    assert table.to_pylist() == [rows[0], {"ts": 2, "n": [], "s": None, "o": None, "l": None}]
    write({"ts": 1, "x": [2**63]})
    with pytest.raises(DataError, match=r"line 1: `x\[\]` is an integer beyond 64 bits"):
        acep.read_events("x.jsonl")


def test_an_object_or_a_list_becomes_json() -> None:
    write(
        {"ts": 1, "x": {"b": 1.50, "a": ["\u00e4", None]}}, {"ts": 2, "x": 7}, {"ts": 3, "x": "y"}, {"ts": 4, "x": True}
    )
    table = acep.read_events("x.jsonl", cast={"x": "string"})
    assert table.column("x").to_pylist() == ['{"b":1.5,"a":["\u00e4",null]}', "7", "y", "true"]


def test_the_same_of_parquet_frames_and_streams() -> None:
    table = pa.Table.from_pylist([{"ts": i, "type": "a", "dev": {"tags": tags}} for i, tags in enumerate(TAGS)])
    pq.write_table(table, "x.parquet")
    for condition, wanted in CONDITIONS.items():
        query = f"PATTERN a x WHERE {condition}"
        for events in (table, "x.parquet", table.to_pandas(), table.to_pylist(), polars(table)):
            assert [match["x"][0] for match in bindings(events, query)] == wanted, (condition, type(events))
        matcher = acep.Matcher(query)
        found = [*matcher.push(table.slice(0, 2)), *matcher.push(table.slice(2)), *matcher.finish()]
        assert [match.bindings["x"][0] for match in found] == wanted


TAGS: list[Any] = [["x", "y"], None, [], [None, "x"], [None]]
CONDITIONS = {
    "contains(x.dev.tags, 'x')": [0, 3],
    "NOT contains(x.dev.tags, 'x')": [2],
    "contains(x.dev.tags, 'x') IS NULL": [1, 4],
    "x.dev.tags[2] IS NOT NULL": [0, 3],
    "CAST(x.dev.tags AS text) LIKE '%null%'": [3, 4],
}


def polars(table: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(table)


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        (
            "x.tags = 'a'",
            r"column `tags` is list<\w+: string>, and a predicate needs single values",
            "contains(a.x, 'b')",
        ),
        ("x.n[1] = 1", "column `n` holds int values, and no lists", "the column itself"),
        ("contains(x.note, 'a')", "column `note` holds string values, and no lists", "LIKE"),
        ("contains(x.tags, 5)", "it cannot contain 5", "type of its elements"),
        ("x.when[1] IS NULL", "no element of it can be used", "make it a column"),
        ("CAST(x.when AS text) = ''", "a predicate needs single values|it has no text", None),
        ("x.tags[0] = 'a'", "the first element of a list is number 1", "a.tags[1]"),
        ("x.tags[1.5] = 'a'", "the first element of a list is number 1", "a.tags[1]"),
        ("x.tags[1000000000] = 'a'", "the number of an element of a list is less than 1,000,000,000", None),
        ("contains(x.tags)", "takes a list and a constant, not 1", "contains(a.tags, 'x')"),
        ("contains(x.tags, x.note)", "needs a text, a number or a truth value", "constant|before matching"),
        ("contains(x.tags, NULL)", "needs a text, a number or a truth value", "contains"),
        ("contains('a', 'a')", "looks into a list of one event", "contains"),
        ("x.nothing[1] = 'a'", r"unknown column `nothing\[1\]`", None),
    ],
)
def test_what_cannot_be_asked_of_a_list(condition: str, message: str, hint: str | None) -> None:
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "tags": pa.list_(pa.string()), "n": pa.int64()})
    schema = schema.append(pa.field("note", pa.string())).append(pa.field("when", pa.list_(pa.date32())))
    with pytest.raises(QueryError, match=message) as wrong:
        acep.match(schema.empty_table(), f"PATTERN a x WHERE {condition}")
    assert hint is None or any(part in str(wrong.value.hint) for part in hint.split("|"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.sampled_from("ab"), max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pq"), inner, max_size=2),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2), min_size=1, max_size=6))
def test_nested_values_are_exact_or_refused(rows: list[dict[str, Any]]) -> None:
    write(*({"ts": i, **row} for i, row in enumerate(rows)))
    results: list[Any] = []
    for is_small in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if is_small:
                make_tiny(patch)
            try:
                results.append(acep.read_events("x.jsonl").to_pylist())
            except DataError as wrong:
                results.append(wrong.message.split(" is ")[0])
    assert results[0] == results[1]
    if isinstance(results[0], list):
        assert [_without_nulls(row) for row in results[0]] == [
            _without_nulls({"ts": i, **row}) for i, row in enumerate(rows)
        ]


def _without_nulls(value: Any) -> Any:
    """A missing field and a null are one in a column."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if _without_nulls(inner) not in (None, {})}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


# Many keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["rows", "fields", "one line"])
def test_many_distinct_keys_cost_little(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """The work for each key does not grow with the number of keys."""
    calls = 0
    below = json_lines.Used.used_part

    def counted(used: Any, label: str) -> Any:
        nonlocal calls
        calls += 1
        return below(used, label)

    monkeypatch.setattr(json_lines.Used, "used_part", counted)
    work = []
    for n in (2_000, 4_000, 8_000):
        if where == "rows":
            rows = [{"ts": i, "type": "a", f"k{i}": 1} for i in range(n)]
        elif where == "fields":
            rows = [{"ts": i, "type": "a", "dev": {f"k{i}": 1, "id": 1}} for i in range(n)]
        else:
            rows = [{"ts": 0, "type": "a", **{f"k{i}": 1 for i in range(n)}}]
        write(*rows)
        calls = 0
        query = f"PATTERN SEQ(a x, a y) {'WHERE [dev.id]' if where == 'fields' else ''} WITHIN 1"
        assert acep.match("x.jsonl", query, output="count") == len(rows) - 1
        work.append(calls)
    assert work[1] <= 2.4 * work[0]
    assert work[2] <= 2.4 * work[1]


def test_more_attributes_than_are_allowed() -> None:
    write(*({"ts": i, "type": "a", f"k{i}": 1} for i in range(50)))
    with pytest.raises(DataError, match="line 19: there are more than 20 attributes") as wrong:
        acep.read_events("x.jsonl", max_columns=20)
    assert "columns=" in str(wrong.value.hint)
    assert acep.read_events("x.jsonl", ["ts", "type"], max_columns=20).num_rows == 50
    assert acep.read_events("x.jsonl", max_columns=60).num_columns == 52
    Path("x.csv").write_text("ts," + ",".join(f"c{i}" for i in range(30)) + "\n")
    pq.write_table(pa.table({f"c{i}": [1] for i in range(30)}), "x.parquet")
    write(*({"ts": i, "type": "a", "dev": [{"id": {f"k{i}": 1}}]} for i in range(50)))
    with pytest.raises(DataError, match="line 17: there are more than 20 attributes"):
        acep.read_events("x.jsonl", max_columns=20)
    assert acep.read_events("x.jsonl", ["ts", "dev[1].id.k7"], max_columns=5).num_rows == 50
    for name in ("x.csv", "x.parquet"):
        with pytest.raises(DataError, match="columns, and 20 are allowed"):
            acep.read_events(name, max_columns=20)


def test_unread_attributes_take_no_room() -> None:
    """An attribute that is used may come behind more attributes than may be read."""
    write(*({"ts": i, "type": "a", f"k{i}": 1, **({"v": i} if i > 40 else {})} for i in range(50)))
    table = acep.read_events("x.jsonl", ["ts", "v"], max_columns=20)
    assert table.column("v").null_count == 41


@pytest.mark.long
@pytest.mark.parametrize("where", ["rows", "fields"])
def test_few_bytes_make_no_table_of_many_cells(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Each line may have attributes of its own, and all of them are columns."""
    monkeypatch.setattr(text_bytes, "SMALL", 1 << 20)
    rows: list[dict[str, Any]] = [{f"k{i}": 1} for i in range(2_000)]
    write(*({"ts": i, **(row if where == "rows" else {"dev": row})} for i, row in enumerate(rows)))
    with pytest.raises(DataError, match=r"has [0-9,]+ bytes, and more than [0-9] MB when it is read"):
        acep.read_events("x.jsonl", max_expansion=50)
    table = acep.read_events("x.jsonl", max_expansion=2_000)
    assert (table.num_rows, table.num_columns) == (2_000, 2_001 if where == "rows" else 2)
    assert acep.read_events("x.jsonl", ["ts", "dev.k7", "k7"], max_expansion=50).num_rows == 2_000


def n_values(table: pa.Table) -> int:
    """Return the number of values of a table, null ones too."""
    return table.num_rows * sum(1 for held in fields_of(table.schema).values() if not pa.types.is_struct(held))


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of values of all tables that are made of lines of JSON."""
    made: list[int] = []

    def counting(make: Any) -> Any:
        def make_and_count(*args: Any, **options: Any) -> pa.Table:
            table = make(*args, **options)
            made.append(n_values(table))
            return table

        return make_and_count

    monkeypatch.setattr(arrow_json, "read_json", counting(arrow_json.read_json))
    monkeypatch.setattr(json_lines, "table_of", counting(json_lines.table_of))
    return made


@pytest.mark.parametrize("way", ["rows", "fields", "lists of nulls"])
def test_no_more_values_are_made_at_once_the_more_fields_there_are(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], way: str
) -> None:
    at_once = 1 << 14
    monkeypatch.setattr(line_blocks, "CELLS", at_once)
    monkeypatch.setattr(text_bytes, "SMALL", 8 * 4 * at_once)
    greatest = []
    for n in (250, 500, 1_000, 2_000):
        fields = [{f"k{i}": 1} | ({"z": [None]} if way == "lists of nulls" else {}) for i in range(n)]
        write(*({"ts": i, "type": "a"} | (row if way == "rows" else {"o": row}) for i, row in enumerate(fields)))
        sizes.clear()
        with suppress(DataError):  # of the larger files, which would be tables of too many values
            acep.read_events("x.jsonl", max_expansion=1)
        greatest.append(max(sizes, default=0))
    assert at_once // 2 < max(greatest) <= at_once


def test_lint_reads_what_is_used_where_fields_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    write(*({"ts": i, "type": "a", "o": {"x": i, **{f"k{j}": 1 for j in range(50)}}} for i in range(100)))
    query = "PATTERN SEQ(a p, a q) WHERE p.o.x < q.o.x WITHIN 1"
    options = options_of(columns=["ts", "type", "o.x"])
    for most, complete in ((53 * 100, False), (54 * 100, True)):  # with the object itself
        monkeypatch.setattr(reading, "MAX_VALUES", most)
        assert reading.read_whole("x.jsonl", options)[1] is complete
    assert acep.lint("x.jsonl", query).codes == ["no_partition"]


@pytest.mark.parametrize("depth", [99, 101, 300, 2_000, 100_000])
@pytest.mark.parametrize("sign", ["[]", "{}"])
@pytest.mark.parametrize("columns", [None, ["ts", "x"], ["ts"]])
def test_deep_values_are_read_or_refused(depth: int, sign: str, columns: list[str] | None) -> None:
    opening, closing = ("[", "]") if sign == "[]" else ('{"a":', "}")
    value = opening * depth + "1" + closing * depth
    Path("x.jsonl").write_text(f'{{"ts":1,"type":"a"}}\n{{"ts":2,"type":"b","x":{value}}}\n')
    if depth < 100 or (columns == ["ts"] and depth < 500):
        assert acep.read_events("x.jsonl", columns).num_rows == 2
        if depth < 100:
            text = acep.read_events("x.jsonl", ["ts", "x"], cast={"x": "string"}).column("x")
            assert text.to_pylist() == [None, value]
        return
    with pytest.raises(DataError, match=r"line 2(: `x`)? is nested too deeply"):
        acep.read_events("x.jsonl", columns)


def test_a_name_that_comes_twice_among_many_is_found_at_once() -> None:
    text = ",".join(f'"k{i}":1' for i in range(50_000))
    Path("x.jsonl").write_text(f'{{"ts":1,{text},"k49999":2}}\n')
    with pytest.raises(DataError, match="`k49999` is there twice"):
        acep.read_events("x.jsonl", ["ts"])


# Hints -------------------------------------------------------------------------------------------


def write_lines(rows: list[dict[str, Any]], n_files: int) -> list[str]:
    """Write rows to one file or to one each, and return the names."""
    names = []
    for i in range(n_files):
        names.append(f"x{i}.jsonl")
        Path(names[-1]).write_text("".join(json.dumps(row) + "\n" for row in rows[i::n_files]))
    return names


@pytest.mark.parametrize("odd", [5, "x", [1], True], ids=repr)
@pytest.mark.parametrize("n_files", [1, 2])
@pytest.mark.parametrize("is_first", [False, True])
def test_no_cast_is_proposed_where_a_field_is_used(odd: Any, n_files: int, is_first: bool) -> None:
    """Made a text, the attribute would have no fields."""
    rows = [{"ts": 1, "type": "A", "dev": {"id": 1}}, {"ts": 2, "type": "A", "dev": odd}]
    names = write_lines(rows[::-1] if is_first else rows, n_files)
    with pytest.raises(DataError, match="`dev` is") as wrong:
        acep.match(names, "PATTERN SEQ(A a, A b) WHERE [dev.id] WITHIN 5")
    assert wrong.value.hint == "`dev.id` is used; write all lines alike"
    with pytest.raises(DataError, match="`dev` is") as wrong:
        acep.match(names, "PATTERN SEQ(A a, A b) WHERE [dev] WITHIN 5")
    assert wrong.value.hint == 'give it one type, or cast it: cast={"dev": "string"}'
    assert acep.read_events(names, ["ts", "dev"], cast={"dev": "string"}).num_rows == 2


def test_no_cast_of_elements_is_proposed_where_their_fields_are_used() -> None:
    rows = [{"ts": 1, "type": "A", "dev": [{"id": 1}]}, {"ts": 2, "type": "A", "dev": [5]}]
    with pytest.raises(DataError, match="element of `dev` is") as wrong:
        acep.match(write_lines(rows, 1), "PATTERN SEQ(A a, A b) WHERE a.dev[1].id = 1 WITHIN 5")
    assert wrong.value.hint == "`dev[1].id` is used; write all lines alike"


@pytest.mark.parametrize(
    ("cast", "name"),
    [("dev", "dev.id"), ("dev", "dev.tags[1]"), ("dev.tags", "contains(dev.tags, 'x')"), ("dev.tags", "dev.tags[1]")],
)
def test_a_cast_of_a_whole_is_refused_where_a_part_is_used(cast: str, name: str) -> None:
    names = write_lines([{"ts": 1, "type": "A", "dev": {"id": 1, "tags": ["x"]}}], 1)
    with pytest.raises(DataError, match="a part of it, is used") as wrong:
        acep.read_events(names, ["ts", name], cast={cast: "string"})
    assert wrong.value.hint == f"leave the cast of `{cast}` out"
    assert acep.read_events(names, ["ts", name]).num_columns == 2
