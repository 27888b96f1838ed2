"""The examples once more, in plain Python that knows nothing of acep: each start, walked forward event by event.

A pattern is a list of stages. A run at a stage that may go on (fewer than ``high`` events) and has ``low`` or more
both goes on and proceeds, where the event allows both. In an open repetition it ignores an event that it
cannot bind there, whether or not it proceeded; elsewhere, one that it cannot bind at all.

The catalogue counts otherwise: one run a start, which proceeds where it can, else goes on, else ignores the event, and
ends at its first completion. That run is one of those above, the one that never went on where it could proceed:
it is marked as *greedy*. So the catalogue's counts and those of acep come out of one walk.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["KINDS", "WALKS", "Found", "Stage", "Walk", "events_of", "part_of", "read", "tweets_of", "walk"]

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND

Event = Any  # a named tuple: row, ts, and the columns that a walk reads
Bound = tuple[tuple[Event, ...], ...]
Holds = Callable[[Bound, Event], bool]


class Stage(NamedTuple):
    """``low`` to ``high`` events for which ``holds``, bound to ``vars`` (several: a set, one each).

    ``holds`` sees what is bound, by stages, with the event's stage last. An event that ``breaks`` may not stand
    between the stage before and this one.
    """

    vars: str
    holds: Holds
    low: int = 1
    high: float = 1
    breaks: Callable[[Event], bool] | None = None


class Found(NamedTuple):
    """A match: its partition, the rows bound by stage, its length in time, whether the catalogue's run found it."""

    key: tuple[Any, ...]
    rows: tuple[tuple[int, ...], ...]
    span: int
    greedy: bool

    @property
    def first(self) -> int:
        return min(row for rows in self.rows for row in rows)


@dataclass(frozen=True)
class Walk:
    """How to walk an example: over the partitions by ``key``, with ``columns`` besides.

    ``every`` says how much of the stream an engine in plain Python is given in a test: of the values of the first
    attribute of ``key``, in their order, the first and every so-manieth after it.
    """

    key: tuple[str, ...]
    columns: tuple[str, ...]
    window: int
    stages: tuple[Stage, ...] = ()
    every: int = 1
    run: Callable[[Walk, pa.Table], Iterator[Found]] | None = None


def walk(this: Walk, table: pa.Table) -> Iterator[Found]:
    """All matches of an example in a table, by the rules of docs/reference/semantics.md."""
    return (this.run or _plain)(this, table)


@lru_cache(maxsize=1)
def read(path: Path) -> pa.Table:
    """A stream in its order; ``row`` is the place of an event in it."""
    table = pq.read_table(path).sort_by([("ts", "ascending"), ("arrival_seq", "ascending")])
    return table.append_column("row", pa.array(range(len(table)), pa.int64()))


def part_of(table: pa.Table, this: Walk, every: int) -> pa.Table:
    """The rows of the first and every so-manieth value of the first attribute of the key."""
    if every <= 1:
        return table
    values = sorted(value for value in table[this.key[0]].unique().to_pylist() if value is not None)
    return table.filter(pc.is_in(table[this.key[0]], pa.array(values[::every], table[this.key[0]].type)))


def events_of(table: pa.Table, key: Sequence[str], columns: Sequence[str]) -> dict[tuple[Any, ...], list[Event]]:
    """The events of each partition, in their order; times in microseconds."""
    names = list(dict.fromkeys(("row", "ts", *columns)))
    kind = namedtuple("Event", names)  # type: ignore[misc]  # noqa: PYI024 - its fields are known only now
    held = [(table[n].cast(pa.int64()) if n == "ts" else table[n]).to_pylist() for n in names]
    keys = zip(*(table[n].to_pylist() for n in key), strict=True)
    found: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for k, event in zip(keys, map(kind._make, zip(*held, strict=True)), strict=True):
        found[k].append(event)
    return found


