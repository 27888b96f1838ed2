"""The queries of the match windows paper (2012), section 6, on streams that are at hand.

The paper's own streams are not public: chemotherapy events (Onco) and share trades of 34 hours (NYSE). In their place
stand hospital events by patient and one-minute bars of shares. Its Pseq and Pset have k variables, k = 1 .. 10, ten
patterns for each k, drawn from all possible ones; here from the hundred most frequent hospital activities, with the
patient as the partition, and from the seventeen symbols.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa

from examples.data import stream
from experiments import counting, streams
from experiments.workload import Workload

__all__ = ["match_windows"]

DAY = 86_400 * 1_000_000
MINUTE = 60 * 1_000_000
PATTERNS = 10
FREQUENT = 100
SIZES = (100, 1_000, 10_000, 100_000, 599_224)  # |E| in the paper's Figure 8; the last is all that there is


def match_windows() -> Iterable[Workload]:
    """Yield Pseq and Pset with k = 1 .. 10, Ponco and Pnyse with growing windows, and Pnyse with growing |E|.

    Without the streams there are none.
    """
    if any(stream(name) is None for name in ("hospital_bpic11", "stock_min_bars")):
        return
    for stream_name, events, window, within, key in (
        ("hospital", _hospital, "10 d", 10 * DAY, "patient"),
        ("stock", _stock, "1 min", MINUTE, None),
    ):
        types = [name for name, _ in Counter(events()["type"].to_pylist()).most_common(FREQUENT)]
        for k in range(1, 11):
            draw = random.Random(2012 + k)  # noqa: S311 - the same patterns in every run
            drawn = [draw.sample(types, k) for _ in range(PATTERNS)]
            for shape in ("pseq", "pset"):
                yield Workload(
                    f"{shape}-{stream_name}-{k}",
                    f"{k} variables {'in order' if shape == 'pseq' else 'in any order'}, {PATTERNS} patterns,"
                    f" within {window}" + (f", by {key}" if key else ""),
                    events,
                    tuple(_pattern(shape, names, window, key) for names in drawn),
                    counted=partial(_count_matches, shape, drawn, within, key),
                    small=2_000 if k < 6 else 500 if k < 8 else 0,
                    file="hospital_bpic11" if stream_name == "hospital" else "stock_min_bars",
                )
    for days in (5, 10, 20, 30, 40, 50):
        yield Workload(
            f"ponco-{days}",
            f"two laboratory panels in sets, then blood counts, by patient, skip till next match, within {days} d",
            _hospital,
            (_ponco(days),),
            small=2_000,
            file="hospital_bpic11",
        )
    for minutes in (5, 10, 20, 30):
        yield Workload(
            f"pnyse-{minutes}",
            f"two shares rise, interleaved, then a third one falls, skip till next match, within {minutes} min",
            _stock,
            (_pnyse(minutes),),
            small=2_000,
            file="stock_min_bars",
        )
    for rows in SIZES:
        yield Workload(
            f"pnyse-rows-{rows}",
            f"the same within 10 min on the first {rows:,} events",
            partial(_first, rows),
            (_pnyse(10),),
            small=min(rows, 1_000) if rows < 100_000 else 0,
            file="stock_min_bars",
        )


def _hospital() -> pa.Table:
    return streams.read_real("hospital_bpic11", "patient")


def _stock() -> pa.Table:
    return streams.read_real("stock_min_bars", "close", type_of="symbol")


def _first(rows: int) -> pa.Table:
    return _stock().slice(0, rows)


def _pattern(shape: str, types: Sequence[str], window: str, key: str | None) -> str:
    items = ", ".join(f"'{name}' v{number}" for number, name in enumerate(types))
    pattern = f"SEQ({items})" if shape == "pseq" else f"{{{items}}}"
    return f"PATTERN {pattern}" + (f" WHERE [{key}]" if key else "") + f" WITHIN {window}"


def _count_matches(
    shape: str, drawn: Sequence[Sequence[str]], within: int, key: str | None, table: pa.Table, number: int
) -> int:
    if shape == "pset":
        return counting.count_any_sets(table, drawn[number], within, key)
    return counting.count_any_sequences(table, drawn[number], within, key)


def _ponco(days: int) -> str:
    """Return Ponco: two sets of drugs and two of blood counts in the paper, laboratory tests of a panel here."""
    return f"""PATTERN SEQ(
    {{'creatinine' c, 'ureum' d}},
    {{'kalium potentiometrisch'+ p[], 'natrium vlamfotometrisch'+ r[]}},
    {{'leukocyten tellen elektronisch' b, 'hemoglobine foto-elektrisch' h}}
)
WHERE skip_till_next_match(c, d, p[], r[], b, h) {{ [patient] }}
WITHIN {days} d"""


def _pnyse(minutes: int) -> str:
    """Return Pnyse: Apple, Google and IBM in the paper, three symbols that are traded all year here."""
    return f"""PATTERN SEQ({{FDS+ a[], TDG+ g[]}}, LII+ i[])
WHERE skip_till_next_match(a[], g[], i[]) {{
    prev(a.close) < a.close AND prev(g.close) < g.close AND prev(i.close) > i.close
}}
WITHIN {minutes} min"""
