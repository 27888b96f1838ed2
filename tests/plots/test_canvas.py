"""Plots touch no global state, need no display, and are loaded by nothing but their use."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import acep
from acep.cli import main
from acep.explain.automaton_svg import query_svg
from acep.streaming.progress import Progress
from experiments.plots import MOST_BYTES, PAGE, PICTURES, run_page
from tests.test_docs import LINK

matplotlib = pytest.importorskip("matplotlib")

QUERY = acep.regex("a(b|c)", within=5)
EVENTS = {"ts": [1, 2], "type": ["a", "b"], "v": [1.0, 2.0]}
FOUND = acep.match(EVENTS, QUERY)


@pytest.mark.long
def test_a_figure_is_made_without_pyplot(tmp_path: Path) -> None:
    code = (
        "import sys, acep, matplotlib\n"
        "def settings(): return {k: matplotlib.rcParams[k] for k in matplotlib.rcParams if k != 'backend'}\n"
        "before = settings()\n"
        "events = {'ts': [1, 2], 'type': ['a', 'b'], 'v': [1.0, 2.0]}\n"
        "found = acep.match(events, acep.regex('ab', within=5))\n"
        "acep.plots.save(acep.plots.timeline(found), 'a.png')\n"
        "acep.plots.save(acep.plots.match_over_series(events, found[0], 'v'), 'b.svg')\n"
        "print('matplotlib.pyplot' in sys.modules, settings() == before)\n"
    )
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd()), "HOME": str(tmp_path)}
    env["MPLCONFIGDIR"] = matplotlib.get_cachedir()  # it would list all fonts again
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=env)
    assert done.stdout == "False True\n"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_notebook_shows_a_new_plot_as_a_picture() -> None:
    """By the method that notebooks ask for; a plot in axes of pyplot is shown by pyplot."""
    from matplotlib.figure import Figure

    axes = acep.plots.timeline(FOUND)
    panels = acep.plots.controller([Progress(0, 0, 0, 0, 0, 0, "", 0, 10, 0.1)])
    for shown in (axes, panels):
        assert shown._repr_png_().startswith(b"\x89PNG")
    own = Figure().add_subplot()
    assert acep.plots.timeline(FOUND, ax=own) is own


@pytest.mark.long
def test_loading_the_room_loads_no_matplotlib() -> None:
    code = "import sys, acep.plots, acep.cli.match; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_missing_matplotlib_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (lambda: acep.plots.timeline(FOUND), lambda: acep.plots.match_over_series(EVENTS, FOUND[0], "v")):
        with pytest.raises(
            acep.EngineError, match=r"^matplotlib is not installed, and a plot needs it \[engine_missing\]\n"
        ) as told:
            plot()
        assert told.value.hint == "pip install 'acep[plot]'"
    assert acep.plots.automaton(QUERY).svg == query_svg(QUERY), "this one needs none"
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text("ts,type\n1,a\n2,b\n")
    assert main(["match", "re:ab", "e.csv", "--within", "5", "--plot", "p.html"]) == 2
    told_ = capsys.readouterr()
    assert (
        told_.err
        == "acep: matplotlib is not installed, and a plot needs it [engine_missing]\nhint: pip install 'acep[plot]'\n"
    )
    assert told_.out == "", "this is found out before the work"


def test_a_file_is_the_same_each_time_and_its_texts_are_texts(tmp_path: Path) -> None:
    digests = set()
    for name in ("a.svg", "b.svg"):
        acep.plots.save(acep.plots.timeline({"one $query": FOUND, "<b>": FOUND}), tmp_path / name)
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1
    nodes = ET.parse(tmp_path / "a.svg").iter()  # noqa: S314 - made here
    texts = {"".join(node.itertext()).strip() for node in nodes if node.tag.endswith("text")}
    assert {"one $query", "<b>", "ts"} <= texts


def test_letters_that_the_font_lacks_are_no_warning(tmp_path: Path) -> None:
    events = {"ts": [1, 2], "type": ["a", "b"], "k": ["東京", "東京"]}
    ax = acep.plots.timeline(acep.match(events, acep.regex("ab", within=5, by="k")))
    acep.plots.save(ax, tmp_path / "a.svg")
    assert "東京" in (tmp_path / "a.svg").read_text()
    acep.plots.save(ax, tmp_path / "a.png")


def test_axes_of_a_user_are_drawn_in() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    parts = figure.subfigures(1, 2)
    ax = parts[1].subplots()
    assert acep.plots.timeline(FOUND, ax=ax) is ax
    assert acep.plots.images.figure_of(ax) is figure


def test_a_drawing_is_shown_as_an_image() -> None:
    picture = acep.plots.automaton(QUERY)
    html = picture._repr_html_()
    data = html.partition("base64,")[2].partition('"')[0]
    assert base64.b64decode(data).decode() == picture.svg == query_svg(QUERY)
    assert "<style" not in html, "styles of the drawing must not reach the page around it"


def test_the_pictures_of_the_page_are_there_and_small() -> None:
    linked = {link for link in LINK.findall(PAGE.read_text()) if link.startswith("plots/")}
    there = {f"plots/{path.name}": path.stat().st_size for path in PICTURES.iterdir()}
    assert set(there) == linked
    assert len(linked) >= 7
    assert max(there.values()) <= MOST_BYTES


def test_the_code_of_a_page_makes_its_pictures(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    code = "import acep\nacep.plots.automaton(acep.regex('ab', within=5)).save('one.svg')\n"
    page.write_text(f"Text.\n\n```python\n{code}```\n\n```text\nno code\n```\n")
    (tmp_path / "run").mkdir()
    assert [path.name for path in run_page(page, tmp_path / "run")] == ["one.svg"]
