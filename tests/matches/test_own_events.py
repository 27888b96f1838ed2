"""From a match back to the user's own rows, in the form in which they were given."""

from __future__ import annotations

import copy
import pickle
import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.random_cases import Case, random_case

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

QUERY = "PATTERN SEQ(A a, B+ b[]) WHERE strict_contiguity(a, b[]) { [k] } WITHIN 9"
KEYED = "PATTERN SEQ(ANY a, ANY b) WHERE skip_till_next_match(a, b) { [k] AND b.p > a.p }"
ROWS = {
    "ts": [5, 1, 2, 3, 4, 9],
    "type": ["B", "x", "A", "B", "B", "A"],
    "k": ["u"] * 6,
    "name": ["p", "q", "r", "s", "t", "v"],
}
NAMES = ["r", "s", "t", "p"]  # of the longest match, in the order of the stream


def longest(found: acep.Matches) -> acep.Match:
    return max(found, key=lambda match: len(match.bindings["b"]))


def plain(rows: Any) -> list[dict[str, Any]]:
    """Rows of any form as dicts."""
    if isinstance(rows, pd.DataFrame):
        return rows.to_dict("records")
    return rows.to_dicts() if isinstance(rows, pl.DataFrame) else rows.to_pylist()


def test_rows_of_another_key_at_the_same_times_are_refused() -> None:
    frame = pd.DataFrame({"ts": [1, 1, 2, 2], "k": ["x", "y", "x", "y"], "p": [1, 100, 2, 200]})
    found = acep.match(frame, KEYED)
    assert found.events(found[0], frame.copy())["k"].tolist() == ["x", "x"]
    swapped = frame.iloc[[1, 0, 3, 2]].reset_index(drop=True)
    for match in (None, found[0]):
        with pytest.raises(acep.DataError, match="row 0 has another `k` than its match"):
            found.events(match, swapped)
    records = acep.match(frame, KEYED, engine="reference")
    with pytest.raises(acep.DataError, match="row 0 has another `k` than its match"):
        records.events(None, swapped)
    frame.loc[:, "k"] = ["y", "x", "y", "x"]
    with pytest.raises(acep.DataError, match="row 0 has another `k` than its match"):
        found.events(found[0])


def test_another_number_of_rows_is_refused() -> None:
    rows = {"ts": [1, 1, 1, 2], "type": list("xxAB")}
    query = "PATTERN SEQ(A a, B b) WITHIN 9"
    found = acep.match(rows, query)
    for many in (3, 5):
        other = {name: (values * 2)[-many:] for name, values in rows.items()}
        with pytest.raises(acep.DataError, match=f"there are {many} rows, and 4 events were matched"):
            found.events(found[0], other)
    matcher = acep.Matcher(query)
    early = matcher.push(rows)
    matcher.push({"ts": [3], "type": ["x"]})
    whole = {"ts": [*rows["ts"], 3], "type": [*rows["type"], "x"]}
    assert early.events(early[0], whole)["ts"].to_pylist() == [1, 2]
    with pytest.raises(acep.DataError, match="there are 3 rows, and"):
        early.events(early[0], {name: values[-3:] for name, values in whole.items()})


# Forms --------------------------------------------------------------------------------------------

FORMS: dict[str, tuple[Callable[[pa.Table], Any], type]] = {
    "pandas": (lambda table: table.to_pandas().set_axis([f"row {i}" for i in range(table.num_rows)]), pd.DataFrame),
    "polars": (pl.from_arrow, pl.DataFrame),
    "table": (lambda table: table, pa.Table),
    "record batch": (lambda table: table.combine_chunks().to_batches()[0], pa.Table),
    "dict": (lambda table: table.to_pydict(), pa.Table),
    "dicts": (lambda table: table.to_pylist(), pa.Table),
    "array": (lambda table: table.to_pandas().to_records(index=False), pa.Table),
}
each_form = pytest.mark.parametrize("form", FORMS)


