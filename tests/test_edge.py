"""One core and 512 MB in all, a stream that is too fast: it neither dies nor falls behind, and reports its recall."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("acep.engine._native")

LIMIT, MEMORY = 512 * 2**20, 64 * 2**20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_it_neither_dies_nor_falls_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.edge"], capture_output=True, text=True, check=True, timeout=900
    )
    told = json.loads(done.stdout)
    interval, batches = told["interval"], told["batches"]
    # Without a budget it dies, or falls behind by half of what has come: else this test could not fail.
    exact = told["exact"]
    assert exact["died"] or exact["batches"] < batches / 2
    assert exact["lag"] > 0.5 * exact["batches"] * interval
    run = told["bounded"]
    assert not run["died"]
    assert run["batches"] == batches
    assert run["lag"]["last"] < 0.1 * batches * interval
    assert run["lag"]["most"] < 0.35 * batches * interval
    assert run["memory"] <= MEMORY
    assert run["resident"] < LIMIT
    assert run["found"] > 0
    assert run["shed"] > 0
    assert "recall" in run["report"] or "may be missing" in run["report"]
