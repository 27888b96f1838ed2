"""Streams of events: generated ones, the same in every run, and real ones (:mod:`examples.data` says where).

Every generated stream is made at its full length and then cut, so that a shorter stream is a prefix of a longer one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from examples.data import stream, whole

__all__ = ["TICKER_ROWS", "file_of", "letters", "positions", "real", "ticker", "walk"]

TICKER_ROWS = 1_000_000
PRICES = 1000

Ints = npt.NDArray[np.int64]


@cache
def ticker(rising: float = 0.7, symbols: int = 2, rows: int = TICKER_ROWS, seed: int = 2008) -> pa.Table:
    """Return stock ticker events after SASE+ (2008), section 6: ``ts`` (0, 1, 2, ...), ``type`` (``Stock``), ``symbol``
    (1 .. ``symbols``, uniform), ``price`` and ``volume`` (1 .. 1000; volume uniform).

    The price of a symbol rises with probability ``rising`` and falls or stays with half of the rest each. The paper
    gives neither the step nor what happens at the end of the range: a step is 1 and prices wrap around. That
    gives what the paper reports of its streams: in the middle of its first experiment about two runs a time step, and
    chains of 250, 4.5 and 140 events on average (section 6.1, Table 2).
    """
    random = np.random.default_rng(seed)
    symbol = random.integers(1, symbols + 1, rows)
    chance = random.random(rows)
    volume = random.integers(1, 1001, rows)
    first = random.integers(0, PRICES, symbols)
    step = np.where(chance < rising, 1, np.where(chance < (1 + rising) / 2, -1, 0))
    price = np.empty(rows, np.int64)
    for number in range(symbols):
        own = symbol == number + 1
        price[own] = (first[number] + np.cumsum(step[own])) % PRICES + 1
    return pa.table(
        {
            "ts": pa.array(np.arange(rows)),
            "type": _texts(np.zeros(rows, np.int64), ["Stock"]),
            "symbol": pa.array(symbol),
            "price": pa.array(price),
            "volume": pa.array(volume),
        }
    )


@cache
def letters(rows: int = 200_000, types: int = 5, keys: int = 100, seed: int = 11) -> pa.Table:
    """Return ``ts`` (0, 1, 2, ...), ``type`` (of ``A``, ``B``, ...), ``key`` (0 .. ``keys`` - 1) and ``value`` (0 ..
    999,999), all uniform."""
    random = np.random.default_rng(seed)
    names = [chr(ord("A") + i) for i in range(types)]
    kind = random.integers(0, types, rows)
    return pa.table(
        {
            "ts": pa.array(np.arange(rows)),
            "type": _texts(kind, names),
            "key": pa.array(random.integers(0, keys, rows)),
            "value": pa.array(random.integers(0, 1_000_000, rows)),
        }
    )


def walk(rows: int = TICKER_ROWS) -> pa.Table:
    """Return a :func:`ticker` of ten symbols whose prices rise and fall about as often."""
    return ticker(rising=0.35, symbols=10, rows=rows, seed=7)


def file_of(name: str) -> Path:
    """Return the file of a real stream. Raises :class:`FileNotFoundError` if there is none."""
    file = stream(name)
    if file is None:
        raise FileNotFoundError(f"there is no stream {name}.parquet in {whole()}")
    return file


@cache
def real(name: str, *columns: str, type_of: str = "type") -> pa.Table:
    """Read a real stream in order of time: ``ts``, ``type`` (the column ``type_of``) and the columns named.

    Raises :class:`FileNotFoundError` where the stream is not there.
    """
    table = pq.read_table(file_of(name), columns=["ts", type_of, "arrival_seq", *columns])
    table = table.sort_by([("ts", "ascending"), ("arrival_seq", "ascending")])
    wanted = {"ts": table["ts"], "type": table[type_of].dictionary_encode()}
    for column in columns:
        held = table[column]
        wanted[column] = held.dictionary_encode() if pa.types.is_large_string(held.type) else held
    return pa.table(wanted)


def positions(keys: Ints) -> Ints:
    """Return the position of each event among those of its key.

    >>> positions(np.array([7, 7, 3, 7, 3])).tolist()
    [0, 1, 0, 2, 1]
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    new = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else np.zeros(0, np.int64)
    place = np.empty(len(keys), np.int64)
    place[order] = np.arange(len(keys)) - np.repeat(new, np.diff(np.r_[new, len(keys)]))
    return place


def _texts(codes: Ints, names: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names))
