"""The reference runtime looks for events that break a negation where they may stand."""

from __future__ import annotations

import pytest

import acep
from acep.plan.compile import Window


@pytest.mark.parametrize("pattern", ["~z n, a x, b y", "a x, b y, ~z n"])
def test_the_reference_runtime_asks_few_events_whether_they_break_a_negation(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events of one push are all kept until its end, and only those of a window are looked at."""
    counts = []
    covers = Window.covers
    n_calls = 0

    def count_and_cover(self: Window, positions: int, ticks: int) -> bool:
        nonlocal n_calls
        n_calls += 1
        return covers(self, positions, ticks)

    monkeypatch.setattr(Window, "covers", count_and_cover)
    for n_rounds in (200, 400):
        n_calls = 0
        events = {"ts": range(4 * n_rounds), "type": ["z", "a", "b", "o"] * n_rounds}
        acep.match(events, f"PATTERN SEQ({pattern}) WITHIN 2", engine="reference")
        counts.append(n_calls)
    assert counts[1] < 2.1 * counts[0]
