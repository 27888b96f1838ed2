"""Every case of ``tests/corpus/`` on every engine, whole and event by event, and against the oracle."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError
from acep.pattern import expressions as ex
from acep.pattern.query_arguments import columns_read
from acep.pattern.times import UNITS
from acep.pattern.tree import Query, Within
from acep.pattern.walk import children, with_children
from tests.corpus import Case, CorpusError, Match, load_all
from tests.each_case import by_file
from tests.oracle import oracle
from tests.oracle_values import part_of
from tests.read_queries import read_query

pytestmark = pytest.mark.usefixtures("shared_plans")
ENGINES = ("reference", "auto")
"""The engines that must give every case exactly."""

BEYOND_THE_ORACLE = dict.fromkeys(
    ("predicates:points_and_lengths_of_time", "predicates:texts_among_times"), "it knows no literals of time"
)
"""Cases that the oracle cannot read, besides composed queries, and why."""

RULINGS = {
    # Streams
    "stream-order": "ordered by ts, ties by arrival; ts is an integer or a timestamp, never null",
    "seq-column": "ties by the named column, what remains by arrival",
    "timestamps": "integers of the finest unit; dates are midnights; zones are instants",
    "nan-is-null": "NaN is null",
    "position-in-partition": "the index in the partition before any filter; of the whole stream if strict",
    "event-ids": "row positions, or the id column",
    "null-key": "a null partition attribute: no partition, but a position in the stream",
    # Bindings
    "at-least-one-event": "a match binds something",
    "one-variable-per-event": "an event is bound to at most one variable",
    "unbound-left-out": "variables with no event are left out of the bindings",
    "equal-bindings-one-match": "runs with equal bindings are one match of the least error",
    "letter-is-variable": "in a letter expression the letter is the variable",
    "declared-once": "a variable is declared once, in a choice once in each alternative",
    "choice-walks-one": "a choice walks exactly one item",
    "repetition-walks": "a repetition walks its item some number of times",
    "set-any-order": "a set walks its items in any order, interleaved",
    "empty-iteration-is-none": "an iteration that binds nothing is none",
    "repeated-component": "(A a)+ is A+ a[]",
    "any-type": "ANY binds an event of any type",
    # Errors
    "missing-costs-one": "a missing component costs 1; the budget bounds the sum",
    "weights": "or what `weights` says; infinite: never missing",
    "repetition-misses": "below its least number a repetition misses the rest at the cost of the cheapest iteration",
    "optional-is-free": "an optional iteration that is not walked costs nothing",
    "gap-costs": "under contiguity one event may come in place of each missing component, at the cost of that",
    "gap-surplus": "further events break contiguity, unless `surplus` says what each costs",
    "gap-needed": "what need not be there leaves no place for another event",
    "outside-the-span-is-free": "before the first and after the last bound event only missing letters cost",
    "found-with-less-is-found-with-more": "what is found with k is found with k + 1",
    # Predicates
    "conjuncts": "WHERE is a conjunction; each conjunct must hold",
    "three-valued": "a conjunct holds only when it is true",
    "whole-aggregates": "count(DISTINCT), stddev, stddev_pop of all events bound, in HAVING and RETURN",
    "regexp": "regexp_like finds a pattern of RE2 anywhere in a text",
    "regexp-extract": "regexp_extract gives what a group matches at the first place; null without a match",
    "networks": "ip_in tells whether an address is in a network; null for what is no address",
    "cast": "CAST to integer, float, text or boolean; null if the value does not fit",
    "dropped-conjunct": "a conjunct that mentions an unbound variable is dropped whole",
    "equality-closure": "equalities, in any of their spellings, are closed before that",
    "kleene-each": "plain a.x and a[i].x mean each bound event",
    "kleene-all-combinations": "several such variables: all combinations",
    "previous-event": "a[i-1] speaks of i > 1 only; plain beside it is a[i]; prev(a.x)",
    "before-aggregate": "a[..i-1] are those bound before",
    "one-index-variable": "[i] for one variable of a conjunct",
    "nth-event": "a[n] is the n-th bound; dropped where fewer are bound",
    "whole-repetition": "a[a.LEN], a.LEN and aggregates over a[] speak of the repetition once left",
    "group-inside-is-current": "in a group a variable means its current iteration; a new one unbinds",
    "group-outside-is-last": "outside, the last",
    "equivalence-ties-all": "[x] ties every event, negated ones too",
    "partition-attributes": "those of [x], and no others: an equality is a condition, whatever it ties",
    "key": "the partition attributes are the key",
    "strict-sees-the-whole-stream": "strict contiguity looks at the whole stream; the key is still reported",
    # Strategies
    "each-event-begins": "each event may begin a run",
    "strategy-strict": "strict contiguity",
    "strategy-partition": "partition contiguity",
    "partition-without-key-is-strict": "partition contiguity without partition attributes is strict",
    "strategy-next": "skip till next match: ignored only if the run could not bind it",
    "strategy-any": "skip till any match",
    "skipping-branches-off": "possibilities that skip a letter do not forbid to ignore; they are taken besides",
    "kleene-ignores-unless-taken": "in an open repetition only what stays inside counts",
    "kleene-take-or-proceed": "proceed binds the event that begins the next component; no proceeding to wait",
    "closed-repetition": "a repetition at its maximum is closed",
    "optional-is-never-open": "`?` is never open",
    "group-ignores": "in a group the innermost open repetition counts",
    "set-ignores": "a set is open while an item can bind; its repetitions do not count by themselves",
    "next-asks-predicates": "predicates decide what could be bound; negations, HAVING and the window do not",
    "prefix-at-the-end": "at the end of a pattern each accepting prefix is a match",
    # Windows
    "within-length": "last.ts - first.ts <= d",
    "within-duration": "durations of timestamps, or of integers with unit=",
    "within-events": "positions differ by at most n - 1",
    "no-window": "without WITHIN there is no limit",
    # Negation
    "negation-between": "after the last bound before it, before the first bound after it",
    "negation-leading": "from last.ts - d to the first event",
    "negation-trailing": "after the last event up to first.ts + d, decided when time has passed",
    "negation-needs-within": "leading and trailing need WITHIN",
    "negation-one-side-unbound": "nothing bound on one side: it cannot be broken",
    "negation-unbreakable": "a conjunct with b and an unbound variable: it cannot be broken",
    "negation-predicates": "broken by events that satisfy all conjuncts that mention it",
    "negation-in-group": "of the run, in whichever iteration; its variables are of the iteration walked past",
    "negation-weighted": "each breaking event costs the weight",
    # HAVING, RETURN, output
    "having": "HAVING filters on the whole binding, before the output is chosen",
    "null-in-having": "what is not bound is null there; a count is 0",
    "having-plain-is-last": "plain a.x is the last event's",
    "having-all-iterations": "aggregates go over all iterations",
    "return": "RETURN names values",
    "time-and-type": "`ts` and `type` name the time and type columns unless there are such columns",
    "output-all": "ALL: every match",
    "longest-non-overlap": "greedy by (error, first event, last event, latest first, most events, ids)",
    "shortest-non-overlap": "greedy by (error, first event, last event, ids)",
    "after-match-skip": "no other match begins from the first event on up to the one that is skipped to",
    "non-overlap": "greedy by (error, match point, start, ids), in a partition; strict: in the stream",
    "earliest": "no other match with the same first event starts one variable earlier",
    "maximal": "no match is this one with one more event after its first",
    "match-point": "ts of the last bound event",
    "bundle": "match points of a partition chained by gaps of at most the window",
    "order-of-matches": "by match point, ids in stream order, variables",
    # Composition
    "composition": "matches as events: match point, key, RETURN, start, end, error",
    "composition-ids": "ids are positions in that stream",
    "composition-ties": "in the order of FROM, then of the output",
    # Lists
    "list-element": "a.tags[n] is the n-th element, null beyond the end",
    "list-contains": "contains is true if an element is equal, null if it is not and one is null",
    "list-text": "a list as text is JSON without blanks",
    # Mistakes
    "bad-query": "a query that makes no sense is an error at its place, with a hint",
    "bad-data": "so are events that do not fit",
}

CASES = load_all()
GOOD = [case for case in CASES if case.raises is None]
BAD = [case for case in CASES if case.raises is not None]


@dataclass(frozen=True)
class Got:
    """A match that an engine gave, in rows."""

    bindings: tuple[tuple[str, tuple[int, ...]], ...]
    error: Fraction
    start: Any
    end: Any
    bundle: Any
    key: tuple[tuple[str, Any], ...]
    values: tuple[tuple[str, Any], ...] = ()


# The corpus itself


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 170


def test_names_are_unique() -> None:
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)


def test_each_ruling_has_a_case() -> None:
    used = {ruling for case in CASES for ruling in case.rulings}
    assert used - set(RULINGS) == set(), "no such ruling"
    assert set(RULINGS) - used == set(), "no case"


def test_each_case_says_why() -> None:
    assert [case.id for case in CASES if not case.why.strip()] == []


@pytest.mark.parametrize(
    "wrong",
    [
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1"\nmatchs = []',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1"',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nregex = "q"\nevents = "A1"\nmatches = []',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1"\nmatches = ["a=A2"]',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1 B"\nmatches = []',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1"\nmatches = ["a=A1", "a=A1"]',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1"\nmatches = [{ bindings = {} }]',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nby = "k"\nevents = "A1"\nmatches = []',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1"\nraises = { error = "other", message = "m" }',
        'ruling = "x"\nwhy = "y"\nquery = "q"\nevents = "A1"\nraises = { error = "data", mesage = "m" }',
    ],
)
def test_a_slip_in_a_case_is_an_error(wrong: str, tmp_path: Any) -> None:
    (tmp_path / "slips.toml").write_text(f'[[case]]\nname = "slip"\n{wrong}\n')
    with pytest.raises(CorpusError, match="slips:slip"):
        load_all(tmp_path)


# Engines


def query_of(case: Case) -> Query:
    """The query."""
    default = {"within": None} if case.letters else {}
    return read_query(case.text, default | dict(case.query_options), letters=case.letters)


def ids_of(case: Case) -> dict[Any, int]:
    """Rows by event id."""
    name = case.stream_options.get("id")
    return {id_: row for row, id_ in enumerate(case.column(name))} if name else {row: row for row in range(len(case))}


def stream_rows(case: Case) -> list[int]:
    """The rows in stream order."""
    ts, seq = case.column(case.stream_options["ts"]), case.stream_options.get("seq")
    tie: tuple[Any, ...] = case.column(seq) if seq else (0,) * len(case)
    return sorted(range(len(case)), key=lambda row: (moment(ts[row]), tie[row], row))


def moment(value: Any) -> Any:
    """A time in a form that compares: dates are midnights, instants are in UTC without a zone."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    return value


