"""What match windows gain is measured on what they find."""

from __future__ import annotations

from experiments import streams
from experiments.gain import gains_table, measure_gain, measure_phases, paper_table, phases_table
from experiments.workload import Workload

SET = Workload(
    "pset-stock-4",
    "four variables in any order",
    lambda: streams.letters().slice(0, 3_000),
    ("PATTERN {A a, B b, C c, D d} WHERE [key] WITHIN 300",),
)


def test_gains_are_measured_and_put_beside_the_paper() -> None:
    native = measure_gain(SET, 5.0)
    assert native.windowed.matches == native.alone.matches > 0
    assert 0 < native.windowed.handed < native.windowed.came <= native.alone.rows == 3_000
    assert native.windowed.nodes < native.alone.nodes
    told = measure_phases(SET, "automaton", 0.2)
    assert list(told.cpu) == ["", "f", "fp", "fpc"]
    assert told.touches[""] > told.touches["f"] > told.touches["fp"] > told.touches["fpc"]
    assert "pset-stock-4" in gains_table([native])
    assert "pset-stock-4" in phases_table([told])
    assert "Figure 6d" in paper_table([native], [told])
