"""Measure exact runs of two commits by turns, each in a process of its own, on the streams of the repository."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa

from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS
from experiments.workload import Workload
from experiments.workloads import WORKLOADS

__all__ = ["OUTPUTS", "Case", "Compared", "Refused", "Worker", "choose_cases", "compare_case"]

WORKER = Path(__file__).with_name("worker.py")
OUTPUTS = ("points", "bundles", "count")
USUAL_GROUPS = ("w1", "w2", "w3", "v")
"""Of the benchmarks that are light for acep, those that are measured unless others are named."""
HEAVY_RATE = 200_000
"""A workload is heavy for an output if the other commit does at most so many events a second."""
ENOUGH, REPEATS_OF_SHORT = 1.0, 10
"""Runs are repeated until both commits together took so many seconds, but at most so many times as often."""


@dataclass(frozen=True)
class Case:
    """A workload as both commits take it: a stream, and queries as :func:`experiments.commits.worker.parse_query` reads
    them."""

    name: str
    about: str
    events: Callable[[], pa.Table]
    queries: tuple[Mapping[str, Any], ...]

    @classmethod
    def from_workload(cls, workload: Overload | Workload) -> Case:
        """Return the case of a workload of either kind."""
        if isinstance(workload, Workload):
            queries: list[dict[str, Any]] = [{"text": text} for text in workload.queries]
        else:
            fields = ("text", "errors", "within", "by")
            queries = [{name: getattr(workload, name) for name in fields}]
        return cls(workload.name, workload.about, workload.events, tuple(queries))


@dataclass(frozen=True)
class Compared:
    """What two commits took for one output of a workload. ``cpu`` and ``other_cpu``: seconds of the processor in the
    best of ``runs`` runs; ``spread``: how much longer the slowest run of the other commit took than its best one, as a
    share. ``size``: match points, bundles or matches; ``same``: both found the same. ``work``: transition evaluations;
    ``partial_matches``: those made. ``error``: why there is no figure."""

    workload: str
    output: str
    events: int
    runs: int = 0
    cpu: float = 0.0
    other_cpu: float = 0.0
    spread: float = 0.0
    size: int = 0
    same: bool = True
    work: int = 0
    partial_matches: int = 0
    other_work: int = 0
    other_partial_matches: int = 0
    error: str | None = None

    @property
    def ratio(self) -> float:
        """Return how many times less time this code takes than the other commit."""
        return self.other_cpu / self.cpu

    @property
    def is_heavy(self) -> bool:
        """Return whether the other commit does at most ``HEAVY_RATE`` events a second."""
        return self.events <= HEAVY_RATE * self.other_cpu


class Refused(Exception):  # noqa: N818 - not an error of ours: it becomes data
    """Why a worker has no answer."""


class Worker:
    """A process that matches one stream with the acep of one Python, as often as it is asked."""

    def __init__(self, python: str | Path, file: Path, queries: Sequence[Mapping[str, Any]]) -> None:
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(  # noqa: S603 - a Python that the user or build_commit names
            [str(python), "-I", str(WORKER), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            bufsize=1,
        )
        self._send(json.dumps(queries))

    def measure(self, output: str, limit: float) -> dict[str, Any]:
        """Match once, and return what :func:`experiments.commits.worker.measure` does. Raises :class:`Refused` where
        that fails, takes more than ``limit`` seconds, or the process ends."""
        assert self.process.stdout is not None
        self._send(output)
        if not select.select([self.process.stdout], [], [], limit)[0]:
            raise Refused(f"took more than {limit:g} s")
        line = self.process.stdout.readline()
        if not line:
            raise Refused(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def close(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.communicate()
        self.complaints.close()

    def _send(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Refused(self._last_words()) from None

    def _last_words(self) -> str:
        code = self.process.wait()
        self.complaints.seek(0)
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with code {code}"


def choose_cases(names: Sequence[str]) -> list[Case]:
    """Return the cases whose names match one of the patterns; without any, all workloads of best effort and the light
    ones of ``USUAL_GROUPS``. Raises :class:`ValueError` for a pattern that matches none.

    >>> [case.name for case in choose_cases(["heavy-names-*", "w2-next"])]
    ['heavy-names-k0-40s', 'w2-next']
    """
    workloads: dict[str, Overload | Workload] = {**OVERLOADS, **WORKLOADS}
    if not names:
        chosen = [*OVERLOADS, *(name for name, workload in WORKLOADS.items() if workload.group in USUAL_GROUPS)]
    else:
        for pattern in names:
            if not any(fnmatchcase(name, pattern) for name in workloads):
                raise ValueError(f"there is no workload {pattern!r}: {', '.join(workloads)}")
        chosen = [name for name in workloads if any(fnmatchcase(name, pattern) for pattern in names)]
    return [Case.from_workload(workloads[name]) for name in chosen]


def compare_case(
    case: Case, other: str | Path, outputs: Sequence[str], *, repeats: int, scale: float = 1.0, limit: float = 300.0
) -> Iterator[Compared]:
    """Measure a case with this code and with the acep of another Python by turns, for each output at least ``repeats``
    times, on a share (``scale``) of its stream. A run that takes more than ``limit`` seconds is given up."""
    try:
        stream = case.events()
    except FileNotFoundError as error:
        yield from (Compared(case.name, output, 0, error=str(error)) for output in outputs)
        return
    events = stream.slice(0, max(1, round(stream.num_rows * scale)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, events.schema) as writer:
            writer.write_table(events)
        for output in outputs:  # new processes for each, so that one given up costs only itself
            yield _compare_output(case, other, output, file, events.num_rows, repeats, limit)


def _compare_output(
    case: Case, other: str | Path, output: str, file: Path, n_events: int, repeats: int, limit: float
) -> Compared:
    workers: list[Worker] = []
    try:
        for python in (sys.executable, other):
            workers.append(Worker(python, file, case.queries))  # noqa: PERF401 - those begun are closed if one fails
        runs = _run_by_turns(workers, output, repeats, limit)
    except Refused as error:
        return Compared(case.name, output, n_events, error=str(error))
    finally:
        for worker in workers:
            worker.close()
    (own_run, other_run) = (min(of_one, key=lambda run: run["cpu"]) for of_one in zip(*runs, strict=True))
    times = [run["cpu"] for _, run in runs]
    answers = {(run["size"], run["digest"]) for pair in runs for run in pair}
    return Compared(
        case.name,
        output,
        n_events,
        runs=len(runs),
        cpu=own_run["cpu"],
        other_cpu=other_run["cpu"],
        spread=max(times) / min(times) - 1,
        size=other_run["size"],
        same=len(answers) == 1,
        work=own_run["work"],
        partial_matches=own_run["partial_matches"],
        other_work=other_run["work"],
        other_partial_matches=other_run["partial_matches"],
    )


def _run_by_turns(workers: Sequence[Worker], output: str, repeats: int, limit: float) -> list[list[dict[str, Any]]]:
    """Return runs of both workers. Who is first alternates, and short runs are repeated more often."""
    runs: list[list[dict[str, Any]]] = []
    seconds = 0.0
    while len(runs) < repeats or (seconds < ENOUGH and len(runs) < REPEATS_OF_SHORT * repeats):
        in_turn = list(workers) if len(runs) % 2 == 0 else list(reversed(workers))
        answers = {id(worker): worker.measure(output, limit) for worker in in_turn}
        runs.append([answers[id(worker)] for worker in workers])
        seconds += sum(run["cpu"] for run in runs[-1])
    return runs