def got(matches: Iterable[Any], ids: Mapping[Any, int]) -> list[Got]:
    """What an engine gave, in rows."""
    return [
        Got(
            bindings=tuple(sorted((var, tuple(ids[i] for i in some)) for var, some in m.bindings.items())),
            error=Fraction(str(m.error)),
            start=moment(m.start),
            end=moment(m.end),
            bundle=moment(m.bundle),
            key=tuple(sorted(m.key.items())),
            values=tuple(dict(getattr(m, "values", None) or {}).items()),
        )
        for m in matches
    ]


def whole(case: Case, engine: str) -> list[Got]:
    """All events at once."""
    found = acep.match(case.table(), query_of(case), engine=engine, **case.stream_options)
    return got(found, derived_ids(case))


def derived_ids(case: Case) -> Mapping[Any, int]:
    """Rows by event id; of a composed query ids are positions in the stream of matches."""
    if query_of(case).sources:
        return _Same()
    return ids_of(case)


class _Same(dict[Any, int]):
    def __missing__(self, key: Any) -> int:
        return int(key)


def pushed(case: Case, engine: str, *, restored: bool) -> list[Got]:
    """Event by event, in stream order; ``restored``: with a snapshot and a fresh matcher between each two."""
    order = stream_rows(case)
    table = case.table().take(pa.array(order, pa.int64()))
    query = query_of(case)

    def matcher() -> Any:
        return acep.Matcher(query, engine=engine, **case.stream_options)

    running = matcher()
    found: list[Any] = []
    for row in range(len(case)):
        found += running.push(table.slice(row, 1))
        if restored:
            state = running.snapshot()
            running = matcher()
            running.restore(state)
    found += running.finish()
    ids = derived_ids(case)
    if "id" not in case.stream_options and not isinstance(ids, _Same):
        ids = dict(enumerate(order))  # they arrived in stream order
    return got(found, ids)