@pytest.mark.parametrize("id", [None, "ts", "name"])
@each_form
def test_rows_come_in_the_form_in_which_they_were_given(form: str, id: str | None) -> None:
    make, kind = FORMS[form]
    events = make(pa.table(ROWS))
    found = acep.match(events, QUERY, id=id)
    rows = found.events(longest(found))
    assert isinstance(rows, kind)
    assert [row["name"] for row in plain(rows)] == NAMES
    assert [row["variable"] for row in plain(rows)] == ["a", "b", "b", "b"]
    assert set(plain(rows)[0]) == {*ROWS, "variable"}
    if form == "pandas":
        assert list(rows.index) == ["row 2", "row 3", "row 4", "row 0"]
        assert rows.drop(columns="variable").equals(events.iloc[[2, 3, 4, 0]])
        assert "variable" not in events.columns
    every = plain(found.events())
    assert Counter(row["match"] for row in every) == {i: len(found.events(one)) for i, one in enumerate(found)}
    assert [row for row in every if row["match"] == 1] == [row | {"match": 1} for row in plain(found.events(found[1]))]


@each_form
def test_no_match_gives_no_row_but_all_columns(form: str) -> None:
    found = acep.match(FORMS[form][0](pa.table(ROWS)), "PATTERN SEQ(B a, A b) WITHIN 0")
    rows = found.events()
    assert (len(found), len(rows)) == (0, 0)
    assert [*(rows.columns if hasattr(rows, "iloc") else rows[:0].to_pandas().columns)] == [*ROWS, "match", "variable"]


def test_files_are_read_again_with_all_their_columns(tmp_path: Path) -> None:
    table = pa.table(ROWS)
    pq.write_table(table.slice(0, 2), tmp_path / "1.parquet")
    pq.write_table(table.slice(2), tmp_path / "2.parquet")
    for paths in (tmp_path, str(tmp_path / "*.parquet"), [tmp_path / "1.parquet", tmp_path / "2.parquet"]):
        found = acep.match(paths, QUERY)
        assert found.events(longest(found))["name"].to_pylist() == NAMES
        assert isinstance(found.events(), pa.Table)
    pq.write_table(table.slice(1, 1), tmp_path / "3.parquet")
    assert found.events(found[0]).num_rows  # of the two files that were named, which were read by then
    found = acep.match(tmp_path, QUERY)
    pq.write_table(table.slice(2, 3), tmp_path / "2.parquet")
    with pytest.raises(acep.DataError, match="the files have changed"):
        found.events()


def test_composed_output_of_several_queries_and_of_a_limit() -> None:
    frame = pd.DataFrame(ROWS)
    one, other = acep.match(frame, [QUERY, "PATTERN A a"])
    assert list(one.events(longest(one))["name"]) == NAMES
    assert list(other.events()["name"]) == ["r", "v"]
    assert len(acep.match(frame, QUERY, limit=1).events()) >= 2
    compressed = acep.match(frame, "PATTERN SEQ(A a, B b) WITHIN 9", output="compressed")
    assert list(compressed.matches(limit=1).events()["name"]) == ["r", "s"]


def test_ids_in_a_field_and_in_an_index() -> None:
    table = pa.table(ROWS)
    inner = pa.StructArray.from_arrays([pa.array(ROWS["name"])], ["id"])
    found = acep.match(table.append_column("dev", inner), QUERY, id="dev.id")
    assert found.events(longest(found))["name"].to_pylist() == NAMES
    found = acep.match(table.to_pandas().set_index("name"), QUERY, id="name")
    assert list(found.events(longest(found)).index) == NAMES
    categories = table.to_pandas().astype({"name": "category"})
    found = acep.match(categories, QUERY, id="name")
    assert list(found.events(longest(found))["name"]) == NAMES


def test_other_names_for_the_columns_that_are_added() -> None:
    frame = pd.DataFrame(ROWS | {"Variable": 1, "match": 2})
    found = acep.match(frame, QUERY)
    with pytest.raises(acep.DataError, match="a column `variable` already") as bad:
        found.events(found[0])
    assert bad.value.hint == 'variable="another name"'
    with pytest.raises(acep.DataError, match="a column `match` already"):
        found.events(variable="var")
    rows = found.events(variable="var", number="no")
    assert list(rows.columns[-2:]) == ["no", "var"]
    with pytest.raises(acep.DataError, match="already"):
        found.events(variable="same", number="same")


# Events that are not there -------------------------------------------------------------------------


