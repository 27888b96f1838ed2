"""Match points and bundles of an engine are columns: no object is made until it is read, and each access gives what a
list of the objects gives."""

from __future__ import annotations

import copy
import io
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep import Bundle, Bundles, Point, Points
from acep.matches import answer_columns
from acep.matches.answer_columns import columns_of, values_of
from acep.matches.arrow import groups_table
from acep.native.compiled import native
from acep.output import writing
from acep.output.writing import group_writer
from tests.case_counts import CASES
from tests.thinned import thinned_product

ENGINES = ("reference",) if native() is None else ("native", "reference")
ROWS = 400
TICKS = {
    "integers": pa.int64(),
    "dates": pa.date32(),
    "times": pa.timestamp("ms"),
    "times with a zone": pa.timestamp("s", "UTC"),
    "nanoseconds": pa.timestamp("ns"),
    "far times": pa.timestamp("s"),
    "far times with a zone": pa.timestamp("s", "UTC"),
}
FAR = 400_000_000_000
NUMBERS = [number % 3 for number in range(ROWS)]
KEYS: dict[str, pa.Array | None] = {
    "no key": None,
    "texts": pa.array([["u", "v w", '=a"b'][number] for number in NUMBERS]),
    "integers": pa.array([number - 1 for number in NUMBERS]),
    "doubles": pa.array([[-2.5, 0.0, 1.5][number] for number in NUMBERS]),
    "truth values": pa.array([number > 0 for number in NUMBERS]),
    "decimals": pa.array([f"{number}.50" for number in NUMBERS]).cast(pa.decimal128(30, 4)),
    "durations": pa.array(NUMBERS, pa.duration("ms")),
    "dates": pa.array(NUMBERS, pa.int32()).cast(pa.date32()),
    "times with a zone": pa.array(NUMBERS, pa.timestamp("us", "Europe/Rome")),
    "far times": pa.array([number * FAR for number in NUMBERS], pa.timestamp("s", "UTC")),
}


