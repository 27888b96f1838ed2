"""The functions of acep.plots with wrong arguments of every kind: a plot that can be saved, or an error of acep."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.native.compiled import why_not
from acep.streaming.progress import Progress
from tests.test_wrong_arguments import EVENTS, QUERY, VALUES, outcome, shown
from tests.thinned import thinned

pytest.importorskip("matplotlib")

FOUND = acep.match(EVENTS, "PATTERN SEQ(a x, b+ y[], c z) WITHIN 9")
SEEN = [Progress(n, 10 * n, 0, n, 0, 0, "", 0, 10, 0.1, made=10 * n, work=20 * n, allowance=30 * n) for n in range(3)]
RUNS = [(acep.Budget(work=1), 0.5), (2.0, FOUND.report)]
LEARNED = (
    b"" if why_not() else acep.learn({"ts": list(range(60)), "type": list("abcab" * 12)}, acep.regex("ab", within=3))
)

# Good arguments of each function.
CALLS: dict[str, tuple[Any, ...]] = {
    "match_over_series": (EVENTS, FOUND[0], "v"),
    "timeline": (FOUND,),
    "recall_curve": (RUNS,),
    "controller": (SEEN,),
    "automaton": (QUERY,),
    "history": (LEARNED,),
    "history_graph": (LEARNED,),
}


def drawn_by(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, and its plot as a file where it gives one."""

    def call(*args: Any, **named: Any) -> None:
        plot = function(*args, **named)
        if not isinstance(plot, acep.plots.SvgPicture):
            acep.plots.save(plot, "plot.svg")

    return call


@pytest.mark.long
@pytest.mark.parametrize("name", thinned([*CALLS], 3))
def test_each_argument_with_each_value(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("history") and why_not() is not None:
        pytest.skip("learning needs the native core")
    monkeypatch.chdir(tmp_path)
    function = getattr(acep.plots, name)
    call = drawn_by(function)
    assert outcome(call, [*CALLS[name]], {}) is None
    assert name in ("automaton", "history_graph") or Path("plot.svg").stat().st_size > 1_000
    options = [one.name for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]
    for make in VALUES:
        for place in range(len(CALLS[name])):
            args = [*CALLS[name]]
            args[place] = make()
            assert outcome(call, args, {}) is None, f"argument {place}: {shown(make())}"
        for option in options:
            # A text may be a name on an axis, so it is drawn as well.
            named = call if isinstance(make(), str) else function
            assert outcome(named, [*CALLS[name]], {option: make()}) is None, f"{option}: {shown(make())}"


def test_files_that_a_plot_cannot_be_written_to() -> None:
    ax = acep.plots.timeline(FOUND)
    picture = acep.plots.automaton(QUERY)
    for make in VALUES:
        assert outcome(acep.plots.save, [ax, make()], {}) is None, shown(make())
        assert outcome(acep.plots.save, [make(), "nowhere/plot.svg"], {}) is None, shown(make())
        assert outcome(picture.save, [make()], {}) is None, shown(make())
    for name in ("plot", "plot.pdf", "no/folder/plot.svg", "a\0b.svg", "x" * 5_000 + ".svg"):
        with pytest.raises(acep.DataError):
            acep.plots.save(ax, name)
    with pytest.raises(acep.DataError, match="svg"):
        acep.plots.save(picture, "plot.png")