def test_rows_that_were_not_kept() -> None:
    table = pa.table(ROWS).sort_by("ts")
    matcher = acep.Matcher(QUERY)
    first, second = matcher.push(table.slice(0, 3)), matcher.push(table.slice(3))
    rest = matcher.finish()
    streamed = next(some for some in (rest, second, first) if len(some))
    with pytest.raises(acep.QueryError, match="were not kept") as bad:
        streamed.events()
    assert bad.value.hint is not None
    assert "found.events(match, frame)" in bad.value.hint
    whole = acep.match(table, QUERY)
    assert streamed.events(None, table).equals(whole[-len(streamed) :].events(None, table.to_pylist()))
    with pytest.raises(acep.DataError, match="not the events that were matched"):
        streamed.events(streamed[-1], table.slice(3))
    with pytest.raises(acep.DataError, match="there are 3 rows, and 6 events"):
        streamed.events(streamed[-1], table.slice(0, 3))
    for once in (table.to_reader(), pl.from_arrow(table).lazy()):
        found = acep.match(once, QUERY)
        with pytest.raises(acep.DataError, match="read only once"):
            found.events()
        assert found.events(longest(found), table)["name"].to_pylist() == NAMES


def test_matches_that_travel_leave_the_events_behind() -> None:
    frame = pd.DataFrame(ROWS | {"load": ["x" * 100_000] * 6})
    found = acep.match(frame, QUERY)
    data = pickle.dumps(found)
    assert len(data) < 100_000
    again = pickle.loads(data)  # noqa: S301 - these bytes are our own
    assert again == found
    with pytest.raises(acep.QueryError, match="were not kept"):
        again.events(again[0])
    assert again.events(again[0], frame).equals(found.events(found[0]))
    assert copy.copy(found)[1:].events().equals(found[1:].events())
    with pytest.raises(acep.QueryError, match="were not kept"):
        copy.deepcopy(found).events()


def test_matches_keep_the_frame_itself_and_no_copy() -> None:
    frame = pd.DataFrame(ROWS)
    found = acep.match(frame, QUERY)
    assert found.rows is not None
    assert found.rows.rows is frame
    held = weakref.ref(frame)
    del frame
    assert held() is not None
    del found
    assert held() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.sort_values("name", ascending=False, inplace=True),
        lambda frame: frame.sort_values("name", ascending=False, inplace=True, ignore_index=True),
        lambda frame: frame.drop(index=0, inplace=True),
        lambda frame: frame.reset_index(drop=True, inplace=True),
        lambda frame: frame.__setitem__("ts", 7),
        lambda frame: frame.drop(columns="ts", inplace=True),
    ],
)
def test_a_pandas_frame_whose_rows_have_changed_is_refused(change: Callable[[Any], Any]) -> None:
    frame = pd.DataFrame(ROWS)
    found = acep.match(frame, QUERY)
    frame["more"] = 1  # this changes no row
    assert "more" in found.events(longest(found))
    change(frame)
    with pytest.raises(acep.DataError, match="not the events that were matched"):
        found.events(longest(found))


def test_other_forms_give_the_rows_that_were_matched_whatever_happens_to_them() -> None:
    lists = {name: list(values) for name, values in ROWS.items()}
    found = acep.match(lists, QUERY)
    lists["name"].reverse()
    assert found.events(longest(found))["name"].to_pylist() == NAMES
    frame = pl.DataFrame(ROWS)
    found = acep.match(frame, QUERY)
    frame[2, "name"] = "other"
    frame.extend(frame)
    assert list(found.events(longest(found))["name"]) == NAMES


def test_ids_that_are_not_certain() -> None:
    found = acep.match(ROWS, QUERY, id="name")
    with pytest.raises(acep.DataError, match="event 'r' of column `name` is not there"):
        found.events(longest(found), pa.table(ROWS).slice(3))
    twice = pa.concat_tables([pa.table(ROWS)] * 2)
    with pytest.raises(acep.DataError, match="there more than once"):
        found.events(longest(found), twice)
    with pytest.raises(acep.DataError, match="there is no column `name`"):
        found.events(longest(found), pa.table(ROWS).drop_columns(["name"]))
    nulls = pa.table(ROWS | {"name": [None, "q", "r", "s", "t", "v"]})
    with pytest.raises(acep.DataError, match="event 'p' of column `name` is not there"):
        found.events(longest(found), nulls)
    numbers = pa.table(ROWS | {"name": range(6)})
    with pytest.raises(acep.DataError, match="is not there"):
        found.events(longest(found), numbers)


