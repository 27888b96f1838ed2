"""A session of Spark Connect: a batch and both streaming routes give what one process gives, and tell as much."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
def test_batch_and_both_routes_of_a_stream_run_on_connect(tmp_path: Path) -> None:
    # One process cannot have a classic session and one of Connect.
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.on_connect", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["matches"] > 10
    assert told["batch"] == 1
    assert len(set(told["rows"])) == 1
    assert told["rows"][0] > 10
    expected = {"events": 120, "matches": told["matches"], "live": 0, "whole": True}
    assert told["own"] == told["files"] == expected
    assert told["unable"] == "for_each_batch needs a driver in this process, and a session of Spark Connect has none"
    assert "the stream goes on with micro-batch" in told["refused"]
