"""Look for changes of a query that make it cheaper, and measure each on a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.explain.partition_meaning import meaning_without, with_partition
from acep.matches.found_columns import FoundColumns, concatenate
from acep.native.compiled import choose_engine
from acep.pattern.expressions import Attribute
from acep.pattern.printing import expression_text
from acep.pattern.times import window_text
from acep.pattern.tree import Query, Strategy, Within
from acep.pattern.walk import leaves_of, max_bound_counts
from acep.plan.compile import Plan
from acep.training.match_points import Partitions
from acep.tuning.first_matches import first_matches
from acep.tuning.identities import MAX_COMPARED, MatchIdentities, identities_of
from acep.tuning.replay import Meter, SampleRun, measure_fit, replay
from acep.tuning.trials import CHOOSING

__all__ = ["Change", "changes", "shared_attributes"]

SHORT = 0.5  # a longest match of at most this part of the window makes a shorter window worth a try
MOST_TIES = 3  # attributes that are tried as partition attributes
LOOKED_AT = 20_000  # matches whose attributes are compared

ATTRIBUTE = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean)


@dataclass(frozen=True)
class Change:
    """A ``change`` of the query in words, why it was tried, and the exact replay of the sample ``after`` it. ``kept``:
    how many of the matches are found after it, too (``None``: there are too many to compare)."""

    change: str
    why: str
    after: SampleRun
    kept: int | None

    def keeps_matches(self, exact: SampleRun) -> bool:
        """Return whether the matches after the change are known to be those of the ``exact`` replay before it."""
        return self.kept == exact.matches == self.after.matches


def changes(
    table: pa.Table, plan: Plan, columns: Mapping[str, Any], exact: SampleRun, meter: Meter, engine: str
) -> Iterator[Change]:
    """Yield the changes that make the sample cheaper, each measured."""
    identities = identities_of(table, plan.query, columns, engine) if exact.matches <= MAX_COMPARED else None
    for change, why, query in _candidates(table, plan, columns, exact, identities):
        if not meter.affords(exact.touches, change):
            continue
        fit = measure_fit(table, query, columns, meter, 2 * exact.touches + table.num_rows, engine, CHOOSING)
        if fit.events < table.num_rows:
            continue  # it is dearer
        run = replay(table, query, columns, Partitions(), meter, engine=engine)
        if run.touches < exact.touches:
            n_kept = None
            if identities is not None and run.matches <= MAX_COMPARED:
                n_kept = identities.count_shared(identities_of(table, query, columns, engine))
            yield Change(change, why, run, n_kept)


def _candidates(
    table: pa.Table, plan: Plan, columns: Mapping[str, Any], exact: SampleRun, identities: MatchIdentities | None
) -> Iterator[tuple[str, str, Query]]:
    query = plan.query
    if query.graph is not None or plan.sources:
        return
    span, within = plan.window.span, query.within
    longest = identities.longest if identities is not None and exact.matches else None
    if longest is not None and within is not None and span and not plan.window.counted and longest <= SHORT * span:
        ticks = within.unit == "ticks" or plan.schema.tick_ns is None
        amount = Fraction(longest) if ticks else longest * Fraction(plan.schema.tick_ns or 1)
        shorter = Within(amount, within.unit)
        if amount:
            why = f"no match of the sample is longer, and the window is {window_text(within)}"
            yield f"WITHIN {window_text(shorter)}", why, replace(query, within=shorter)
    for name, share in shared_attributes(table, plan, columns)[:MOST_TIES] if exact.matches else ():
        looked_at = f"{share:.1%} of the matches that were looked at are of one `{name}` each"
        why = f"now {meaning_without(query, name)}; it would be {with_partition(query, name)} ({looked_at})"
        yield f"[{name}]", why, replace(query, ties=(*query.ties, name))
    having = query.having
    if having is not None and not query.errors:
        most_events = max_bound_counts(query.pattern)
        if all(isinstance(leaf, Attribute) and most_events.get(leaf.var) == 1 for leaf in leaves_of(having)):
            text = expression_text(having)
            why = "HAVING is tested only once a match is complete"
            yield f"{text} in WHERE", why, replace(query, where=(*query.where, having), having=None)
    if query.strategy is Strategy.SKIP_TILL_ANY_MATCH:
        why = "skip till any match tries each choice of the events that could be bound"
        yield "skip_till_next_match", why, replace(query, strategy=Strategy.SKIP_TILL_NEXT_MATCH)


def shared_attributes(table: pa.Table, plan: Plan, columns: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the attributes that are no partition attributes and are equal in all events of nearly every match, each
    with the share of the matches; at most so many matches are looked at."""
    if plan.query.graph is not None or choose_engine(plan.finer or plan).engine == "reference":
        return []  # whose matches do not come as columns
    blocks = [*first_matches(table, plan.query, columns, LOOKED_AT)]
    if not blocks:
        return []
    matches = concatenate([block for block in blocks if isinstance(block, FoundColumns)])
    lengths = np.diff(matches.offsets)
    several = lengths > 1
    if not several.any():
        return []
    roles = {columns[role] for role in ("ts", "type", "seq", "id")}
    shares = []
    for field in table.schema:
        if field.name in roles or field.name in plan.keys or not any(fits(field.type) for fits in ATTRIBUTE):
            continue
        codes = codes_of(table[field.name])
        if codes.max(initial=0) < 2:  # one value only
            continue
        bound_codes = codes[matches.ids]
        starts = matches.offsets[:-1]
        equal = np.minimum.reduceat(bound_codes, starts) == np.maximum.reduceat(bound_codes, starts)
        equal &= np.minimum.reduceat(bound_codes, starts) > 0
        share = float(equal[several].mean())
        if share >= 0.99:
            shares.append((-share, -int(codes.max()), field.name))
    return [(name, -share) for share, _, name in sorted(shares)]


def codes_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return a number from 1 for each distinct value of a column, 0 for null.

    >>> codes_of(pa.chunked_array([["a", None, "b", "a"]])).tolist()
    [1, 0, 2, 1]
    """
    encoded = pc.dictionary_encode(column.combine_chunks())
    codes: npt.NDArray[np.int64] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes + 1