def test_arguments_that_are_no_matches_and_queries_over_queries() -> None:
    found = acep.match(ROWS, QUERY)
    for bad in (0, "a", acep.Match({}, 1, 2, 0, {"a": (0,)}, 2)):
        with pytest.raises(acep.QueryError, match="takes one of these matches"):
            found.events(bad)  # type: ignore[arg-type]
    with pytest.raises(acep.QueryError, match="is the name of a column"):
        found.events(found[0], variable=3)  # type: ignore[arg-type]
    with pytest.raises(acep.DataError, match="read_events"):
        found.events(found[0], "events.csv")
    composed = acep.match(ROWS, "FROM (PATTERN SEQ(A a, B b) WITHIN 5) AS T PATTERN T t", id="name")
    with pytest.raises(acep.QueryError, match="binds matches of its inner queries"):
        composed.events(composed[0])
    assert composed.to_arrow()["bindings"].to_pylist()[0] == [("t", [0])]


# Random queries ------------------------------------------------------------------------------------


def by_bindings(found: acep.Matches, rows: list[dict[str, Any]], id: str | None) -> list[Counter[Any]]:
    """The rows and variables of each match, by its bindings alone."""
    of = {(number if id is None else row[id]): repr(row) for number, row in enumerate(rows)}
    return [Counter((of[i], var) for var, ids in match.bindings.items() for i in ids) for match in found]


def without(row: dict[str, Any], *names: str) -> str:
    return repr({name: value for name, value in row.items() if name not in names})


def complaint_of_rows(engine: str, seen: Counter[str], case: Case) -> str:
    """Say where the rows of matches are not those that the bindings name; count what occurred."""
    rows = [row | {"id": f"event {number * 7 % 1_000_003}"} for number, row in enumerate(case.table().to_pylist())]
    id = "id" if case.seed % 2 else case.stream.get("id")
    table = pa.Table.from_pylist(rows, case.table().schema)
    make = FORMS["polars" if case.seed % 3 == 0 else "table"][0]
    matches = acep.match(make(table), case.query(), engine=engine, **case.stream | {"id": id})[:50]
    wanted = by_bindings(matches, rows, id)
    bound: list[Counter[Any]] = [Counter() for _ in matches]
    for row in plain(matches.events()):
        bound[row["match"]][without(row, "match", "variable"), row["variable"]] += 1
    if bound != wanted:
        return difference(bound, wanted, ("events()", "bindings"))
    for match, wanted_of_match in list(zip(matches, wanted, strict=True))[:3]:
        events = plain(matches.events(match))
        assert Counter((without(row, "variable"), row["variable"]) for row in events) == wanted_of_match
        assert [row["ts"] for row in events] == sorted(row["ts"] for row in events)
        assert (events[0]["ts"], events[-1]["ts"]) == (match.start, match.end)
        seen["several events of a variable"] += max(map(len, match.bindings.values())) > 1
    seen["matches"] += len(matches)
    seen["ids"] += id is not None and len(matches) > 0
    return ""


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_rows_are_those_of_the_bindings(engine: str, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(250)):
        case: Case = random_case(seed)
        if not case.query().sources:
            fail_if_wrong(case, partial(complaint_of_rows, engine, seen))
    cases.expect(seen, "matches", "several events of a variable", "ids", least=6)


def test_positions_are_those_of_the_frame_for_a_matcher_in_any_order() -> None:
    rng = np.random.default_rng(3)
    order = rng.permutation(200)
    table = pa.table({"ts": order, "type": rng.choice(["A", "B"], 200), "name": [f"n{i}" for i in range(200)]})
    matcher = acep.Matcher("PATTERN SEQ(A a, B b) WITHIN 4", lateness=1000)
    parts = [matcher.push(table.slice(at, 50)) for at in range(0, 200, 50)] + [matcher.finish()]
    given = [plain(some.events(None, table)) for some in parts]
    whole = acep.match(table, "PATTERN SEQ(A a, B b) WITHIN 4")
    names = [row["name"] for rows in given for row in rows]
    assert names == whole.events()["name"].to_pylist()
    assert len(whole) > 100


def test_a_match_of_another_result_is_refused() -> None:
    rows = {"ts": [1, 2], "type": ["a", "b"], "user": ["u", "u"]}
    keyed, plain = (acep.match(rows, f"PATTERN SEQ(a x, b y) {where}") for where in ("WHERE [user]", ""))
    other = acep.match({name: values[::-1] for name, values in rows.items()}, "PATTERN SEQ(a x, b y)")
    several = acep.match(rows, "PATTERN SEQ(a x, b y) RETURN y.ts AS t")
    for found, match in ((keyed, plain[0]), (plain, keyed[0]), (plain, other[0]), (plain, several[0])):
        with pytest.raises(acep.QueryError, match="it is of another result"):
            found.events(match)
    assert plain.events(plain[0])["variable"].to_pylist() == ["x", "y"]
