"""One core and 512 MB in all, a stream that is too fast: it neither dies nor falls behind, and reports its recall."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("acep.native._native")

LIMIT, MEMORY = 512 * 2**20, 64 * 2**20


def ran() -> dict[str, Any]:
    """What the experiment tells; it is run again where other processes may have taken its core."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-m", "experiments.edge"], capture_output=True, text=True, check=True, timeout=900
        )
        told: dict[str, Any] = json.loads(done.stdout)
        if kept_up(told):
            break
    return told


def kept_up(told: dict[str, Any]) -> bool:
    """Whether the bounded run was behind for a while at most, and not at the end."""
    lag, whole = told["bounded"]["lag"], told["batches"] * told["interval"]
    return bool(lag["last"] < 0.1 * whole and lag["most"] < 0.35 * whole)


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.whole
def test_it_neither_dies_nor_falls_behind() -> None:
    told = ran()
    interval, batches = told["interval"], told["batches"]
    # Without a budget it dies, or falls behind by half of what has come: else this test could not fail.
    exact = told["exact"]
    assert exact["died"] or exact["batches"] < batches / 2
    assert exact["lag"] > 0.5 * exact["batches"] * interval
    run = told["bounded"]
    assert not run["died"]
    assert run["batches"] == batches
    assert kept_up(told)
    assert run["memory"] <= MEMORY
    assert run["resident"] < LIMIT
    assert run["found"] > 0
    assert run["shed"] > 0
    assert "of the match points" in run["report"] or "may be missing" in run["report"]