def _plain(this: Walk, table: pa.Table) -> Iterator[Found]:
    begins = this.stages[0].holds
    for key, events in events_of(table, this.key, this.columns).items():
        for at, first in enumerate(events):
            if begins(((),), first):
                for bound, greedy in _from(this, events, at):
                    rows = tuple(tuple(e.row for e in stage) for stage in bound)
                    yield Found(key, rows, bound[-1][-1].ts - first.ts, greedy)


def _from(this: Walk, events: list[Event], at: int) -> Iterator[tuple[Bound, bool]]:
    """The matches that begin with one event."""
    stages, last = this.stages, events[at].ts + this.window
    runs: list[tuple[Bound, bool]] = [(((events[at],),), True)]
    for i in range(at + 1, len(events)):
        event = events[i]
        if event.ts > last or not runs:
            return
        waiting: list[tuple[Bound, bool]] = []
        for bound, greedy in runs:
            stage = stages[len(bound) - 1]
            after = stages[len(bound)] if len(bound) < len(stages) and len(bound[-1]) >= stage.low else None
            goes_on = len(bound[-1]) < stage.high and stage.holds(bound, event)
            proceeds = after is not None and after.holds((*bound, ()), event)
            made = [((*bound, (event,)), greedy)] if proceeds else []
            if goes_on:
                made.append(((*bound[:-1], (*bound[-1], event)), greedy and not proceeds))
            for longer, chosen in made:
                done = len(longer) == len(stages) and len(longer[-1]) >= stages[-1].low
                if done:
                    yield longer, chosen
                if len(longer) < len(stages) or len(longer[-1]) < stages[-1].high:
                    waiting.append((longer, chosen and not done))
            taken = goes_on if len(bound[-1]) < stage.high else proceeds
            broken = after is not None and after.breaks is not None and after.breaks(event)
            if not taken and not broken:
                waiting.append((bound, greedy and not proceeds))
        runs = waiting


# Letters ----------------------------------------------------------------------------------------


def tweets_of(table: pa.Table) -> pa.Table:
    """The tweets that see a bullish chart (type Chart) or bring good news (News), from their letters: what the
    inner queries give, in its order. One that does both is there twice."""
    when = dict(zip(table["row"].to_pylist(), table["ts"].cast(pa.int64()).to_pylist(), strict=True))
    found = []
    for kind, letters in (("Chart", "bdwr"), ("News", "geu")):
        stages = (Stage("s", _type("S")), Stage("a", _type("a")), Stage("t", _type(*letters)), Stage("e", _type("E")))
        for one in walk(Walk(("symbol", "tweet_id"), ("type",), 1 << 62, stages), table):
            rows = [row for stage in one.rows for row in stage]
            found.append((when[rows[-1]], kind, rows, *one.key))
    found.sort()
    ts, kinds, _, symbols, ids = map(list, zip(*found, strict=True))
    columns = {"row": range(len(found)), "ts": pa.array(ts, pa.int64()), "type": kinds, "symbol": symbols}
    return pa.table(columns | {"tweet_id": ids})


def _over_tweets(this: Walk, table: pa.Table) -> Iterator[Found]:
    return _plain(this, tweets_of(table))


def _buy_point(this: Walk, table: pa.Table) -> Iterator[Found]:
    """Two groups of letters, each twice or more. All a run waits for is the next letter, which is looked up."""
    groups = (("S", "a", "bdwr", "E"), ("S", "a", "geu", "E"))
    for key, events in events_of(table, this.key, this.columns).items():
        where = {x: [i for i, e in enumerate(events) if e.type in x] for group in groups for x in group}
        for start in where["S"]:
            # Each run: the group, the letters bound in it, and all that is bound.
            runs: list[tuple[int, int, tuple[int, ...]]] = [(0, 1, (start,))]
            while runs:
                group, letters, bound = runs.pop()
                wanted = where[groups[group][letters % 4]]
                place = bisect_right(wanted, bound[-1])
                if place == len(wanted) or events[wanted[place]].ts > events[start].ts + this.window:
                    continue
                longer = (*bound, wanted[place])
                runs.append((group, letters + 1, longer))
                if group == 0 and letters >= 8 and letters % 4 == 0:
                    runs.append((1, 1, longer))
                if group == 1 and letters >= 7 and letters % 4 == 3:
                    # The catalogue has no such pattern: nothing is greedy.
                    rows = tuple(events[i].row for i in longer)
                    yield Found(key, (rows,), events[longer[-1]].ts - events[start].ts, False)