def judged(case: Case) -> list[Got]:
    """The oracle's, which knows integers only."""
    query = query_of(case)
    options: dict[str, Any] = {name: case.stream_options.get(name) for name in ("ts", "type", "id", "seq")}
    columns: dict[str, list[Any]] = {name: list(values) for name, values in case.columns}
    ts = options["ts"]
    tick = Fraction(UNITS.get(str(case.stream_options.get("unit")), 1))
    times = [moment(value) for value in columns[ts]]
    names: dict[int, Any] = {}
    if any(isinstance(time, dt.datetime) for time in times):
        tick, epoch = Fraction(1000), dt.datetime(1970, 1, 1)
        for name, values in columns.items():
            if any(isinstance(value, dt.date) for value in values):
                columns[name] = [_microseconds(moment(value) - epoch) for value in values]
        names = dict(zip(columns[ts], times, strict=True))
    if query.within is not None and query.within.unit == "ns":
        query = replace(query, within=Within(query.within.amount / tick, "ticks"))
    query = replace(query, where=tuple(_in_ticks(expr, tick) for expr in query.where))
    for name in (name for name in {*columns_read(query)} - {*columns} if any(sign in name for sign in ".[(")):
        columns[name] = [part_of(name, {n: values[row] for n, values in columns.items()}) for row in range(len(case))]
    rows = [{name: values[row] for name, values in columns.items()} for row in range(len(case))]
    found = oracle(query, rows, **options)
    return [
        replace(
            one,
            start=names.get(one.start, one.start),
            end=names.get(one.end, one.end),
            bundle=names.get(one.bundle, one.bundle),
        )
        for one in got(found, ids_of(case))
    ]


