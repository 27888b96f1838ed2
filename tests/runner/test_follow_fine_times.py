"""`acep follow` writes times with fractions of a microsecond, in each format as `acep match` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from acep.cli import main
from tests.runner.streams import fast_disk

QUERY = "PATTERN SEQ(a p, b q) WITHIN 2 s RETURN p.x AS px, q.x AS qx, q.ts - p.ts AS gap"
FRACTIONS = ["000000001", "5", "000000000", "123456789", "25", "1234567"]


@pytest.fixture(autouse=True)
def _fast_disk() -> Iterator[None]:
    with fast_disk():
        yield


def written(folder: Path, form: str, zone: str, options: list[str]) -> tuple[str, str]:
    """Return what a follower and what a match write of the same events."""
    (folder / "in").mkdir()
    times = [f"2024-01-01T00:00:0{i}.{fraction}{zone}" for i, fraction in enumerate(FRACTIONS)]
    rows = "".join(f"{time},{'ab'[i % 2]},{time}\n" for i, time in enumerate(times))
    (folder / "in" / "1.csv").write_text(f"ts,type,x\n{rows}")
    into, output = folder / "found", folder / f"matches.{form}"
    places = ["--state", str(folder / "state"), "--output", str(into), "--output-format", form]
    assert main(["follow", QUERY, str(folder / "in"), *places, "--end", *options]) == 0
    assert main(["match", QUERY, str(folder / "in"), "--output", str(output), *options]) == 0
    (followed,) = into.iterdir()
    return followed.read_text(), output.read_text()


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("zone", ["", "Z"])
@pytest.mark.parametrize("options", [[], ["--cast", "ts=timestamp(ns)"], ["--flat"]], ids=["plain", "cast", "flat"])
def test_nanoseconds_are_written_as_by_match(form: str, zone: str, options: list[str], tmp_path: Path) -> None:
    followed, matched = written(tmp_path, form, zone, options)
    assert followed == matched
    assert f"2024-01-01T00:00:03.123456789{zone}" in followed
    if form == "jsonl" and not options:
        first = json.loads(followed.splitlines()[0])
        assert (first["start"], first["end"]) == (
            f"2024-01-01T00:00:00.000000001{zone}",
            f"2024-01-01T00:00:01.500000{zone}",
        )