# The examples -----------------------------------------------------------------------------------

ANY = math.inf


def _type(*types: str) -> Holds:
    return lambda b, e: e.type in types


def _length(e: Event, kind: str) -> float:
    x, y, z = (getattr(e, f"{axis}_{kind}") for axis in "xyz")
    return math.sqrt(x * x + y * y + z * z)


def _chart(b: Bound, e: Event) -> bool:  # noqa: ARG001 - the shape of all conditions
    """The symbol, and a bullish word somewhere behind it."""
    a = e.letters.find("a")
    return a >= 0 and any(x in e.letters[a:] for x in "bdwr")


def _news(b: Bound, e: Event) -> bool:  # noqa: ARG001
    a = e.letters.find("a")
    return a >= 0 and any(x in e.letters[a:] for x in "geu")


def _rising(b: Bound, e: Event) -> bool:
    if e.type != "CRP" or not b[0]:
        return bool(e.type == "CRP")
    before = b[0][-1].value
    return e.value is not None and before is not None and bool(e.value > before)


PANEL = ("leukocyten tellen elektronisch", "trombocyten tellen - elektronisch", "hemoglobine foto-elektrisch")
ACC, GYRO = ("x_acc", "y_acc", "z_acc"), ("x_gyro", "y_gyro", "z_gyro")

_fast = Walk(
    ("key",),
    ("type", *GYRO),
    6 * SECOND,
    (
        Stage("a", lambda b, e: e.type == "STANDING_UP" and _length(e, "gyro") > 3),
        Stage("b", _type("WALKING")),
        Stage("c", lambda b, e: e.type == "TURNING" and _length(e, "gyro") > 2, 5, ANY),
        Stage("d", _type("SITTING_DOWN")),
    ),
    every=7,
)
_buy = Walk(("symbol",), ("letters",), DAY, (Stage("t", _chart, 2, ANY), Stage("f", _news, 2, ANY)))
KINDS = (Stage("t", _type("Chart"), 2, ANY), Stage("f", _type("News"), 2, ANY))
_buy_from_letters = Walk(("symbol",), ("type",), DAY, KINDS, run=_over_tweets, every=40)