def _in_ticks(expr: ex.Expr, tick: Fraction) -> ex.Expr:
    """The same condition with durations as numbers of ticks."""
    if isinstance(expr, ex.Duration):
        ticks = expr.ns / tick
        assert ticks.denominator == 1
        return ex.Literal(int(ticks))
    return with_children(expr, [_in_ticks(part, tick) for part in children(expr)])


def _microseconds(span: dt.timedelta) -> int:
    return span // dt.timedelta(microseconds=1)


# Expectations


def expected(case: Case, match: Match) -> Got:
    """The expected match with what follows from it."""
    ts = [moment(value) for value in case.column(case.stream_options["ts"])]
    place = {row: n for n, row in enumerate(stream_rows(case))}
    rows = sorted(match.rows, key=place.__getitem__)
    return Got(
        bindings=match.bindings,
        error=match.error,
        start=ts[rows[0]],
        end=ts[rows[-1]],
        bundle=moment(match.bundle),
        key=match.key or (),
        values=match.values or (),
    )


def told(match: Match, one: Got, *, times: bool, values: bool) -> Got:
    """What an engine gave, without what the case does not ask for."""
    return replace(
        one,
        start=one.start if times else None,
        end=one.end if times else None,
        bundle=one.bundle if match.bundle is not None else None,
        key=one.key if match.key is not None else (),
        values=tuple((k, v) for k, v in one.values) if values and match.values is not None else (),
    )


def compare(case: Case, found: list[Got], *, ordered: bool = True, values: bool = True) -> None:
    """Fails unless these are the case's matches."""
    times = not query_of(case).sources
    twice = {one.bindings for one in found if [o.bindings for o in found].count(one.bindings) > 1}
    assert not twice, f"given twice: {sorted(twice)}"
    by_binding = {one.bindings: one for one in found}
    wanted = case.matches if case.matches is not None else case.contains
    missing = [shown(m.bindings) for m in wanted if m.bindings not in by_binding]
    known = {m.bindings for m in wanted}
    surplus = [shown(b) for b in by_binding if b not in known] if case.matches is not None else []
    assert (missing, surplus) == ([], []), f"missing: {missing}; too many: {surplus}"
    if case.count is not None:
        assert len(found) == case.count
    for match in wanted:
        want = expected(case, match)
        if not times:
            want = replace(want, start=None, end=None)
        if not values:
            want = replace(want, values=())
        assert told(match, by_binding[match.bindings], times=times, values=values) == want
    if ordered and case.ordered:
        assert [one.bindings for one in found] == [m.bindings for m in wanted]


