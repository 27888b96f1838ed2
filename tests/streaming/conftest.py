"""Fixtures of tests on the state of streams."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from acep.bucket_state import run_orders


@pytest.fixture
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a test begin like a process that has seen no run, and not wait for the disk."""
    monkeypatch.setattr(os, "fsync", os.fstat)
    run_orders._begun.clear()
    yield
    run_orders._begun.clear()
