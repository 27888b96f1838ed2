"""Replay a stream through Spark Structured Streaming with an error budget (``python -m acep.demo``).

The stream is minute bars of shares if available (under ``ACEP_DATA``, or ``../shared/data``), else the cluster jobs of
the repository in ``examples/data``, else a generated ticker like that of the SASE+ paper (section 6). Arguments select
another stream and query.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import AcepError, DataError

__all__ = ["main", "ticker"]

SHOWN_MATCHES = 8
CHUNKS = 12

DIP = """\
PATTERN SEQ(DOWN a, DOWN b, DOWN c, UP d, UP e)
WHERE skip_till_next_match(a, b, c, d, e) { [symbol]
  AND b.close < a.close AND c.close < b.close AND c.close <= 0.99 * a.close
  AND d.close > c.close AND e.close > d.close AND e.close >= a.close }
WITHIN 30 minutes
RETURN a.close AS before, c.close AS low, e.close AS after"""
DIP_WORDS = "a share falls by 1 % and is back within half an hour, in steps: down, down, down, up, up"
DIP_WEIGHTS = {"a": None, "c": None, "e": None}

FAILED = """\
PATTERN SEQ(SUBMIT a, SCHEDULE b, FAIL c, SUBMIT d, SCHEDULE e, FINISH f)
WHERE skip_till_next_match(a, b, c, d, e, f) { [logical_name]
  AND b.job_id = a.job_id AND c.job_id = b.job_id
  AND d.job_id <> c.job_id AND e.job_id = d.job_id AND f.job_id = e.job_id }
WITHIN 1 hour
RETURN a.job_id AS failed, f.job_id AS finished"""
FAILED_WORDS = "a job fails, and within an hour another of the same name finishes"
FAILED_WEIGHTS = {"c": None, "d": None, "f": None}

SWING = """\
PATTERN SEQ(Stock a, Stock b, Stock c, Stock d)
WHERE skip_till_next_match(a, b, c, d) { [symbol]
  AND a.volume > 990 AND b.volume <= 10 AND c.volume > 990 AND d.volume <= 10
  AND b.price > a.price AND c.price > b.price AND d.price > c.price }
WITHIN 150 EVENTS
RETURN a.price AS first, d.price AS last"""
SWING_WORDS = "volume swings from very high to very low, twice, while the price rises"
SWING_WEIGHTS = {"a": None, "d": None}

RECORDED = {
    "stock_min_bars.parquet": ("one-minute bars of shares", DIP, DIP_WEIGHTS, DIP_WORDS),
    "cluster_jobs.parquet": ("events of jobs of a cluster", FAILED, FAILED_WEIGHTS, FAILED_WORDS),
}
"""By file name: the description of a recorded stream, and a query for it with its weights and description."""


def ticker(rows: int, seed: int = 1, rise: float = 0.7) -> pa.Table:
    """Generate trades: ``ts`` (0, 1, ...), ``type``, two ``symbol``s, ``price`` and ``volume`` from 1 to 1000.

    From one trade of a symbol to the next, its price rises by one with probability ``rise``; otherwise it falls by one
    or stays, with equal probability. Prices wrap around within 1 to 1000. Symbols and volumes are uniform.
    """
    rng = np.random.default_rng(seed)
    symbol = rng.integers(0, 2, rows)
    step = np.where(rng.random(rows) < rise, 1, -rng.integers(0, 2, rows))
    price = np.empty(rows, np.int64)
    for share in (0, 1):
        price[symbol == share] = (500 + np.cumsum(step[symbol == share]) - 1) % 1000 + 1
    return pa.table(
        {
            "ts": np.arange(rows),
            "type": pa.array(["Stock"] * rows),
            "symbol": pa.array(np.array(["one", "two"])[symbol].tolist()),
            "price": price,
            "volume": rng.integers(1, 1001, rows),
        }
    )


def main(argv: list[str] | None = None) -> int:
    """Run the demo with these arguments (``sys.argv`` by default); return 2 for bad input, 130 if interrupted."""
    try:
        _demo(_arguments(argv))
    except AcepError as error:
        sys.stderr.write(f"acep.demo: {error.render()}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m acep.demo", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", metavar="FILE", help="events: .csv, .parquet or .jsonl")
    parser.add_argument("--query", metavar="FILE", help="a file with a SASE+ query")
    parser.add_argument("--rows", type=int, metavar="N", help="the first N events only (made up: 200,000)")
    parser.add_argument("--errors", type=int, default=1, metavar="K", help="how much may be missing (default 1)")
    for name, words in (("ts", "the time"), ("type", "the event type")):
        parser.add_argument(f"--{name}", default=name, metavar="COL", help=f"the column of {words} (default {name})")
    parser.add_argument("--unit", metavar="U", help="the unit of an integer time: ns, us, ms, s, min, h or d")
    return parser.parse_args(argv)


def _stream(args: argparse.Namespace) -> tuple[pa.Table, str, str, Any, str]:
    """Return the events, their description, and the query's text, weights and description."""
    from acep.events.files.reading import read_events

    recorded = next((p for p in _places() if p.is_file()), None)
    if args.events is not None:
        table, what = read_events(args.events, ts=args.ts, type=args.type), args.events
        text, weights, words = DIP, DIP_WEIGHTS, DIP_WORDS
    elif recorded is not None:
        what, text, weights, words = RECORDED[recorded.name]
        table, what = read_events(recorded), f"{what}, {recorded.name}"
    else:
        table, what = ticker(args.rows or 200_000), "a made-up ticker of two shares"
        text, weights, words = SWING, SWING_WEIGHTS, SWING_WORDS
    if args.query is not None:
        try:
            text, weights, words = Path(args.query).read_text(encoding="utf-8").strip(), {}, ""
        except OSError as bad:
            raise DataError(f"`{args.query}` cannot be read: {bad.strerror}", code="file_read") from None
    return (table.slice(0, args.rows) if args.rows else table), what, text, weights, words