def events(ticks: str = "integers", key: str = "texts", rows: int = ROWS) -> pa.Table:
    random = Random(rows)
    first = FAR if ticks.startswith("far") else 0
    times = pa.array([first + row // 2 for row in range(rows)], pa.int32() if ticks == "dates" else pa.int64())
    columns = {"ts": times.cast(TICKS[ticks]), "type": pa.array(random.choices("abc", k=rows))}
    columns["x"] = pa.array([random.random() for _ in range(rows)])
    if (values := KEYS[key]) is not None:
        columns["k"] = values.take(pa.array([row % len(values) for row in range(rows)]))
    return pa.table(columns)


def query(ticks: str = "integers", key: str = "texts", weights: dict[str, float] | None = None) -> acep.Query:
    unit = {"integers": "", "dates": "d", "times": "ms", "nanoseconds": "ns"}.get(ticks, "s")
    tied = "" if key == "no key" else "[k] AND"
    text = f"PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) {{ {tied} q.x > p.x }} WITHIN 6 {unit}"
    return acep.parse(text, errors=1 if weights else 0, weights=weights or {})


WEIGHTS = ({}, {"p": 0.5, "q": 0.7})


def points_one_by_one(matches: acep.Matches) -> list[Point]:
    """The match points, by their definition: of matches in the order in which they end."""
    points: dict[Any, Point] = {}
    for match in matches:
        place = (str(match.key), match.end)
        best = min(match.error, points[place].best) if place in points else match.error
        points[place] = Point(points[place].key if place in points else match.key, match.end, best)
    return list(points.values())


def bundles_one_by_one(matches: acep.Matches, counts: bool) -> list[Bundle]:
    bundles: dict[Any, list[acep.Match]] = {}
    for match in matches:
        bundles.setdefault((str(match.key), match.bundle), []).append(match)
    first_rows = sorted(bundles.values(), key=lambda bundle: bundle[0].bundle)
    return [
        Bundle(
            bundle[0].key,
            bundle[0].bundle,
            bundle[-1].end,
            len(bundle) if counts else None,
            min(match.error for match in bundle),
        )
        for bundle in first_rows
    ]


def by_text(answers: Sequence[Any]) -> list[str]:
    """The answers as sorted texts: of one time they come in any order."""
    return sorted(map(repr, answers))


@pytest.mark.parametrize(
    ("ticks_and_key", "weights", "engine"),
    thinned_product(
        [*((ticks, "texts") for ticks in TICKS), *(("times", key) for key in KEYS)], WEIGHTS, ENGINES, every=3
    ),
)
def test_they_are_those_of_the_matches(ticks_and_key: tuple[str, str], weights: dict[str, float], engine: str) -> None:
    ticks, key = ticks_and_key
    table, asked = events(ticks, key, ROWS if engine == "native" else 150), query(ticks, key, weights)
    matches = acep.match(table, asked, engine=engine)
    assert len(matches) > 3
    points = points_one_by_one(matches)
    bundles = {counts: bundles_one_by_one(matches, counts) for counts in (True, False)}
    assert list(matches.points()) == points
    assert [list(matches.bundles(counts=counts)) for counts in (True, False)] == [bundles[True], bundles[False]]
    assert by_text(acep.match(table, asked, engine=engine, output="points")) == by_text(points)
    for counts in (True, False):
        direct = acep.match(table, asked, engine=engine, output="bundles", counts=counts)
        assert by_text(direct) == by_text(bundles[counts])
    kinds = {type(value) for point in matches.points() for value in (point.point, point.best, *point.key.values())}
    assert kinds == {type(value) for point in points for value in (point.point, point.best, *point.key.values())}


def changes() -> Points:
    matcher = acep.Matcher(query(), lateness="inf", speculation="inf", id="id", op="op")
    table = events().append_column("id", pa.array(range(ROWS))).append_column("op", pa.array([1] * ROWS))
    first = matcher.push(table.slice(0, 300)).points()
    back = table.slice(0, 300).set_column(table.num_columns - 1, "op", pa.array([-1] * 300))
    return first + matcher.push(pa.concat_tables([back.slice(7, 90), table.slice(300)])).points()


ANSWERS: dict[str, Callable[[], Points | Bundles]] = {
    "points": lambda: acep.match(events(), query(), output="points"),
    "points with errors": lambda: acep.match(events(), query(weights=WEIGHTS[1]), output="points"),
    "far points": lambda: acep.match(events(far := "far times with a zone"), query(far), output="points"),
    "bundles": lambda: acep.match(events(), query(), output="bundles"),
    "far bundles": lambda: acep.match(events("times", "far times"), query("times", "far times"), output="bundles"),
    "bundles without counts": lambda: acep.match(events(), query(), output="bundles", counts=False),
    "points of matches": lambda: acep.match(events(), query()).points(),
    "changes": changes,
    "no points": lambda: acep.match(events(), acep.parse("PATTERN SEQ(a p, z q) WHERE [k] WITHIN 5"), output="points"),
    "no bundles": lambda: acep.match(events().slice(0, 0), query(), output="bundles"),
    "no events": lambda: acep.match([], query(), output="points"),
    "a sum": lambda: sum((acep.match(events(rows=rows), query(), output="points") for rows in (90, 9, 60)), Points()),
    "a sum of two queries": lambda: (
        acep.match(events(), query(), output="points")
        + acep.match(events("times", "no key"), query("times", "no key"), output="points")
    ),
}


SLICES = (
    *(slice(2), slice(None, None, -1), slice(-3, None), slice(1, None, 3)),
    *(slice(5, 2), slice(9, 99), slice(0)),
)


@pytest.mark.parametrize("name", ANSWERS)
def test_each_access_gives_what_a_list_gives(name: str) -> None:
    answers = ANSWERS[name]()
    listed = list(answers)
    plain = type(answers)(listed, answers.report)
    assert isinstance(answers, Points | Bundles)
    assert columns_of(plain) is None
    assert (columns_of(answers) is None) is (name == "a sum of two queries")
    assert (len(answers), bool(answers)) == (len(listed), bool(listed))
    assert bool(answers) is not name.startswith("no ")
    assert [*reversed(answers)] == listed[::-1]
    assert repr(answers) == repr(plain)
    assert answers._repr_html_() == plain._repr_html_()
    assert answers == listed == answers == plain == answers
    assert answers != [*listed, listed[0] if listed else 5]
    assert answers != tuple(listed)
    for rows in SLICES:
        part = answers[rows]
        assert type(part) is type(answers)
        assert (part == listed[rows], len(part), part.report) == (True, len(listed[rows]), answers.report)
        assert repr(part) == repr(type(answers)(listed[rows], answers.report))
        assert part + answers == listed[rows] + listed
    for total in (answers + listed, listed + answers, answers + plain, plain + answers, answers + answers):
        assert (type(total), total, total[len(listed) :]) == (type(answers), listed + listed, listed)
    for place in (len(listed), -len(listed) - 1):
        with pytest.raises(IndexError):
            answers[place]
    for place in (0, len(listed) // 2, -1) if listed else ():
        assert answers[place] == listed[place]
        assert answers[np.int64(place)] == listed[place]
        assert (str(answers[place]), repr(answers[place])) == (str(listed[place]), repr(listed[place]))
        assert answers[place]._repr_html_() == listed[place]._repr_html_()
        assert listed[place] in answers
        assert answers.index(listed[place]) == listed.index(listed[place])
        assert answers.count(listed[place]) == 1
    with pytest.raises(ValueError, match="not in list"):
        answers.index(Point({}, -1, 0))
    for again in (copy.copy(answers), copy.deepcopy(answers), pickle.loads(pickle.dumps(answers))):  # noqa: S301
        assert (type(again), again, again.report) == (type(answers), listed, answers.report)
        assert by_text(again) == by_text(listed)
    fields = ("point", "change") if isinstance(answers, Points) else ("start", "end", "matches")
    for field in ("key", "best", *fields):
        assert values_of(answers, field) == [getattr(answer, field) for answer in listed]


def test_they_become_frames_as_lists_do() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for name in ("points", "bundles"):
        answers = ANSWERS[name]()
        assert pandas.DataFrame(answers).equals(pandas.DataFrame(list(answers)))
        assert polars.DataFrame(answers).equals(polars.DataFrame(list(answers)))


# Work ------------------------------------------------------------------------------------------------


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many match points and bundles have been made, and how many ticks of theirs became times."""
    seen = Counter[str]()

    def count(answer_type: Any) -> None:
        make = answer_type.__init__

        def counting(self: Any, *values: Any) -> None:
            seen[answer_type.__name__] += 1
            make(self, *values)

        monkeypatch.setattr(answer_type, "__init__", counting)

    count(Point)
    count(Bundle)
    convert = answer_columns.ticks_to_input
    monkeypatch.setattr(
        answer_columns, "ticks_to_input", lambda ticks, schema: seen.update(ticks=len(ticks)) or convert(ticks, schema)
    )
    return seen


@pytest.mark.parametrize("name", [name for name in ANSWERS if not name.startswith("no ")])
def test_no_object_is_made_until_it_is_read(name: str, objects: Counter[str]) -> None:
    answers = ANSWERS[name]()
    n_answers = len(answers)
    assert n_answers > 12
    total = answers + answers + answers[3:]
    assert (bool(answers), len(total), len(answers[::-2]), answers.exact) == (
        True,
        3 * n_answers - 3,
        -(-n_answers // 2),
        True,
    )
    assert answers != [5]
    if name != "a sum of two queries":  # whose parts are columns, but not their sum
        assert sum(objects.values()) == 0
        assert "..." in repr(answers)
        assert 0 < sum(objects[kind] for kind in ("Point", "Bundle")) <= 20
    objects.clear()
    kind = type(answers).__name__.removesuffix("s")
    assert answers[0] == next(iter(answers[:1]))
    assert objects[kind] == (0 if name == "a sum of two queries" else 2)


def test_making_them_is_linear(objects: Counter[str]) -> None:
    for name, n_ticks in (("points", 1), ("bundles", 2)):
        answers = ANSWERS[name]()
        objects.clear()
        listed = list(answers)
        kind = type(answers).__name__.removesuffix("s")
        assert objects == {kind: len(listed), "ticks": n_ticks * len(listed)}
        objects.clear()
        assert answers.index(listed[-1]) == len(listed) - 1
        assert [*reversed(answers)] == listed[::-1]
        assert objects[kind] == 2 * len(listed)


def test_a_sum_of_many_pushes_is_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    join = answer_columns.concatenate_groups
    monkeypatch.setattr(answer_columns, "concatenate_groups", lambda parts: sizes.append(len(parts)) or join(parts))
    matcher, table, total = acep.Matcher(query()), events(), Points()
    for begin in range(0, ROWS, 20):
        total += matcher.push(table.slice(begin, 20)).points()
    total += matcher.finish().points()
    assert (len(total) > 20, sizes) == (True, [])
    assert total == list(total) == acep.match(table, query(), output="points")
    assert sizes == [len([size for size in sizes for _ in range(size)])]


@pytest.mark.parametrize("name", ["points", "points with errors", "far points", "bundles", "bundles without counts"])
def test_files_are_written_without_objects(name: str, objects: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FEW", 3)
    answers = ANSWERS[name]()
    columns = columns_of(answers)
    assert columns is not None
    heads = {"points": ["point", "best"], "far points": ["point", "best"], "points with errors": ["point", "best"]}.get(
        name, ["start", "end", "best"] if "without" in name else ["start", "end", "matches", "best"]
    )
    texts, tables = [], []
    for given in (answers, list(answers)):
        objects.clear()
        for form in ("jsonl", "csv"):
            stream = io.StringIO()
            with group_writer(stream, form, heads=heads, schema=columns.schema, keys=columns.keys) as write:
                write(given)
            texts.append(stream.getvalue())
        tables.append(groups_table(given, columns.schema, columns.keys, heads))
        assert objects["Point"] + objects["Bundle"] == 0
    assert texts[:2] == texts[2:]
    assert tables[0] == tables[1]
    assert len(texts[0].splitlines()) == len(answers)


# Groups ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(CASES(40)))
def test_the_outputs_of_commands_are_those_of_the_whole(seed: int) -> None:
    """The parts of a stream that is read in batches, in columns or in records, give the answers of one table."""
    from acep.matching.batch_stream import Passing

    random, names = Random(seed), {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}
    table = events("times", random.choice([*KEYS]))
    asked = query("times", "texts" if "k" in table.column_names else "no key", random.choice(WEIGHTS))
    engine, output = random.choice(ENGINES), random.choice(("points", "bundles"))
    run = Passing(asked, table.schema, ROWS, output=output, counts=True, engine=engine, **names)
    size = random.choice((7, 50, ROWS))
    parts = [part for begin in range(0, ROWS, size) for part in run.push(table.slice(begin, size))]
    whole = acep.match(table, asked, engine=engine, output=output)
    assert [answer for part in (*parts, *run.finish()) for answer in part] == whole