def shown(bindings: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    """A binding as a case would write it, by rows."""
    return " ".join(f"{var}={','.join(map(str, rows))}" for var, rows in bindings)


@pytest.mark.parametrize("engine", ENGINES)
@by_file(GOOD)
def test_all_at_once(case: Case, engine: str) -> None:
    compare(case, whole(case, engine))


@pytest.mark.parametrize("engine", ENGINES)
@by_file(GOOD)
def test_event_by_event(case: Case, engine: str) -> None:
    compare(case, pushed(case, engine, restored=False), ordered=False)


@pytest.mark.parametrize("engine", ENGINES)
@by_file(GOOD)
def test_restored_after_each_event(case: Case, engine: str) -> None:
    compare(case, pushed(case, engine, restored=True), ordered=False)


@pytest.mark.parametrize("engine", ENGINES)
@by_file(GOOD)
def test_counts_points_and_bundles(case: Case, engine: str) -> None:
    """What is given of the matches is theirs."""
    found, table = whole(case, engine), case.table()

    def given(output: str, **options: bool) -> Any:
        return acep.match(table, query_of(case), engine=engine, output=output, **case.stream_options, **options)

    assert given("count") == len(found)
    assert given("exists") is bool(found)
    uncounted, bundles = given("bundles", counts=False), given("bundles")
    assert [(b.key, b.start, b.end, b.best) for b in uncounted] == [(b.key, b.start, b.end, b.best) for b in bundles]
    assert not any(b.matches for b in uncounted)
    points = {(one.key, one.end) for one in found}
    assert sorted((moment(p.point), _least(found, p.key, p.point)) for p in given("points")) == sorted(
        (end, _least(found, dict(key), end)) for key, end in points
    )
    assert sum(bundle.matches for bundle in bundles) == len(found)
    assert sorted(moment(bundle.start) for bundle in bundles) == sorted(
        start for _, start in {(one.key, one.bundle) for one in found}
    )


def _least(found: list[Got], key: Mapping[str, Any], point: Any) -> Fraction:
    """The least error of the matches at a point."""
    wanted = tuple(sorted(key.items()))
    return min(one.error for one in found if one.key == wanted and one.end == moment(point))


@by_file(case for case in GOOD if case.id not in BEYOND_THE_ORACLE and "FROM (" not in case.text)
def test_oracle(case: Case) -> None:
    compare(case, judged(case), values=False)


@pytest.mark.parametrize("engine", ENGINES)
@by_file(BAD)
def test_complaints(case: Case, engine: str) -> None:
    assert case.raises is not None
    with pytest.raises(AcepError) as caught:
        whole(case, engine)
    error = caught.value
    assert isinstance(error, QueryError if case.raises.error == "query" else DataError)
    assert case.raises.message.lower() in error.message.lower()
    if case.raises.line is not None:
        assert error.line == case.raises.line
    if case.raises.column is not None:
        assert error.column == case.raises.column
    if case.raises.hint is not None:
        assert case.raises.hint.lower() in (error.hint or "").lower()


@by_file(GOOD)
def test_found_with_less_is_found_with_more(case: Case) -> None:
    """A greater budget keeps every match, with no greater error (but for an output that chooses)."""
    query = query_of(case)
    if query.output.value != "all" or query.sources:
        return
    few = {m.bindings: m.error for m in _matches(case, query)}
    more = {m.bindings: m.error for m in _matches(case, replace(query, errors=query.errors + 1))}
    assert all(more.get(bindings) == error for bindings, error in few.items())


def _matches(case: Case, query: Query) -> list[Got]:
    return got(
        acep.match(case.table(), query, engine=ENGINES[0], **case.stream_options),
        ids_of(case),
    )
