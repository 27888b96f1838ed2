"""Every workload by name: W1 to W3 and the V shape, the experiments of SASE+, match windows, and growth curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import Literal

import pyarrow as pa

from experiments import counting, streams
from experiments.match_windows import match_windows
from experiments.stock import StockQuery
from experiments.workload import Count, Workload

__all__ = ["V_SHAPE", "WORKLOADS", "choose_workloads", "sequence"]

V_SHAPE = """PATTERN SEQ(Stock p, Stock s, Stock+ d[], Stock+ u[], Stock e)
WHERE partition_contiguity(p, s, d[], u[], e) {
    [symbol] AND s.price >= p.price
    AND d[1].price < s.price AND d[i].price < d[i-1].price
    AND u[1].price > d[d.LEN].price AND u[i].price > u[i-1].price
    AND e.price <= u[u.LEN].price
}"""


def sequence(word: str, within: int, *, strategy: str = "skip_till_any_match", key: str | None = None) -> str:
    """Return the query for a sequence of events of one-letter types.

    >>> print(sequence("AB", 9, key="key"))
    PATTERN SEQ(A a, B b)
    WHERE skip_till_any_match(a, b) { [key] }
    WITHIN 9
    """
    variables = ", ".join(word.lower())
    items = ", ".join(f"{letter} {letter.lower()}" for letter in word)
    where = f" {{ [{key}] }}" if key else ""
    return f"PATTERN SEQ({items})\nWHERE {strategy}({variables}){where}\nWITHIN {within}"


def _stock(
    name: str, about: str, query: StockQuery, *, rows: int, rising: float = 0.7, output: str = "matches"
) -> Workload:
    countable = not (query.third or query.non_overlap)
    return Workload(
        name,
        about,
        partial(_prefix, partial(streams.ticker, rising), rows),
        (query.text(),),
        output=output,
        counted=(lambda table, _: counting.count_stock_runs(table, query)) if countable else None,
        small=4_000 if query.window < 1_000 else 2_500,
        stock=query if output == "matches" else None,
    )


def _any_counter(word: str, within: int, key: str | None = None) -> Count:
    return lambda table, _: counting.count_any_sequences(table, word, within, key)


def _next_counter(word: str, within: int, key: str | None = None) -> Count:
    return lambda table, _: counting.count_next_sequences(table, word, within, key)


def _close_counter(within: int) -> Count:
    return lambda table, _: counting.count_close_pairs(table, "AB", within, 3)


def _prefix(events: partial[pa.Table], rows: int) -> pa.Table:
    return events().slice(0, rows)


def _main() -> Iterable[Workload]:
    w1 = "SASE+ ticker, SEQ(Stock+ a[], Stock b), rising, within 500 events"
    yield _stock("w1-contiguity", f"{w1}, partition contiguity", StockQuery(strategy="s2"), rows=streams.TICKER_ROWS)
    yield _stock("w1-next", f"{w1}, skip till next match", StockQuery(strategy="s3"), rows=streams.TICKER_ROWS)
    w2 = "SEQ(A,B,C) by key (100) within 10,000 ticks"
    yield Workload(
        "w2-next",
        f"{w2}, skip till next match",
        streams.letters,
        (sequence("ABC", 10_000, strategy="skip_till_next_match", key="key"),),
        counted=_next_counter("ABC", 10_000, "key"),
        small=3_000,
    )
    for output in ("batches", "count"):
        yield Workload(
            "w2-any" if output == "batches" else "w2-count",
            f"{w2}, skip till any match" + (", counted" if output == "count" else ""),
            streams.letters,
            (sequence("ABC", 10_000, key="key"),),
            output=output,
            counted=_any_counter("ABC", 10_000, "key"),
            small=3_000,
        )
    yield Workload(
        "w2-tied",
        "SEQ(A,B,C), first and last of one key (1,000), within 1,000 ticks, skip till any match: runs merged",
        partial(streams.letters, keys=1_000),
        ("PATTERN SEQ(A a, B b, C c) WHERE a.key = c.key WITHIN 1000",),
        counted=lambda table, _: counting.count_tied_sequences(table, "ABC", 1_000),
        small=400,
    )
    for output, within in (("batches", 100), ("count", 100), ("count", 1_000), ("count", 10_000)):
        yield Workload(
            "w3-any" if output == "batches" else f"w3-count-{within}",
            f"SEQ(A,B,C,D), no key, skip till any match, within {within:,} ticks"
            + (", counted" if output == "count" else ""),
            streams.letters,
            (sequence("ABCD", within),),
            output=output,
            counted=_any_counter("ABCD", within),
            small=120 if within < 10_000 else 0,
        )
    yield Workload(
        "v-shape",
        "ten symbols, a fall and then a rise, from peak to peak; partition contiguity, no window",
        streams.walk,
        (V_SHAPE,),
        counted=lambda table, _: counting.count_valleys(table),
        small=3_000,
    )


def _sase() -> Iterable[Workload]:
    """Yield experiments 1 to 6 of SASE+; streams are, for each symbol, 200 times the window."""
    predicates: tuple[Literal["p1", "p2", "p3"], ...] = ("p1", "p2", "p3")
    strategies: tuple[Literal["s2", "s3"], ...] = ("s2", "s3")
    six = [StockQuery(p, s) for p in predicates for s in strategies]
    for query in six:
        yield _stock(f"expt1-{query.name}", "all results, window 500", query, rows=400 * query.window)
    for base_query in six[1:]:
        for window in (1_000, 1_500, 2_000):
            query = replace(base_query, window=window)
            yield _stock(f"expt2-{query.name}-{window}", f"all results, window {window:,}", query, rows=400 * window)
    for query in six:
        yield _stock(f"expt3-{query.name}", "all results, against backtrack", query, rows=400 * query.window)
    for third in (False, True):
        for s in strategies:
            query = StockQuery("p3", s, third=third, non_overlap=True)
            yield _stock(f"expt4-{query.name}", "non-overlapping, against backtrack", query, rows=400 * query.window)
    for query in six:
        yield _stock(
            f"expt5-{query.name}", "counted: runs can be merged", query, rows=400 * query.window, output="count"
        )
    for p in predicates:
        for window in (500, 1_000, 1_500, 2_000):
            query = StockQuery(p, "s3", window)
            yield _stock(
                f"expt6-{query.name}-{window}", "counted: runs can be merged", query, rows=400 * window, output="count"
            )
    for p in predicates:
        query = StockQuery(p, "s3")
        yield _stock(f"other-{query.name}", "price rises with 0.55", query, rows=400 * query.window, rising=0.55)


def _growth() -> Iterable[Workload]:
    """Yield curves of a growing cost; each of them changes one thing."""
    for within in (30, 100, 300, 1_000, 3_000, 10_000):
        yield Workload(
            f"growth-window-{within}",
            f"W3 counted: SEQ(A,B,C,D), no key, skip till any match, within {within:,} ticks",
            streams.letters,
            (sequence("ABCD", within),),
            output="count",
            counted=_any_counter("ABCD", within),
            small=120,
        )
    for keys in (1, 10, 100, 1_000, 10_000):
        yield Workload(
            f"growth-keys-{keys}",
            f"SEQ(A,B,C) by key, {keys:,} keys, 100 events of a key in a window, skip till next match",
            partial(streams.letters, keys=keys),
            (sequence("ABC", 100 * keys, strategy="skip_till_next_match", key="key"),),
            counted=_next_counter("ABC", 100 * keys, "key"),
        )
    letters = "ABCDEFGHIJKLMNOP"
    for length in (2, 4, 8, 16):
        yield Workload(
            f"growth-length-{length}",
            f"a sequence of {length} of 16 types, skip till next match, within 1,000 ticks",
            partial(streams.letters, types=16),
            (sequence(letters[:length], 1_000, strategy="skip_till_next_match"),),
            counted=_next_counter(letters[:length], 1_000),
        )
    for live in (10, 100, 1_000, 10_000):
        yield Workload(
            f"growth-live-{live}",
            f"SEQ(A,B) with close values: {live:,} live nodes, few matches, skip till any match",
            streams.letters,
            (f"PATTERN SEQ(A a, B b) WHERE b.value - a.value < 3 AND a.value - b.value < 3 WITHIN {5 * live}",),
            counted=_close_counter(5 * live),
        )


@cache
def _all_workloads() -> dict[str, Workload]:
    return {workload.name: workload for workload in (*_main(), *_sase(), *match_windows(), *_growth())}


WORKLOADS = _all_workloads()


def choose_workloads(names: Sequence[str]) -> list[Workload]:
    """Return the workloads of some names, groups or patterns (``w1-next``, ``expt1``, ``growth-*``); all without any.

    Raises :class:`ValueError` for a name that is no workload's.
    """
    if not names:
        return list(WORKLOADS.values())
    workloads: dict[str, Workload] = {}
    for name in names:
        fit = {w.name: w for w in WORKLOADS.values() if name == w.group or fnmatchcase(w.name, name)}
        if not fit:
            raise ValueError(f"there is no workload {name!r}: {', '.join(WORKLOADS)}")
        workloads |= fit
    return list(workloads.values())
