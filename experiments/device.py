"""Measure what acep needs on a small machine: ``python -m experiments.device [--events N] [--output FOLDER]``.

The disk that acep and the packages it needs take, and time and memory of ``acep follow`` in a process of its own: for
one event, for a stream that fills its window, and for the same under a bound on memory. The results go to
``docs/results/device.md``; with ``--events`` they are printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.machine import describe_machine
from experiments.results import RESULTS, shorten, table, write

__all__ = ["NEEDED", "Run", "follow_events", "main", "measure_disk", "write_body"]

NEEDED = ("acep", "numpy", "pyarrow", "bitarray", "mmh3")
FULL_RUN = 500_000
FILE = 10_000  # events
BOUND = "16M"
QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.value > a.value AND c.value > b.value WITHIN 20000"
CHUNK = 2**20


@dataclass(frozen=True)
class Run:
    """A run of ``acep follow``: what it is, its events, its time and its greatest resident memory, in bytes."""

    name: str
    events: int
    seconds: float
    memory: int


def measure_disk(package: str) -> int:
    """Return the bytes of an installed package, with the libraries beside it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    origin = Path(str(spec.origin))
    if origin.name != "__init__.py":
        return origin.stat().st_size
    folders = [origin.parent, origin.parent.parent / f"{package}.libs"]
    if package == "acep" and not (origin.parent / "learning").is_dir():  # a checkout has them beside it
        folders += [origin.parent.parent / name for name in ("learning", "sketches")]
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files if not {"__pycache__", "src"} & {*path.parts})


def follow_events(name: str, events: int, *options: str) -> Run:
    """Follow a folder of generated events to its end in another process, and return what that took."""
    rng = random.Random(1)  # noqa: S311 - events, no secrets
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        (folder / "in").mkdir()
        for begin in range(0, events, FILE):
            rows = range(begin, min(begin + FILE, events))
            lines = (f"{ts},{rng.choice('ABCDEF')},{rng.randrange(20)},{rng.random():.4f}\n" for ts in rows)
            (folder / "in" / f"{begin:09}.csv").write_text("ts,type,key,value\n" + "".join(lines))
        command = [sys.executable, "-m", "acep", "follow", QUERY, f"{folder}/in", "--state", f"{folder}/state"]
        command += ["--output", f"{folder}/out", "--points", "--max-files", "1", "--end", "--no-progress", *options]
        began = time.perf_counter()
        process = os.posix_spawn(
            sys.executable, command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
        )
        _, status, used = os.wait4(process, 0)
        seconds = time.perf_counter() - began
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    return Run(name, events, seconds, used.ru_maxrss * 1024)


def write_body(runs: Sequence[Run]) -> str:
    """Return the tables of the page."""
    sizes = {name: measure_disk(name) for name in NEEDED}
    sizes["together"] = sum(sizes.values())
    disk_table = table(("package", "disk"), [(name, f"{size / CHUNK:,.1f} MB") for name, size in sizes.items()])
    rows = [
        (
            run.name,
            f"{run.events:,}",
            f"{run.seconds:.1f} s",
            shorten(run.events / run.seconds),
            f"{run.memory / CHUNK:,.0f} MB",
        )
        for run in runs
    ]
    head = ("`acep follow`", "events", "time", "events a second", "memory of the process, at most")
    return f"{disk_table}\n\n{table(head, rows)}\n\nThe query:\n\n```\n{QUERY}\n```"


WORDS = f"""Written by `python -m experiments.device` ([deploying on a device](../howto/deploying_on_a_device.md)).
The disk that acep and the packages it needs take, without bytecode; and `acep follow --points` on files of {FILE:,}
events each, one a micro-batch."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.device", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--events", type=int, default=FULL_RUN, help=f"how many ({FULL_RUN:,})")
    parser.add_argument("--output", type=Path, help="folder for device.md, device.csv and raw/device.json")
    options = parser.parse_args(arguments)
    runs = [
        follow_events("one event", 1),
        follow_events("no bound", options.events),
        follow_events(f"`--memory {BOUND}`", options.events, "--memory", BOUND),
    ]
    page = write_body(runs)
    print(page)
    folder = options.output or (RESULTS if options.events == FULL_RUN else None)
    if folder:
        rows = [asdict(run) for run in runs]
        print(
            write(
                folder, "device", title="A small device", words=WORDS, machine=describe_machine(), body=page, rows=rows
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