def _places() -> list[Path]:
    folder_name = os.environ.get("ACEP_DATA")
    roots = (Path(__file__).resolve().parents[1], Path.cwd())
    folders = [Path(folder_name)] if folder_name else [root.parent / "shared" / "data" for root in roots]
    shipped = [root / "examples" / "data" for root in roots]
    return [folder / name for name in RECORDED for folder in (*folders, *shipped)]


def _demo(args: argparse.Namespace) -> None:
    from acep.pattern.text.sase import parse
    from acep.spark.replay import replay

    table, what, text, weights, words = _stream(args)
    query = parse(text, errors=args.errors, weights=weights)
    print(f"Stream: {table.num_rows:,} events, {what}")
    print(f"Query:  {words}\n" if words else "Query:")
    print("\n".join(f"  {line}" for line in text.splitlines()))
    spared = [name for name in weights if weights[name] is None]
    but = f" ({', '.join(spared)} may not)" if spared else ""
    print(f"\nOf the steps, {args.errors} may be missing{but}.\n" if args.errors else "\nNothing may be missing.\n")
    print("Replaying through Spark Structured Streaming ...", flush=True)
    chunk = max(2_000, -(-table.num_rows // CHUNKS))
    summary = replay(query, table, ts=args.ts, type=args.type, unit=args.unit, chunk=chunk, progress=True)
    rows = summary.table(SHOWN_MATCHES).to_pylist(maps_as_pydicts="strict")
    if rows:
        print("\nThe first matches:")
    for row in rows:
        print(f"  {_line(row)}")
    print(f"\n{summary}")
    if args.errors and summary.matches:
        exact = summary.frame().where("error = 0").count()
        print(f"{exact:,} of them have nothing missing: {summary.matches - exact:,} came by the error budget")


def _line(row: dict[str, Any]) -> str:
    key = " ".join(str(value) for value in (row.get("key") or {}).values())
    bindings = "  ".join(f"{var}={','.join(map(str, ids))}" for var, ids in row["bindings"].items())
    values = ", ".join(f"{name} {value}" for name, value in (row.get("values") or {}).items())
    missing = f"{row['error']} missing" if row["error"] else "complete"
    return f"{key:6} {row['start']} to {row['end']}  {missing:9}  events {bindings}{'  ' + values if values else ''}"


if __name__ == "__main__":
    sys.exit(main())
