"""Streams of events: generated ones, the same in every run, and real ones (:mod:`examples.data` says where).

Every generated stream is made at its full length and then cut, so that a shorter stream is a prefix of a longer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from examples.data import stream, whole_folder

__all__ = [
    "GENERATED",
    "TICKER_ROWS",
    "file_of",
    "football",
    "letters",
    "network",
    "positions",
    "read_real",
    "ticker",
    "walk",
]

TICKER_ROWS = 1_000_000
PRICES = 1000

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
        is_of_symbol = symbol == number + 1
        price[is_of_symbol] = (first[number] + np.cumsum(step[is_of_symbol])) % PRICES + 1
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


@cache
def football(games: int = 4, events: int = 20_000, seed: int = 1863) -> pa.Table:
    """Return what happens in ``games`` of football, all played at once: ``ts`` (microseconds), ``type``, ``game``,
    ``team`` (0, 1), ``player`` (0 .. 10 and 11 .. 21 of a game), ``target`` (to whom a PASS goes, on whom a FOUL is;
    else null), ``x`` and ``y`` (metres; team 0 plays towards greater ``x``).

    The ball is passed to one of the six nearest numbers of the team, mostly the nearest two, so that two players often
    pass by turns; or the player touches it and moves on, mostly forwards. An opponent may touch it within some metres,
    which may win the ball or be followed by a FOUL. A SHOT comes only within 30 m of the goal. About three events come
    in a second.
    """
    random = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {name: [] for name in ("ts", "type", "game", "team", "player", "target", "x", "y")}
    for game in range(games):
        times = np.cumsum(random.exponential(3e5, events)).astype(np.int64)
        columns["ts"] += times.tolist()
        columns["game"] += [game] * events
        for kind, team, player, target, x, y in _play(random.random((events, 5)), random.normal(0, 1, (events, 2))):
            columns["type"].append(kind)
            columns["team"].append(team)
            columns["player"].append(11 * team + player)
            columns["target"].append(target)
            columns["x"].append(round(x, 1))
            columns["y"].append(round(y, 1))
    table = pa.table({**columns, "type": pa.array(columns["type"]).dictionary_encode()}).sort_by("ts")
    return table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us")))


def _play(chances: Floats, steps: Floats) -> Iterator[tuple[str, int, int, int | None, float, float]]:
    """Yield type, team, player (0 .. 10), target, x and y of the events of a game."""
    team, player, x, y = 0, 9, 52.5, 34.0
    for (chance, partner, opponent, win, finish), (dx, dy) in zip(chances.tolist(), steps.tolist(), strict=True):
        forwards = 1 if team == 0 else -1
        to_goal = 105 - x if team == 0 else x
        if to_goal < 30 and finish < 0.1:
            yield "SHOT", team, player, None, x, y
            team, player, x, y = 1 - team, 0, 52.5, 34.0
        elif chance < 0.5:
            near = (1, -1, 2, -2, 3, -3)[int(6 * partner * partner)]
            receiver = (player + near) % 11
            yield "PASS", team, player, 11 * team + receiver, x, y
            player, x, y = receiver, _clamp(x + 9 * dx, 105), _clamp(y + 9 * dy, 68)
        elif chance < 0.8:
            x, y = _clamp(x + forwards * 2 + 4 * dx, 105), _clamp(y + 4 * dy, 68)
            yield "TOUCH", team, player, None, x, y
        else:
            rival = (10 - player + int(3 * opponent)) % 11
            point = _clamp(x + 3 * dx, 105), _clamp(y + 3 * dy, 68)
            if win < 0.12:
                yield "FOUL", 1 - team, rival, 11 * team + player, *point
            else:
                yield "TOUCH", 1 - team, rival, None, *point
                if win > 0.7:
                    team, player = 1 - team, rival


def _clamp(coordinate: float, most_metres: float) -> float:
    return min(max(coordinate, 0.0), most_metres)


@cache
def network(rows: int = 100_000, hosts: int = 25, names: int = 400, seed: int = 1983) -> pa.Table:
    """Return what ``hosts`` in a network do: ``ts`` (microseconds, about 20 events a second), ``type``, ``host``,
    ``name`` (looked up by a DNS event, spoken with by a TLS event; else null), ``dest`` (the host that a CONN event
    leads to; else null), ``port`` (of TLS and CONN; else null) and ``bytes``.

    A host takes one of the names by Zipf's law, a different order of them for each group of five hosts, and one time in
    three the one that it took two events before. Most connections lead to the next few hosts.
    """
    random = np.random.default_rng(seed)
    kind = random.choice(3, rows, p=(0.55, 0.2, 0.25))
    host = random.integers(0, hosts, rows)
    rank = np.minimum(random.zipf(1.4, rows), names) - 1
    name = (rank + 37 * (host // 5)) % names
    repeats = random.random(rows) < 1 / 3
    for number in range(hosts):
        places = np.flatnonzero((host == number) & (kind < 2))
        name[places[2:]] = np.where(repeats[places[2:]], name[places[:-2]], name[places[2:]])
    dest = (host + random.geometric(0.25, rows)) % hosts
    ports = random.choice((22, 80, 443, 445, 3389, 8080), rows, p=(0.3, 0.2, 0.2, 0.15, 0.1, 0.05))
    times = np.cumsum(random.exponential(50_000, rows)).astype(np.int64)
    texts = pa.array([f"n{number}.example" for number in range(names)])
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "type": _texts(kind, ["DNS", "TLS", "CONN"]),
            "host": pa.array(host),
            "name": pa.DictionaryArray.from_arrays(pa.array(name.astype(np.int16), mask=kind == 2), texts),
            "dest": pa.array(dest, mask=kind != 2),
            "port": pa.array(np.where(kind == 1, 443, ports), mask=kind == 0),
            "bytes": pa.array(random.lognormal(6, 1.5, rows).astype(np.int64)),
        }
    )


GENERATED: dict[str, Callable[[], pa.Table]] = {"football": football, "network": network}
"""Generated streams that look like recorded ones, by name."""


def file_of(name: str) -> Path:
    """Return the file of a real stream. Raises :class:`FileNotFoundError` if there is none."""
    file = stream(name)
    if file is None:
        raise FileNotFoundError(f"there is no stream {name}.parquet in {whole_folder()}")
    return file


@cache
def read_real(name: str, *columns: str, type_of: str = "type") -> pa.Table:
    """Read a real stream in order of time: ``ts``, ``type`` (the column ``type_of``) and the columns named.

    Raises :class:`FileNotFoundError` where the stream is not there.
    """
    table = pq.read_table(file_of(name), columns=["ts", type_of, "arrival_seq", *columns])
    table = table.sort_by([("ts", "ascending"), ("arrival_seq", "ascending")])
    selected = {"ts": table["ts"], "type": table[type_of].dictionary_encode()}
    for column in columns:
        values = table[column]
        selected[column] = values.dictionary_encode() if pa.types.is_large_string(values.type) else values
    return pa.table(selected)


def positions(keys: Ints) -> Ints:
    """Return the position of each event among those of its key.

    >>> positions(np.array([7, 7, 3, 7, 3])).tolist()
    [0, 1, 0, 2, 1]
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    new = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else np.zeros(0, np.int64)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - np.repeat(new, np.diff(np.r_[new, len(keys)]))
    return ranks


def _texts(codes: Ints, names: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names))
