"""The speed on Spark: ``python -m experiments.spark [--rows R,..] [--routes NAME,..] [--repeat N] [--output FOLDER]``.

All routes run in one session with two cores, in random order in each repetition. With no option the results go to
``docs/results/``; otherwise they are printed, and written where ``--output`` says.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from acep.errors import AcepError
from acep.spark.failures import error_in
from acep.spark.session import get_session
from experiments.machine import describe_machine
from experiments.results import RESULTS, shorten
from experiments.spark.figures import Cell, cells
from experiments.spark.page import write_results
from experiments.spark.routes import ROUTES, Route, choose_routes, explain_missing
from experiments.spark.running import Run, WrongMatchesError, events, run_static, run_stream, write_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

CORES = 2
ROWS = (1_000, 25_000, 200_000, 1_000_000)
MIN_BATCHES, MAX_BATCHES = 8, 40  # micro-batches of a stream
FILES = 20  # of a static DataFrame
WARM = (3, 20_000)  # micro-batches, and rows of each, that every route runs before it is measured


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Refuse an option in one line."""
        self.exit(2, f"{self.prog}: {message}\n")


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise ValueError(text)
    return number


_positive.__name__ = "positive number"  # as argparse calls it where it refuses one


def _options() -> argparse.ArgumentParser:
    parser = _Options(prog="python -m experiments.spark", description=(__doc__ or "").partition("\n")[0])
    sizes_text = ",".join(map(str, ROWS))
    parser.add_argument("--rows", help=f"rows a micro-batch, with commas ({sizes_text})")
    parser.add_argument("--routes", help="names or beginnings of names, with commas: yardstick,state (all)")
    parser.add_argument("--repeat", type=_positive, default=5, help="repetitions (5)")
    parser.add_argument("--events", type=_positive, default=4_000_000, help="events of a stream, about (4000000)")
    parser.add_argument(
        "--batches", type=_positive, default=MAX_BATCHES, help=f"micro-batches of a stream at most ({MAX_BATCHES})"
    )
    parser.add_argument("--partitions", type=_positive, default=CORES, help=f"of the yardstick's shuffle ({CORES})")
    parser.add_argument("--buckets", type=_positive, help="buckets of acep (its default)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of runs (0)")
    parser.add_argument("--output", type=Path, help="folder for spark.csv, spark.md and spark.svg")
    parser.add_argument("--list", action="store_true", help="list the routes")
    return parser


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Run the command, in ``session`` if one is given; 1 where a route fails or finds other matches than there are."""
    parser = _options()
    options = parser.parse_args(arguments)
    try:
        routes = choose_routes(options.routes.split(",") if options.routes else [])
        sizes = sorted({_positive(size) for size in options.rows.split(",")}) if options.rows else list(ROWS)
    except ValueError as error:
        message = str(error)
        parser.error(
            message
            if message.startswith("no route")
            else f"argument --rows: {options.rows!r} is no list of positive numbers"
        )
    if options.batches < 2:
        parser.error("argument --batches: the first micro-batch does not count, so at least 2")
    if options.list:
        print("\n".join(f"{route.name:18s}{route.about}" for route in ROUTES.values()))
        return 0
    notes = [note for route in routes if (note := explain_missing(route))]
    print("".join(f"left out: {note}\n" for note in notes), end="", flush=True)
    usual = all(
        getattr(options, option) == parser.get_default(option)
        for option in vars(options)
        if option not in ("output", "seed")
    )
    folder = options.output or (RESULTS if usual else None)
    runs: list[Run] = []
    spark = session or get_session(
        **{"spark.master": f"local[{CORES}]", "spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "4g"}
    )
    work = Path(tempfile.mkdtemp(prefix="acep-bench-"))
    try:
        for run in measure_routes(
            spark, [route for route in routes if not explain_missing(route)], sizes, work, options
        ):
            runs.append(run)
            middle = sorted(run.trigger_times)[len(run.durations) // 2]
            speed = shorten(run.rows / middle * 1000)
            print(f"{run.repetition} {run.rows:>9,} {run.route:18s}{middle:8.0f} ms  {speed:>7s} events/s", flush=True)
    except Exception as failure:
        acep_error = failure if isinstance(failure, WrongMatchesError | AcepError) else error_in(failure)
        if acep_error is None:
            raise
        print(f"python -m experiments.spark: {acep_error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if session is None:
            spark.stop()
    figures = cells(runs)
    print("\n".join(map(_line, figures)))
    if folder:
        machine = describe_machine() | {"pyspark": metadata.version("pyspark")}
        print(f"written to {write_results(folder, figures, machine, notes)}")
    return 0


def measure_routes(
    spark: SparkSession, routes: Sequence[Route], sizes: Sequence[int], work: Path, options: argparse.Namespace
) -> Iterator[Run]:
    """Measure all runs. In each repetition sizes and routes come in random order, so that a slower hour affects all of
    them."""
    streams, static = ([route for route in routes if route.static is kind] for kind in (False, True))
    route_options = {"partitions": options.partitions, "buckets": options.buckets}
    numbers = {rows: min(max(options.events // rows, MIN_BATCHES), options.batches) for rows in sizes if streams}
    longest = max([options.events, *(rows * number for rows, number in numbers.items())])
    all_events = events(longest)
    for rows, number in numbers.items():
        write_events(all_events.slice(0, rows * number), work / str(rows), rows, end=True)
    if static:
        write_events(all_events.slice(0, options.events), work / "static", -(-options.events // FILES), end=False)
    warm, few = WARM[0], min(WARM[1], *sizes)
    if streams:
        write_events(all_events.slice(0, warm * few), work / "warm", few, end=True)
    for route in streams:
        run_stream(spark, route, work / "warm", few, warm, 0, **route_options)
    order = random.Random(options.seed)  # noqa: S311 - the order of runs is no secret
    for repetition in range(options.repeat):
        for rows in order.sample([*numbers], len(numbers)):
            for route in order.sample(streams, len(streams)):
                yield run_stream(spark, route, work / str(rows), rows, numbers[rows], repetition, **route_options)
        for route in order.sample(static, len(static)):
            yield run_static(spark, route, work / "static", options.events, repetition, **route_options)


def _line(cell: Cell) -> str:
    text = (
        f"{cell.route:18s}{cell.rows:>9,} rows  {shorten(cell.events_per_second):>7s} events/s  ratio {cell.ratio:.3f}"
    )
    text += f" ({cell.ratio_low:.3f} to {cell.ratio_high:.3f})"
    text += f"  {cell.more_ms:+.0f} ms ({cell.more_low:+.0f} to {cell.more_high:+.0f})"
    return f"{text}  state {cell.state_bytes / 1e6:.2f} MB" if cell.state_bytes >= 0 else text


if __name__ == "__main__":
    sys.exit(main())
