"""Events that come twice are refused or left out, by one rule for whole tables and streams in one process."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import acep
from acep.cli import main
from acep.errors import DataError, QueryError
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong_on_rows

QUERY = "PATTERN SEQ(a x, b y) WHERE [k] AND y.v > x.v WITHIN 9"
ORDERED = "PATTERN SEQ(a x, b y) WHERE partition_contiguity(x, y) { [k] } WITHIN 3 EVENTS"
Row = dict[str, Any]


def row(id: Any, ts: int, type: str = "a", **more: Any) -> Row:
    return {"id": id, "ts": ts, "type": type, "k": 1, "v": ts, **more}


FOUR = [row(1, 1), row(2, 2, "b"), row(3, 3), row(4, 4, "b")]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def found_in(matches: Any) -> list[tuple[Any, ...]]:
    return [(*one.bindings.values(), one.start, one.end) for one in matches]


# One table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [[1, 2, 3, 4], list("pqrs")])
def test_a_table_that_was_delivered_twice(ids: list[Any]) -> None:
    once = [one | {"id": id} for one, id in zip(FOUR, ids, strict=True)]
    want = acep.match(table(once), QUERY, id="id")
    with pytest.raises(DataError, match=rf"row 4 \(rows count from 0\): the id {ids[0]!r} of column `id` came before"):
        acep.match(table(once + once), QUERY, id="id")
    got = acep.match(table(once + once), QUERY, id="id", duplicates="drop")
    assert found_in(got) == found_in(want)
    assert (got.report.duplicates, got.report.events, got.report.exact) == (4, 4, True)
    assert "4 duplicates left out" in str(got.report)
    assert len(acep.match(table(once + once), QUERY)) == 4 * len(want)  # without ids every row is an event


@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count", "compressed", "exists", "batches"])
def test_each_output_is_without_them(output: str) -> None:
    options: dict[str, Any] = {"output": output, "id": "id"}
    with pytest.raises(DataError, match="the id 1 of column `id` came before"):
        list(acep.match(table(FOUR + FOUR), QUERY, **options))
    want = acep.match(table(FOUR), QUERY, **options)
    got = acep.match(table(FOUR + FOUR[:2]), QUERY, **options, duplicates="drop")
    if output == "compressed":
        assert got.count() == want.count()
    elif output == "batches":
        assert [batch.to_pylist() for batch in got] == [batch.to_pylist() for batch in want]
    else:
        assert got == want
    assert len(acep.match(table(FOUR + FOUR), QUERY, id="id", duplicates="drop", limit=1)) == 1


def test_the_first_row_is_the_event_whatever_the_others_hold() -> None:
    rows = [row(1, 5), row(2, 6, "b"), row(1, 1, "b", v=99), row(2, 9, "b", v=99)]
    got = acep.match(table(rows), QUERY, id="id", duplicates="drop")
    assert found_in(got) == [((1,), (2,), 5, 6)]


def test_the_rows_of_a_match_are_the_first_ones() -> None:
    frame = pd.DataFrame([*FOUR, FOUR[0] | {"v": 77}])
    got = acep.match(frame, QUERY, id="id", duplicates="drop")
    assert got.events(got[0]).v.tolist() == [1, 2]
    matcher = acep.Matcher(QUERY, id="id", lateness=9, duplicates="drop")
    matches = [*matcher.push(frame), *matcher.finish()]
    assert len(matches) == len(got)
    streamed = acep.Matcher(QUERY, id="id", lateness=0, duplicates="drop")
    some = streamed.push(frame)
    assert some.events(some[0], frame).v.tolist() == [1, 2]
    strict = acep.match(frame.iloc[:4], QUERY, id="id")
    with pytest.raises(DataError, match="is there more than once"):
        strict.events(strict[0], frame)


def test_the_files_of_a_match_may_repeat_events(tmp_path: Path) -> None:
    for name, rows in (("1.csv", FOUR), ("2.csv", FOUR)):
        pd.DataFrame(rows).to_csv(tmp_path / name, index=False)
    got = acep.match([tmp_path / "1.csv", tmp_path / "2.csv"], QUERY, id="id", duplicates="drop")
    assert (len(got), got.report.duplicates) == (len(acep.match(table(FOUR), QUERY)), 4)
    assert len(got.events(got[0])) == 2


# The command ----------------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    status = main(["match", QUERY, *args, "--count", "--no-progress"])
    out, err = capsys.readouterr()
    return status, out.strip(), err


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Large files are read in batches, and sorted on disk."""
    if request.param == "large":
        monkeypatch.setattr("acep.events.files.survey.SMALL", 1 << 10)
        monkeypatch.setattr("acep.events.files.disk_sort.RUN", 1 << 12)
    return str(request.param)


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("order", ["as they come", "backwards"])
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_the_command_leaves_them_out_of_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str, form: str
) -> None:
    many = 400
    rows = [row(f"event {n:06}", n, "ab"[n % 2], k=n // 2) for n in range(2 * many)]
    repeated = rows[::7]
    rows = rows[::-1] if order == "backwards" else rows
    frame, path = pd.DataFrame([*rows, *repeated]), str(tmp_path / f"events.{form}")
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    status, out, err = command(capsys, path, "--id", "id", "--duplicates", "drop")
    assert (status, out) == (0, str(many))
    assert f"{len(repeated)} rows were left out, as events with their ids had come before" in err
    status, out, err = command(capsys, path, "--id", "id")
    assert (status, out) == (2, "")
    places = {
        "csv": f"line {2 * many + 2}",
        "jsonl": f"line {2 * many + 1}",
        "parquet": f"row {2 * many} (rows count from 0)",
    }
    assert f"events.{form}`, {places[form]}: the id 'event 000000' of column `id` came before" in err
    status, _, err = command(capsys, path, "--duplicates", "drop")
    assert (status, "hint: name --id" in err) == (2, True)


@pytest.mark.usefixtures("size")
def test_the_command_looks_at_ids_that_are_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = '{"ts": %d, "type": "%s", "k": %d, "v": %d, "event": {"id": %d}}\n'
    rows = [line % (n, "ab"[n % 2], n // 2, n, n) for n in range(500)]
    path = tmp_path / "events.jsonl"
    path.write_text("".join([*rows, line % (500, "b", 0, 99, 7)]))
    status, _, err = command(capsys, str(path), "--id", "event.id")
    assert (status, "events.jsonl`, line 501: the id 7 of column `event.id` came before" in err) == (2, True)
    status, out, err = command(capsys, str(path), "--id", "event.id", "--duplicates", "drop")
    assert (status, out) == (0, "250")
    assert "1 row was left out" in err


# Streams --------------------------------------------------------------------------------------------

WAYS: list[dict[str, Any]] = [
    {"lateness": 5},
    {"lateness": 5, "speculation": 2},
    {"lateness": 5, "speculation": "inf"},
    {"lateness": "inf"},
    {"lateness": 5, "engine": "reference"},
    {"lateness": 5, "dynamic": True},
]


@pytest.mark.parametrize("way", WAYS)
def test_an_event_comes_again_in_a_later_push(way: dict[str, Any]) -> None:
    want = acep.Matcher(QUERY, id="id", **way)
    expected = [*want.push(table(FOUR)), *want.finish()]
    strict = acep.Matcher(QUERY, id="id", **way)
    strict.push(table(FOUR[:3]))
    before = strict.snapshot()
    with pytest.raises(DataError, match=r"row 4 \(rows count from 0\): the id 2 of column `id` came before"):
        strict.push(table([FOUR[3], FOUR[1]]))
    assert strict.snapshot() == before  # nothing was taken in
    strict.push(table(FOUR[3:]))
    loose = acep.Matcher(QUERY, id="id", duplicates="drop", **way)
    given = [*loose.push(table(FOUR[:3]))]
    again = acep.Matcher(QUERY, id="id", duplicates="drop", **way)
    again.restore(loose.snapshot())
    given += [*again.push(table([FOUR[1], FOUR[3], FOUR[0], FOUR[3]])), *again.finish()]
    assert sorted(found_in(given)) == sorted(found_in(expected))
    assert (again.report.duplicates, again.report.events) == (3, 4)


def test_what_is_final_is_forgotten_and_what_is_late_is_late() -> None:
    matcher = acep.Matcher(QUERY, id="id", lateness=5)
    matcher.push(table([row(1, 1), row(2, 20, "b", v=99)]))
    matcher.push(table([row(1, 1)]))
    assert matcher.report.late == 1  # no duplicate: its time is over
    matcher.push(table([row(1, 16)]))  # another event
    with pytest.raises(DataError, match="the id 1 "):
        matcher.push(table([row(1, 22, "b")]))
    assert len(matcher.finish()) == 1  # the events at 16 and 20
    assert matcher.report.events == 3
    drop = acep.Matcher(QUERY, id="id", lateness=5, duplicates="drop")
    drop.push(table([row(1, 1), row(2, 20)]))
    drop.push(table([row(1, 1), row(2, 90)]))  # a duplicate moves no time
    drop.push(table([row(3, 16)]))
    assert (drop.report.late, drop.report.duplicates) == (1, 1)


def test_a_time_that_is_said_makes_ids_forgotten() -> None:
    matcher = acep.Matcher(QUERY, id="id", lateness="inf")
    matcher.push(table([row(1, 1), row(2, 2)]))
    matcher.advance(1)
    matcher.push(table([row(1, 5)]))
    with pytest.raises(DataError, match="the id 2 "):
        matcher.push(table([row(2, 5)]))


NUMBERED = {"seq": "n", "seq_gaps": True}
BOUNDED: list[dict[str, Any]] = [
    {},
    {"lateness": 5},
    {"lateness": 5, "speculation": 2},
    {"lateness": 5, "speculation": "inf"},
    {"lateness": 5, "dynamic": True},
    {"lateness": "inf"},
    NUMBERED,
    {**NUMBERED, "duplicates": "drop"},
    {**NUMBERED, "lateness": 5},
    {**NUMBERED, "lateness": "inf"},
]


def ids_after(rows: int, way: dict[str, Any]) -> int:
    """Return how many ids a Matcher knows after so many rows that all come in order, one for each time."""
    matcher = acep.Matcher(QUERY, id="id", **way)
    for start in range(0, rows, 1000):
        n = list(range(start, start + 1000))
        letters = ["ab"[i % 2] for i in n]
        matcher.push(pa.table({"id": n, "ts": n, "type": letters, "k": n, "v": n, "n": n}))
        if way.get("lateness") == "inf":
            matcher.advance(start + 995)
    tables = matcher._tables
    seen = tables.seen if tables.arrivals is None else tables.arrivals._seen
    assert seen is not None
    return len(seen)


@pytest.mark.parametrize("way", BOUNDED)
def test_as_many_ids_are_known_however_long_a_stream_is(way: dict[str, Any]) -> None:
    few, more, most = (ids_after(rows, way) for rows in (10_000, 20_000, 40_000))
    assert 0 < few == more == most < 2 * 4096


def test_the_id_of_a_final_event_may_come_with_another_number() -> None:
    rows = [one | {"n": n} for n, one in enumerate(FOUR)]
    matcher = acep.Matcher(QUERY, id="id", **NUMBERED)
    matcher.push(table(rows))
    with pytest.raises(DataError, match="the id 4 of column `id` came before"):
        matcher.push(table([row(4, 5) | {"n": 4}]))  # events at its time may still come
    matcher.push(table([row(1, 5) | {"n": 4}, row(9, 6, "b") | {"n": 5}]))
    assert matcher.report.events == 6


def test_without_lateness_the_events_of_the_latest_time_may_come_again() -> None:
    matcher = acep.Matcher(QUERY, id="id")
    matcher.push(table(FOUR))
    with pytest.raises(DataError, match=r"row 4 \(rows count from 0\): the id 4 "):
        matcher.push(table([FOUR[3]]))
    matcher.push(table([row(3, 5)]))  # that of time 3 is final
    drop = acep.Matcher(QUERY, id="id", duplicates="drop")
    given = [*drop.push(table(FOUR))]
    other = acep.Matcher(QUERY, id="id", duplicates="drop")
    other.restore(drop.snapshot())
    given += [*other.push(table([FOUR[3]])), *other.push(table([FOUR[3], row(5, 5, "b")]))]
    assert (other.report.duplicates, other.report.events) == (2, 5)
    assert sorted(found_in(given)) == sorted(found_in(acep.match(table([*FOUR, row(5, 5, "b")]), QUERY, id="id")))


@pytest.mark.parametrize("blocks", [False, True])
def test_a_push_that_is_refused_for_its_order_leaves_no_ids_behind(blocks: bool) -> None:
    matcher = acep.Matcher(QUERY, id="id")
    matcher.push(table([row(1, 5)]))
    wrong = table([row(2, 3)])
    with pytest.raises(DataError, match="is older than"):
        list(matcher.blocks(wrong)) if blocks else matcher.push(wrong)
    right = table([row(2, 5, "b", v=9)])
    found = [one for some in matcher.blocks(right) for one in some] if blocks else matcher.push(right)
    assert found_in(found) == [((1,), (2,), 5, 5)]


def test_where_numbers_count_the_events_they_name_them() -> None:
    rows = [one | {"n": n} for n, one in enumerate(FOUR)]
    for ids in ({}, {"id": "id"}):
        strict = acep.Matcher(QUERY, seq="n", seq_gaps=True, **ids)
        strict.push(table(rows[:2]))
        with pytest.raises(DataError, match="number 1 of column `n` comes twice"):
            strict.push(table(rows[1:]))
        matcher = acep.Matcher(QUERY, seq="n", seq_gaps=True, duplicates="drop", **ids)
        given = [*matcher.push(table([rows[0], rows[2], rows[2]]))]  # number 1 is missing, and 2 is held
        other = acep.Matcher(QUERY, seq="n", seq_gaps=True, duplicates="drop", **ids)
        other.restore(matcher.snapshot())
        given += [*other.push(table([rows[2], rows[0], rows[1], rows[1]])), *other.push(table([rows[0], rows[3]]))]
        assert sorted(one.end for one in given) == [2, 4, 4]
        assert (other.report.duplicates, other.report.events, other.gap) == (5, 4, None)
    twice = acep.Matcher(QUERY, seq="n", seq_gaps=True, id="id", duplicates="drop", lateness=9)
    twice.push(table(rows[:2]))
    with pytest.raises(DataError, match="the id 2 of column `id` came before"):
        twice.push(table([rows[2] | {"id": 2}]))


def signed(*rows: tuple[int, int, int]) -> pa.Table:
    return table([row(id, ts, "ab"[id % 2], op=op) for id, ts, op in rows])


def test_events_and_retractions_that_come_again() -> None:
    options: dict[str, Any] = {"id": "id", "op": "op", "lateness": 9, "speculation": "inf"}
    strict = acep.Matcher(QUERY, **options)
    strict.push(signed((2, 1, 1)))
    with pytest.raises(DataError, match="the event with id 2 comes twice"):
        strict.push(signed((2, 1, 1)))
    with pytest.raises(DataError, match="retracted twice"):
        strict.push(signed((3, 3, -1), (3, 3, -1)))
    loose = acep.Matcher(QUERY, **options, duplicates="drop")
    given = [*loose.push(signed((2, 1, 1), (2, 1, 1), (3, 3, 1)))]
    given += loose.push(signed((3, 3, 1), (5, 4, -1), (5, 4, -1), (2, 1, 1)))
    assert [(one.op, one.start, one.end) for one in given] == [(1, 1, 3)]
    assert (loose.report.duplicates, loose.held) == (4, 2)
    again = acep.Matcher(QUERY, **options, duplicates="drop")
    again.restore(loose.snapshot())
    back = again.push(signed((3, 3, -1)))
    anew = again.push(signed((3, 3, 1), (3, 3, 1)))
    assert [(one.op, one.end) for one in (*back, *anew)] == [(-1, 3), (1, 3)]
    assert again.report.duplicates == 5


def test_an_empty_push_and_a_push_of_duplicates_alone() -> None:
    for way in ({}, {"lateness": 3}, {"lateness": 3, "speculation": "inf"}):
        matcher = acep.Matcher(QUERY, id="id", duplicates="drop", **way)
        assert len(matcher.push(table(FOUR[:1]))) == 0
        assert len(matcher.push(table(FOUR[:1]))) == 0
        assert len(matcher.push(table(FOUR[:1] * 3))) == 0
        assert matcher.report.duplicates == 4
        assert len(matcher.push(table(FOUR[1:]))) + len(matcher.finish()) == 3


# What cannot be -------------------------------------------------------------------------------------


def test_options_that_say_nothing() -> None:
    with pytest.raises(QueryError, match="says nothing of events that come twice") as told:
        acep.Matcher(QUERY, id="id", duplicates="keep")
    assert told.value.hint == '"refuse" or "drop"'
    for function in (lambda: acep.Matcher(QUERY, duplicates="drop"), lambda: acep.match([], QUERY, duplicates="drop")):
        with pytest.raises(QueryError, match="knows events by their ids") as told:
            function()
        assert told.value.hint == "name id="
    acep.Matcher(QUERY, duplicates="refuse")


def test_a_state_whose_ids_are_damaged_is_refused() -> None:
    from acep.storage.snapshot import seal, unseal

    for way in ({}, {"lateness": 3}):
        matcher = acep.Matcher(QUERY, id="id", **way)
        matcher.push(table(FOUR))
        print_ = matcher._tables.fingerprint
        payload = unseal(matcher.snapshot(), print_)
        where = payload["seen"] if not way else payload["arrivals"]
        name = "ids" if not way else "seen"
        for wrong in (b"x", 3, None, pa.BufferOutputStream().getvalue().to_pybytes() + b"\1"):
            where[name] = wrong
            with pytest.raises(acep.SnapshotError):
                acep.Matcher(QUERY, id="id", **way).restore(seal(payload, print_))
        del where[name]
        if not way:
            del payload["seen"]
        old = acep.Matcher(QUERY, id="id", **way)
        old.restore(seal(payload, print_))  # those of before have none
        old.push(table([row(9, 9)]))


# Random streams -------------------------------------------------------------------------------------


def deliver(rng: random.Random, rows: list[Row]) -> list[list[Row]]:
    """Cut rows into pushes, in some disorder and some of them several times."""
    came = [(at + rng.uniform(0, 6), one) for at, one in enumerate(rows) for _ in range(rng.choice([1, 1, 2, 3]))]
    came.sort(key=lambda pair: pair[0])
    pushes: list[list[Row]] = [[]]
    for _, one in came:
        pushes[-1].append(one)
        if rng.random() < 0.4:
            pushes.append([])
    return [push for push in pushes if push]


def test_a_stream_whose_events_come_again_gives_what_it_gives_without(cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(200)):
        rng = random.Random(seed)
        rows = [
            row(f"id {n}", ts, rng.choice("ab"), k=rng.randrange(2))
            for n, ts in enumerate(sorted(rng.randrange(40) for _ in range(rng.randrange(2, 25))))
        ]
        query = rng.choice([QUERY, ORDERED])
        way = rng.choice([{}, {"speculation": 3}, {"speculation": "inf"}])
        title = f"seed {seed}, {way}\n{query}"
        pushed_rows = [{"push": number, **one} for number, push in enumerate(deliver(rng, rows)) for one in push]
        fail_if_wrong_on_rows(pushed_rows, title, partial(complaint_of_pushes, query, way, seen))
    cases.expect(seen, "repeated", "matches", "several pushes")


def complaint_of_pushes(query: str, way: dict[str, Any], seen: Counter[str], pushed_rows: list[Row]) -> str:
    """Say how what is given of events, some of which come again, differs from the matches of the events alone."""
    matcher = acep.Matcher(query, id="id", lateness="inf", duplicates="drop", **way)
    pushes = [[*push] for _, push in groupby(pushed_rows, itemgetter("push"))]
    net, first_rows = Counter[tuple[Any, ...]](), dict[str, Row]()
    for push in pushes:
        for one in push:
            first_rows.setdefault(one["id"], one)
        for match in matcher.push(table(push)):
            net[(*match.bindings.values(), match.end)] += match.op if way else 1
    for match in matcher.finish():
        net[(*match.bindings.values(), match.end)] += match.op if way else 1
    # Events of one time stand in the order in which they first came.
    rows = [*first_rows.values()]
    if not rows:
        return ""
    wanted = Counter((*one.bindings.values(), one.end) for one in acep.match(table(rows), query, id="id"))
    n_repeated = sum(map(len, pushes)) - len(rows)
    seen["repeated"] += n_repeated > 0
    seen["matches"] += len(wanted) > 0
    seen["several pushes"] += len(pushes) > 1
    complaint = difference(dict(+net), dict(wanted), ("given", "without what came again"))
    return complaint or difference(matcher.report.duplicates, n_repeated, ("duplicates counted", "came again"))
