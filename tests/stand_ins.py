"""Stand-ins for the real streams that are not shipped: made by chance, with the same columns and types.

The letters of tweets are the recorded ones, which are shipped one by one; who wrote the tweets is made up. Tests of
properties that hold on any stream use them; nothing is measured on them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from examples.data import stream

__all__ = ["STAND_INS", "write"]

MINUTE, DAY = 60, 86_400  # seconds
START = 1_700_000_000


def _times(seconds: Any) -> pa.Array:
    return pa.array(np.asarray(seconds, np.int64) * 1_000_000, pa.timestamp("us"))


def _in_order(rows: dict[str, Any], seconds: Any) -> pa.Table:
    """The rows in order of time, numbered."""
    order = np.argsort(np.asarray(seconds), kind="stable")
    table = pa.table({"ts": _times(seconds)} | rows).take(pa.array(order))
    return table.append_column("arrival_seq", pa.array(range(len(order)), pa.int64()))


def bars() -> pa.Table:
    """Minute bars of 17 symbols on a day and some of the next; heavy trade is rare, and prices are restless."""
    random = np.random.default_rng(1)
    symbols, minutes = 17, 400
    step = random.normal(0, 0.002, (symbols, minutes)).round(4)
    step[random.random((symbols, minutes)) < 0.3] = 0
    close = (100 * np.exp(np.cumsum(step, axis=1))).round(2)
    before = np.hstack([np.full((symbols, 1), 100.0), close[:, :-1]])
    volume = np.exp(random.normal(6, 1.8, (symbols, minutes))).astype(np.int64) + 1
    at = np.arange(minutes)
    seconds = START - START % DAY + at // 390 * DAY + 14 * 3600 + at % 390 * MINUTE
    kind = np.where(close > before, "UP", np.where(close < before, "DOWN", "FLAT"))
    rows: dict[str, Any] = {
        "symbol": np.repeat([f"S{n}" for n in range(symbols)], minutes),
        "type": kind.ravel(),
        "open": before.ravel(),
        "high": np.maximum(before, close).ravel(),
        "low": np.minimum(before, close).ravel(),
        "close": close.ravel(),
        "vwap": ((before + close) / 2).ravel(),
        "volume": volume.ravel(),
    }
    return _in_order(rows, np.tile(seconds, symbols))


def tweets() -> pa.Table:
    """The tweets of the shipped letters. A few accounts write on a symbol; some of them in bursts."""
    file = stream("stock_tweet_tokens")
    assert file is not None
    letters = pq.read_table(file)
    whole = letters.group_by(["tweet_id", "symbol"], use_threads=False).aggregate(
        [("ts", "first"), ("type", "list"), ("arrival_seq", "min")]
    )
    words = ["".join(one[1:-1]) for one in whole["type_list"].to_pylist()]  # S and E stand around a tweet
    random = np.random.default_rng(2)
    count = len(words)
    seconds = whole["ts_first"].cast(pa.int64()).to_numpy() // 1_000_000
    who = np.where(random.random(count) < 0.02, seconds // (10 * MINUTE) % 7, random.integers(7, 60, count))
    has = [tuple(bool(set(one) & set(group)) for group in ("bdwr", "geu")) for one in words]
    kinds = {(False, False): "OTHER", (True, False): "TECH", (False, True): "FUND", (True, True): "TECH_FUND"}
    table = pa.table(
        {
            "ts": whole["ts_first"],
            "symbol": whole["symbol"],
            "type": [kinds[one] for one in has],
            "letters": words,
            "tweet_id": whole["tweet_id"],
            "user": [f"account {n}" for n in who],
            "followers": pa.array(np.exp(random.normal(6, 2, count)).astype(np.int32)),
            "is_retweet": pa.array(random.random(count) < 0.2),
            "raw_seq": pa.array(range(count), pa.int64()),
            "arrival_seq": whole["arrival_seq_min"],
        }
    ).sort_by("arrival_seq")
    return table.set_column(table.num_columns - 1, "arrival_seq", pa.array(range(count), pa.int64()))


def sepsis() -> pa.Table:
    """The ways of 150 patients through a hospital."""
    random = np.random.default_rng(3)
    rows: list[tuple[float, str, str, float | None]] = []
    for number in range(150):
        patient, at = f"P{number}", START + random.random() * 300 * DAY

        def add(kind: str, after: float, value: float | None = None, at: float = at, patient: str = patient) -> None:
            rows.append((at + after, patient, kind, value))

        add("ER Registration", 0)
        add("ER Sepsis Triage", 600)
        add("IV Antibiotics", 600 + random.exponential(2 * 3600))
        add("LacticAcid", 1_000, round(float(random.exponential(2)), 1) + 0.1)
        for kind, level in (("CRP", 100), ("Leucocytes", 10)):
            for after in np.cumsum(random.exponential(DAY, random.integers(1, 8))):
                add(kind, 2_000 + float(after), round(float(level * np.exp(random.normal(0, 0.5))), 1))
        add(random.choice(["Admission NC", "Admission IC"]), 2 * 3600)
        add(random.choice([f"Release {letter}" for letter in "ABCDE"]), 9 * DAY)
        if random.random() < 0.3:
            add("Return ER", (9 + 40 * random.random()) * DAY)
    seconds, patients, kinds, values = zip(*rows, strict=True)
    told = {name: pa.nulls(len(rows), pa.bool_()) for name in ("infectionsuspected", "hypotensie", "oligurie")}
    columns = {"patient": patients, "type": kinds, "value": values, "org_group": [k[0] for k in kinds], **told}
    return _in_order(columns, seconds)


def hospital() -> pa.Table:
    """Treatments of 60 patients; times are days."""
    random = np.random.default_rng(4)
    panel = ("leukocyten tellen elektronisch", "trombocyten tellen - elektronisch", "hemoglobine foto-elektrisch")
    kinds = [*panel, "creatinine", "190021 klinische opname a002", "kruisproef volledig -drie methoden-", "ureum"]
    kinds += [f"treatment {n}" for n in range(8)]
    group = {kind: f"department {n % 4}" if n > 3 else "General Lab Clinical Chemistry" for n, kind in enumerate(kinds)}
    count = 6_000
    patient = random.integers(0, 60, count)
    kind = np.array(kinds)[np.minimum(random.integers(0, 15, count), random.integers(0, 15, count))]
    for start in range(0, count, 100):  # a panel, and a crossmatch after it
        kind[start : start + 4] = (*panel, kinds[5])
        patient[start : start + 4] = patient[start]
    columns = {
        "patient": [f"{n:08}" for n in patient],
        "type": kind,
        "org_group": [group[one] for one in kind],
        "specialism": [f"{n % 5}.0" for n in patient],
        "diagnosis": [f"diagnosis {n % 9}" for n in patient],
        "age": patient.astype(float) + 20,
        "n_exec": random.integers(1, 5, count).astype(float),
    }
    return _in_order(columns, START + np.sort(random.integers(0, 600, count)) * DAY)


STAND_INS: dict[str, Callable[[], pa.Table]] = {
    "stock_min_bars": bars,
    "stock_tweets": tweets,
    "sepsis": sepsis,
    "hospital_bpic11": hospital,
}
"""By the name of the stream."""


def write(name: str, folder: Path) -> Path:
    """Write a stand-in into a folder, and give its file."""
    file = folder / f"{name}.parquet"
    pq.write_table(STAND_INS[name](), file)
    return file
