"""Say what multiplies the matches of a query, and how many there would be under other choices: :func:`why_many`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from acep.display import MOST_TEXT, preformat
from acep.errors import AcepError, printable
from acep.events.duplicates import check_duplicates, settle_duplicates
from acep.events.empty_schema import with_usable_types
from acep.events.fields import named_column
from acep.events.input_tables import input_table
from acep.events.tables import schema_of
from acep.explain.event_lines import event_lines
from acep.explain.partition_meaning import with_partition
from acep.matches.records import Found
from acep.pattern.printing import expression_text, output_text
from acep.pattern.query_arguments import query_of, read_queries
from acep.pattern.times import window_text
from acep.pattern.tree import Output, Query, Strategy
from acep.pattern.walk import negated_variables, variables, variables_in
from acep.plan.compile import Plan, compile_query
from acep.training.match_points import Partitions
from acep.tuning.cheaper import MOST_TIES, shared_attributes
from acep.tuning.count_text import GREATEST, count_text, number_text, table_lines
from acep.tuning.first_matches import first_matches
from acep.tuning.replay import Meter, measure_fit, replay
from acep.tuning.sample import draw
from acep.tuning.windows import shorten_window

__all__ = ["MANY_MATCHES", "Fewer", "ManyMatches", "Spread", "many_matches", "why_many"]

MANY_MATCHES = 20
"""The matches of a key from which on ``acep why`` also says what multiplies them."""

EFFORT = 20_000_000  # touches of all counts together
LOOKED_AT = 20_000  # matches whose bindings are compared
SECONDS = 2.0  # of processor time of a count whose output is chosen among the matches
SHORTER = (Fraction(1, 2), Fraction(1, 4))  # windows that are tried, in parts of the window


@dataclass(frozen=True)
class Spread:
    """How a variable differs among matches: the mean number of its different bindings among matches of one bundle,
    and among those of one first event; ``tied``: the conditions that tie it to other variables."""

    variable: str
    per_bundle: float
    per_first: float
    tied: tuple[str, ...]


@dataclass(frozen=True)
class Fewer:
    """A ``change`` of the query, and the ``matches`` that it has then (``None``: it was not counted, as that takes too
    much work, or more than :data:`SECONDS`)."""

    change: str
    matches: int | None


@dataclass(frozen=True, repr=False)
class ManyMatches:
    """The reasons for many matches of a query in ``events`` events.

    ``looked_at``: the matches whose bindings were compared. ``firsts``: the first events of matches; ``most``: the
    matches of the one that has the most, and its event as text. ``cut``: why not all events were looked at ("": all
    were)."""

    events: int
    matches: int
    points: int
    bundles: int
    keys: int
    firsts: int
    most: int
    event: str
    looked_at: int
    spreads: tuple[Spread, ...] = ()
    fewer: tuple[Fewer, ...] = ()
    cut: str = ""

    @property
    def multiplies(self) -> Spread | None:
        """Return the variable that differs the most among matches of a bundle; ``None`` if none does."""
        widest = max(self.spreads, key=lambda spread: spread.per_bundle, default=None)
        return widest if widest is not None and widest.per_bundle > 1 else None

    def __str__(self) -> str:
        return "\n".join(map(printable, _lines(self)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformat(str(self), MOST_TEXT)


def why_many(
    events: Any,
    query: Query | str,
    *,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
    duplicates: str = "refuse",
) -> ManyMatches:
    """Say what multiplies the matches of a query, and count what changes of it would leave.

    The arguments are those of :func:`acep.match`, ``duplicates`` among them. Raises :class:`QueryError` or
    :class:`DataError` as that does.

    >>> rows = {"ts": [1, 2, 3, 4], "type": list("abbb")}
    >>> found = why_many(rows, "PATTERN SEQ(a p, b q) WITHIN 9")
    >>> found.matches, found.multiplies.variable, [one.matches for one in found.fewer if "NON OVERLAP" in one.change]
    (3, 'q', [1, 1])
    """
    parsed = query_of(query)
    columns: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
    check_duplicates(duplicates, id)
    table, _ = input_table(events, read_queries(parsed), **columns, duplicates=duplicates)
    return many_matches(settle_duplicates(table, id, duplicates), parsed, columns)


def many_matches(table: pa.Table, query: Query, columns: Mapping[str, Any]) -> ManyMatches:
    """Do the same for a table, with the columns' roles in a dict."""
    table = with_usable_types(table, [query], dict(columns))
    plan = compile_query(query, schema_of(table.schema, **columns))
    n_rows = table.num_rows
    table = draw(table, replace(plan, keys=()), max(1, n_rows)).table  # in stream order
    meter = Meter(EFFORT)
    fits = measure_fit(table, query, columns, meter, EFFORT // 4, seconds=SECONDS).events
    cut = ""
    if fits < n_rows:
        cut = (
            f"only the first {fits:,} of {n_rows:,} events were looked at: to count the matches of more takes too long"
        )
        table = table.slice(0, fits)
    partitions = Partitions()
    exact = replay(table, query, columns, partitions, meter)
    matches = [match for block in first_matches(table, query, columns, LOOKED_AT) for match in block]
    per_first = Counter(_first(match) for match in matches)
    first, most_matches = per_first.most_common(1)[0] if per_first else (0, 0)
    event = next(event_lines(table, replace(plan.schema, id=None), plan, [first]), "") if matches else ""
    if columns["id"] is not None and event:
        event = f"event {named_column(table, columns['id'])[first].as_py()}:{event.partition(':')[2]}"
    fewer = tuple(_fewer(table, query, plan, columns, meter, exact.matches)) if exact.matches else ()
    return ManyMatches(
        table.num_rows, exact.matches, exact.points, exact.bundles, exact.keys, len(per_first), most_matches, event,
        len(matches), tuple(_spreads(query, matches)), fewer, cut,
    )  # fmt: skip


def _first(match: Found) -> Any:
    return min(ids[0] for _, ids in match.bindings)


def _spreads(query: Query, matches: list[Found]) -> Iterator[Spread]:
    """Yield how each variable differs, in the order of the pattern."""
    bundles: dict[Any, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    firsts: dict[Any, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for match in matches:
        for var, ids in match.bindings:
            bundles[(match.key, match.bundle)][var].add(ids)
            firsts[_first(match)][var].add(ids)
    for var in variables(query.pattern):
        if var in negated_variables(query.pattern) or not matches:
            continue
        tied = tuple(
            expression_text(expr) for expr in query.where if var in variables_in(expr) and len(variables_in(expr)) > 1
        )
        yield Spread(var, _mean(bundles, var), _mean(firsts, var), tied)


def _mean(groups: Mapping[Any, Mapping[str, set[Any]]], var: str) -> float:
    numbers = [len(events_by_variable[var]) for events_by_variable in groups.values() if var in events_by_variable]
    return sum(numbers) / len(numbers) if numbers else 0.0


def _fewer(
    table: pa.Table, query: Query, plan: Plan, columns: Mapping[str, Any], meter: Meter, matches: int
) -> Iterator[Fewer]:
    """Yield the changes after which the matches are fewer, with their number."""
    for change, other in _changes(table, query, plan, columns):
        try:
            n_matches = measure_fit(table, other, columns, meter, meter.left // 2, seconds=SECONDS).matches
        except AcepError:
            continue  # the query cannot be changed like that
        if n_matches is None or n_matches < matches:
            yield Fewer(change, n_matches)


def _changes(table: pa.Table, query: Query, plan: Plan, columns: Mapping[str, Any]) -> Iterator[tuple[str, Query]]:
    if query.graph is not None:
        return
    for output in (Output.NON_OVERLAP, Output.EARLIEST_MAXIMAL, Output.LONGEST_NON_OVERLAP):
        if output is not query.output:
            changed = replace(query, output=output, skip=None)
            yield f"OUTPUT {output_text(changed)}", changed
    if query.strategy is Strategy.SKIP_TILL_ANY_MATCH:
        yield "skip_till_next_match", replace(query, strategy=Strategy.SKIP_TILL_NEXT_MATCH)
    if query.strategy in (Strategy.SKIP_TILL_ANY_MATCH, Strategy.SKIP_TILL_NEXT_MATCH) and plan.keys:
        yield "partition_contiguity", replace(query, strategy=Strategy.PARTITION_CONTIGUITY)
    if not plan.sources:
        for name, _ in shared_attributes(table, plan, columns)[:MOST_TIES]:
            yield with_partition(query, name), replace(query, ties=(*query.ties, name))
    for part in SHORTER if query.within is not None else ():
        assert query.within is not None
        within = shorten_window(query.within, part)
        if within is not None:
            yield f"WITHIN {window_text(within)}", replace(query, within=within)
    if query.errors:
        yield "errors=0", replace(query, errors=Fraction(0))


def _lines(reasons: ManyMatches) -> Iterator[str]:
    if reasons.cut:
        yield reasons.cut
    yield (
        f"{count_text(reasons.events, 'event')}: {count_text(reasons.matches, 'match', 'matches')} at "
        f"{count_text(reasons.points, 'match point')}, in {count_text(reasons.bundles, 'bundle')} of "
        f"{count_text(reasons.keys, 'key')}"
    )
    if not reasons.matches:
        return
    scope = "" if reasons.looked_at == reasons.matches else f" (of the first {reasons.looked_at:,} matches)"
    a_bundle, a_point = _ratio_text(reasons.matches, reasons.bundles), _ratio_text(reasons.matches, reasons.points)
    yield f"matches a bundle: {a_bundle}; a match point: {a_point}"
    yield f"matches a first event: {_ratio_text(reasons.looked_at, reasons.firsts)}, at most {reasons.most:,}{scope}"
    yield f"  most begin with {reasons.event}"
    yield ""
    yield "# different bindings of each variable"
    rows = [(spread.variable, f"{spread.per_bundle:,.1f}", f"{spread.per_first:,.1f}") for spread in reasons.spreads]
    yield from table_lines(("variable", "in a bundle", "of a first event"), rows)
    widest = reasons.multiplies
    if widest is not None:
        tied = (
            f"tied to others by {' AND '.join(widest.tied)}"
            if widest.tied
            else "no condition ties it to another variable"
        )
        yield f"`{widest.variable}` multiplies the matches the most: {tied}"
    if reasons.fewer:
        yield ""
        yield "# matches that a change would leave, counted on these events"
        counts = [
            (change.change, "not counted" if change.matches is None else number_text(change.matches))
            for change in reasons.fewer
        ]
        yield from table_lines(("change", "matches"), counts)
        if any(change.matches is None for change in reasons.fewer):
            yield "not counted: that takes too much work, or more than some seconds"


def _ratio_text(number: int, parts: int) -> str:
    """Return the mean number of matches of a part."""
    return f"{number / parts:,.1f}" if number < GREATEST else number_text(number // parts)
