"""Match a stream with the acep that this Python imports, as often as it is asked: the process that is measured.

It imports nothing else from the repository, so that it runs with any commit, by its path: ``python -I worker.py FILE``.
FILE has the events as an Arrow stream. The first line on the standard input is a list of queries as JSON; each further
line is an output, and is answered by a line of JSON (:func:`measure`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import pyarrow as pa

import acep

__all__ = ["digest", "measure", "parse_query"]

WARM_UP = 1_000
"""Events of the run before the first one that is measured."""


def parse_query(query: dict[str, Any]) -> Any:
    """Parse a query: SASE+ ``text`` with ``errors``, or, where there is ``within``, a letter expression."""
    if query.get("within") is None:
        return acep.parse(query["text"], errors=query.get("errors", 0))
    return acep.regex(query["text"], within=query["within"], by=query.get("by"), errors=query.get("errors", 0))


def measure(events: pa.Table, queries: Sequence[Any], output: str) -> dict[str, Any]:
    """Match all queries, one after another; return the seconds of the processor until the results are there (``cpu``),
    how many results there are (``size``), a digest of them, and the transition evaluations (``work``) and partial
    matches made (``partial_matches``) of the reports."""
    start = time.process_time()
    answers = [acep.match(events, query, output=output) for query in queries]
    if output == "matches":
        tables = [answer.to_arrow() for answer in answers]
        assert all(table.num_rows == len(answer) for table, answer in zip(tables, answers, strict=True))
    cpu = time.process_time() - start
    return {
        "cpu": cpu,
        "size": sum(int(answer) if output == "count" else len(answer) for answer in answers),
        "digest": digest(answers, output),
        "work": sum(answer.report.work for answer in answers),
        "partial_matches": sum(answer.report.made for answer in answers),
    }


def digest(answers: Sequence[Any], output: str) -> str:
    """Return a digest of results, in their order: of numbers, match points, bundles, or matches."""
    total = sha256()
    for answer in answers:
        for line in _lines(answer, output):
            total.update(line.encode() + b"\n")
        total.update(b"\n")
    return total.hexdigest()[:16]


def _lines(answer: Any, output: str) -> Iterator[str]:
    match output:
        case "count":
            yield str(int(answer))
        case "points":
            yield from (f"{point.key} {point.point} {point.best}" for point in answer)
        case "bundles":
            yield from (f"{each.key} {each.start} {each.end} {each.matches} {each.best}" for each in answer)
        case _:
            yield from (f"{match.key} {match.bindings} {match.error}" for match in answer)


def main(arguments: Sequence[str]) -> None:
    """Answer until the standard input ends."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    (file,) = arguments
    with pa.memory_map(file) as source:
        events = pa.ipc.open_stream(source).read_all()
    queries = [parse_query(query) for query in json.loads(sys.stdin.readline())]
    is_warm = False
    for line in sys.stdin:
        try:
            if not is_warm:
                measure(events.slice(0, WARM_UP), queries, line.strip())
                is_warm = True
            answer = measure(events, queries, line.strip())
        except (acep.AcepError, MemoryError, ValueError) as error:
            answer = {"error": (str(error).splitlines() or [type(error).__name__])[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