WALKS = {
    "stock_min_bars/sase_volume_drop": Walk(
        ("symbol",),
        ("close", "volume"),
        30 * MINUTE,
        (
            Stage(
                "a",
                lambda b, e: e.close > sum(x.close for x in b[0]) / len(b[0]) if b[0] else e.volume > 5000,
                3,
                ANY,
            ),
            Stage("b", lambda b, e: e.volume < 0.2 * b[0][-1].volume),
        ),
        every=9,
    ),
    "stock_min_bars/three_down_then_spike": Walk(
        ("symbol",),
        ("type", "close", "volume"),
        10 * MINUTE,
        (
            Stage("a", lambda b, e: e.type == "DOWN" and (not b[0] or e.close < b[0][-1].close), 3, ANY),
            Stage("b", lambda b, e: e.type == "UP" and e.volume > 5 * b[0][-1].volume),
        ),
        every=9,
    ),
    "stock_min_bars/v_recovery": Walk(
        ("symbol",),
        ("close", "volume"),
        60 * MINUTE,
        (
            Stage("a", lambda b, e: e.volume > 5000),
            Stage("b", lambda b, e: e.close <= 0.99 * b[0][0].close),
            Stage("c", lambda b, e: e.close >= b[0][0].close),
        ),
        every=9,
    ),
    "stock_tweets/tech2_then_fund2_1d": _buy,
    "stock_tweets/tech2_then_fund2_3d": replace(_buy, window=3 * DAY),
    "stock_tweets/same_user_burst": Walk(
        ("symbol", "user"), (), 10 * MINUTE, (Stage("m", lambda b, e: True, 5, ANY),), every=3
    ),
    "stock_tweets/upgrade_no_earnings_then_bull": Walk(
        ("symbol",),
        ("letters",),
        DAY,
        (
            Stage("u", lambda b, e: "u" in e.letters),
            Stage("b", lambda b, e: "b" in e.letters, breaks=lambda e: "e" in e.letters),
        ),
    ),
    "stock_tweet_tokens/buy_point": Walk(("symbol",), ("type",), 6 * HOUR, run=_buy_point, every=40),
    "stock_tweet_tokens/tech2_then_fund2_1d": _buy_from_letters,
    "stock_tweet_tokens/tech2_then_fund2_3d": replace(_buy_from_letters, window=3 * DAY),
    "cluster_jobs/fail_fast": Walk(
        ("job_id",),
        ("type",),
        10 * MINUTE,
        (Stage("a", _type("SUBMIT")), Stage("b", _type("SCHEDULE")), Stage("c", _type("FAIL"))),
        every=4,
    ),
    "cluster_jobs/crash_loop": Walk(("logical_name",), ("type",), HOUR, (Stage("f", _type("FAIL"), 3, ANY),)),
    "cluster_jobs/kill_restart_finish": Walk(
        ("logical_name",),
        ("type", "job_id"),
        30 * MINUTE,
        (
            Stage("k", _type("KILL")),
            Stage("s", lambda b, e: e.type == "SUBMIT" and e.job_id != b[0][0].job_id),
            Stage("f", lambda b, e: e.type == "FINISH" and e.job_id == b[1][0].job_id),
        ),
        every=3,
    ),
    "har_phone_watch/shake": Walk(
        ("key",),
        ACC,
        SECOND,
        (Stage("a", lambda b, e: _length(e, "acc") > 20), Stage("b", lambda b, e: _length(e, "acc") < 4)),
        every=4,
    ),
    "har_phone_watch/fast_timed_up_and_go_6s": _fast,
    "har_phone_watch/fast_timed_up_and_go_7s": replace(_fast, window=7 * SECOND, every=10),
    "har_phone_watch/fast_timed_up_and_go_8s": replace(_fast, window=8 * SECOND, every=10),
    "har_phone_watch/swing_peaks": Walk(
        ("key",),
        ("type", *ACC),
        2 * SECOND,
        (
            Stage(
                "p",
                lambda b, e: (
                    e.type == "WALKING" and (not b[0] or e.ts - b[0][-1].ts >= 250_000) and _length(e, "acc") > 15
                ),
                4,
                ANY,
            ),
        ),
        every=6,
    ),
    "sepsis/abx_within_1h": Walk(
        ("patient",), ("type",), HOUR, (Stage("t", _type("ER Sepsis Triage")), Stage("v", _type("IV Antibiotics")))
    ),
    "sepsis/crp_rising": Walk(("patient",), ("type", "value"), 7 * DAY, (Stage("c", _rising, 3, ANY),)),
    "sepsis/lactate_release_return": Walk(
        ("patient",),
        ("type", "value"),
        60 * DAY,
        (
            Stage("l", lambda b, e: e.type == "LacticAcid" and e.value is not None and e.value > 2),
            Stage("a", lambda b, e: e.type.startswith("Admission")),
            Stage("x", lambda b, e: e.type.startswith("Release")),
            Stage("r", _type("Return ER")),
        ),
    ),
    "hospital_bpic11/creatinine3_then_admission": Walk(
        ("patient",),
        ("type",),
        30 * DAY,
        (Stage("c", _type("creatinine"), 3, ANY), Stage("o", _type("190021 klinische opname a002"))),
    ),
    # One of each test. The catalogue's run also takes the repeated tests in between (so its matches are longer), which
    # changes neither where it may begin nor whether it ends.
    "hospital_bpic11/blood_panel_any_order": Walk(
        ("patient",),
        ("type",),
        3 * DAY,
        (
            Stage("l t h", lambda b, e: e.type in PANEL and all(e.type != x.type for x in b[0]), 3, 3),
            Stage("k", _type("kruisproef volledig -drie methoden-")),
        ),
        every=2,
    ),
}
