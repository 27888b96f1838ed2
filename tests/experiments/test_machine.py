"""An experiment limits its own process; under test these limits end with the test."""

from __future__ import annotations

import os
import resource

import pytest

from experiments.machine import limit_memory, pin
from tests.conftest import CORES, MEMORY

pytestmark = [
    pytest.mark.xdist_group("limits"),
    pytest.mark.skipif(CORES is None, reason="this system keeps no process on one core"),
]
BYTES = 1 << 46


def test_a_process_keeps_to_one_core_and_to_so_much_memory() -> None:
    core = pin()
    limit_memory(BYTES)
    assert os.sched_getaffinity(0) == {core} <= CORES
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == BYTES


def test_the_limits_of_the_test_before_are_lifted() -> None:
    assert os.sched_getaffinity(0) == CORES
    assert resource.getrlimit(resource.RLIMIT_AS) == MEMORY
