"""A file larger than the memory that `acep match` may take: the right number of matches, and the peak of memory.

``ACEP_FILE_MB`` is the size of the file (500 if it is not set); below 1,000 the bound is 300 MB, from there on 1 GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from acep.native.compiled import why_not

MEGABYTES = int(os.environ.get("ACEP_FILE_MB") or 500)
BOUND = 300 if MEGABYTES < 1000 else 1000
ROWS = 1 << 16
EVERY = 64  # each so many rows there is one match

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_not() is not None, reason="the reference engine takes minutes for so many events"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell the peak of memory"),
]


def large_file(path: Path) -> int:
    """Writes a CSV of the size that is asked for, by tiling one block of bytes; the number of its matches."""
    types = np.full(ROWS, ord("x"))
    types[::EVERY], types[1::EVERY] = ord("a"), ord("b")
    rows = "".join(f"{0:012d},{chr(t)},user-{i % 97:02d},{i % 1000 / 8 + 100:.3f}\n" for i, t in enumerate(types))
    block = np.frombuffer(rows.encode(), np.uint8).reshape(ROWS, -1).copy()
    powers = 10 ** np.arange(11, -1, -1)
    blocks = MEGABYTES * 1_000_000 // block.size + 1
    with path.open("wb") as file:
        file.write(b"ts,type,user,price\n")
        for number in range(blocks):
            times = 10**11 + number * ROWS + np.arange(ROWS)
            block[:, :12] = times[:, None] // powers % 10 + ord("0")
            file.write(block.data)
    return blocks * (ROWS // EVERY)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("large") / "large.csv"
    return path, large_file(path)


# A program's own peak: that of a child, as the parent is told it, begins with the memory of the parent.
PROGRAM = """
import sys
from pathlib import Path
from acep.cli import main
status = main(sys.argv[2:])
(peak,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
Path(sys.argv[1]).write_text(peak)
sys.exit(status)
"""


def run(peak: Path, *args: str | Path) -> tuple[str, str, float]:
    """What a command line prints, and the megabytes that it held at most."""
    command = [sys.executable, "-c", PROGRAM, str(peak), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, int(peak.read_text()) / 1024


QUERY = "PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { q.price > p.price } WITHIN 5"


@pytest.mark.parametrize("what", ["--count", "--output"])
@pytest.mark.whole
def test_a_file_larger_than_its_memory(large: tuple[Path, int], tmp_path: Path, what: str) -> None:
    path, matches = large
    found = tmp_path / "found.jsonl"
    out, err, held = run(tmp_path / "peak", "match", QUERY, path, what, *([found] if what == "--output" else []))
    if what == "--count":
        number = int(out)
    else:
        with found.open("rb") as lines:
            number = sum(1 for _ in lines)
    assert (number, err) == (matches, "")
    assert held < BOUND
