"""The history graph as a picture and as text, and ``acep history``, compared with what is in ``tests/golden/``.

After a change that is meant, write them anew and read the difference::

    ACEP_GOLDEN=write python -m pytest -n 0 tests/learning/test_drawing.py
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from acep.cli import main
from acep.learning.history.drawing import _since_text, history_listing, history_svg, remaining_text
from acep.learning.history.graph import History
from acep.learning.trajectories.match_vectors import Grid
from tests.learning.streams import Logged, dice
from tests.learning.test_definition_4 import GRID, PLAN, STREAM

GOLDEN = Path(__file__).parents[1] / "golden" / "learning"
WRITE = os.environ.get("ACEP_GOLDEN") == "write"
SVG = "{http://www.w3.org/2000/svg}"


def example() -> History:
    """The paper's running example."""
    history = History(GRID, names=[state.var or "" for state in PLAN.arcs.states], fingerprint=PLAN.fingerprint)
    history.update(Logged(PLAN).run(STREAM))
    return history


def larger(**options: object) -> History:
    history = History(Grid(4, 3, 20, features=2), names=("", "<b>&\"'", "\x01\x1b[31m", "x" * 99), **options)  # type: ignore[arg-type]
    for log in dice(2, epochs=3)[:2]:
        history.update(log)
    return history


@pytest.mark.parametrize("name", ["history.txt", "history.svg"])
def test_the_example_of_the_paper(name: str) -> None:
    drawn = history_svg(example()) if name.endswith("svg") else history_listing(example())
    if WRITE:
        (GOLDEN / name).write_text(drawn, encoding="utf-8")
    assert drawn == (GOLDEN / name).read_text(encoding="utf-8")


def elements(picture: str, kind: str) -> list[ET.Element]:
    root = ET.fromstring(picture)  # noqa: S314 - the picture is ours
    return list(root.iter(f"{SVG}{kind}"))


def test_the_most_visited_vectors_are_drawn() -> None:
    history = larger(targets="points")
    for most in (1, 5, 40):
        picture = history_svg(history, most)
        boxes = [r for r in elements(picture, "rect") if r.get("class") == "vector"]
        assert len(boxes) == most
        balls = elements(picture, "circle")
        assert len(balls) <= most
        assert balls or most < 40
        xs = [float(ball.get("cx", "")) for ball in balls]
        assert xs == sorted(xs)
        width = float(ET.fromstring(picture).get("width", ""))  # noqa: S314
        areas = [(float(b.get("x", "")), float(b.get("y", "")), float(b.get("width", ""))) for b in boxes]
        assert all(x >= 0 and x + wide <= width for x, _, wide in areas)
        for at, (x, y, wide) in enumerate(areas):
            assert all(y != other or x + wide <= left or left + w <= x for left, other, w in areas[at + 1 :])
    listing = history_listing(history, 5)
    assert f"and {len(history.visited()) - 5} more" in listing
    held = int((history.bundles >= 0).sum())
    assert listing.endswith(f"and {held - 5:,} before them\n")
    assert len(listing.splitlines()) < 30


@pytest.mark.parametrize(
    ("windows", "waits", "remaining", "since"),
    [
        (8, 4, ["0-12%", "87-100%"], ["<1.6%", "1.6-6.2%", "6.2-25%", ">=25%"]),
        (2, 2, ["0-50%", "50-100%"], ["<25%", ">=25%"]),
        (1, 1, ["0-100%"], ["any"]),
    ],
)
def test_times_are_shares_of_the_window(windows: int, waits: int, remaining: list[str], since: list[str]) -> None:
    span = 4**6 - 1
    history = History(Grid(4, 3, span, windows, waits, features=2))
    grid = history.grid
    ages = [age for bound in grid.bounds.tolist() for age in (bound - 1, bound)] or [0]
    bins = sorted({int(grid.since_bins(0, age)) for age in ages})
    assert [_since_text(grid, at) for at in bins] == since
    ends = [int(grid.remaining(0, age)) for age in (span, 0)]
    assert list(dict.fromkeys(remaining_text(grid, at) for at in ends)) == remaining


def test_names_are_escaped_and_shortened() -> None:
    history = larger()
    texts = [element.text or "" for element in elements(history_svg(history, 200), "text")]
    assert any("1 <b>&\"' f0" in text for text in texts)
    listing = history_listing(history, 200)
    assert "\x1b" not in listing
    assert "\x01" not in listing
    assert "x" * 40 not in listing


def test_a_history_of_nothing() -> None:
    history = History(Grid(3, 1, None, 1, 1))
    assert "no window" in history_listing(history)
    assert not [r for r in elements(history_svg(history), "rect") if r.get("class") == "vector"]


def test_the_command_prints_the_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, svg = tmp_path / "history.acep", tmp_path / "history.svg"
    file.write_bytes(example().to_bytes())
    assert main(["history", str(file), "--svg", str(svg)]) == 0
    assert capsys.readouterr().out == history_listing(example())
    assert svg.read_text(encoding="utf-8") == history_svg(example())
    assert main(["history", str(file), "--limit", "2"]) == 0
    assert capsys.readouterr().out == history_listing(example(), 2)


def test_the_command_refuses_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "history.acep"
    assert main(["history", str(file)]) == 2
    assert "cannot be read" in capsys.readouterr().err
    file.write_bytes(b"nothing of the kind")
    assert main(["history", str(file)]) == 2
    assert "not a history of acep" in capsys.readouterr().err
    file.write_bytes(example().to_bytes())
    assert main(["history", str(file), "--svg", str(tmp_path)]) == 2
    assert "cannot be written" in capsys.readouterr().err
