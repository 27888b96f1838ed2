"""Memory does not grow with a stream."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments import memory
from experiments.memory import MILLION, Point

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.whole
def test_memory_stays(cases: Callable[[int], int]) -> None:
    """A process of its own: what other tests left in this one would hide what grows."""
    command = [sys.executable, "-m", "experiments.memory", "--events", str(cases(2) * MILLION + MILLION)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) >= 2


@pytest.mark.parametrize(
    ("resident", "native", "code"), [(1.04, 1.4, 0), (1.06, 1.0, 1), (1.0, 1.6, 1)], ids=["stays", "process", "native"]
)
def test_growth_is_a_failure(
    resident: float, native: float, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    points = [Point(MILLION, 1000, 1000, 5, 1.0), Point(2 * MILLION, int(1000 * resident), int(1000 * native), 9, 2.0)]
    monkeypatch.setattr(memory, "measure", lambda rows: points)
    assert memory.main(["--events", "2000000", "--output", str(tmp_path)]) == code
    page = (tmp_path / "memory.md").read_text()
    assert f"{resident:.3f} times" in page
    assert "SEQ(A a, ~B b, C c)" in page


@pytest.mark.whole
def test_every_query_finds_something() -> None:
    """A query without matches would hold nothing."""
    rows = 100_000
    for name in memory.MATCHED | memory.COUNTED:
        (*_, last) = memory.measure(rows, names=(name,))
        assert last.events == rows
        assert last.matches > 0, name
        assert last.native > 0, name
