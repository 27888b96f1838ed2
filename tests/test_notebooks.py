"""The notebooks: each says the same as its ``.py`` file, and gives the outputs that are saved. The first tutorial says
the same as its notebook."""

from __future__ import annotations

import base64
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
sys.path.append(str(FOLDER))
from outputs import outputs_of, run_cell  # noqa: E402
from page import NAME, PAGE, PICTURES, as_page  # noqa: E402
from pair import as_notebook, cells, sources  # noqa: E402

sys.path.pop()

Outputs = list[list[dict[str, Any]]]
NAMES = [path.stem for path in sources()]
each_notebook = pytest.mark.parametrize("name", NAMES)
TWO = "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n\n\ny = 2\n"
PICTURE_KINDS = ("image/png", "image/svg+xml")
# Paths of machines, and the moment at which something ran: no saved output has them.
PLACES = re.compile(r"/(?:home|tmp|work|root|usr|var|opt|Users)/|[A-Z]:\\|\b202[4-9]-\d\d-\d\d|\bevents/s\b")


@cache
def stored(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return notebook


def saved(name: str) -> Outputs:
    return [cell["outputs"] for cell in stored(name)["cells"] if cell["cell_type"] == "code"]


def comparable(outputs: Outputs) -> list[list[dict[str, Any]]]:
    """The outputs with the kinds of their pictures only: another release of matplotlib draws other pixels."""
    found = []
    for cell in outputs:
        data = [one | {"data": dict(one["data"])} if "data" in one else one for one in cell]
        for one in data:
            for kind in PICTURE_KINDS:
                if kind in one.get("data", {}):
                    one["data"][kind] = ""
        found.append(data)
    return found


@each_notebook
def test_a_pair_says_the_same(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    told = [(cell["cell_type"], "".join(cell["source"])) for cell in stored(name)["cells"]]
    assert told == list(cells(text)), "run `make notebooks`"
    assert stored(name) == as_notebook(text, saved(name)), "run `make notebooks`"


def marks(name: str) -> list[pytest.MarkDecorator]:
    """All but the first tutorial take long, and those on Spark longest."""
    if name == "first_steps":
        return []
    return [pytest.mark.long, *([pytest.mark.spark, pytest.mark.whole] if "spark" in name else [])]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=marks(name)) for name in NAMES],
)
def test_a_notebook_gives_the_outputs_that_are_saved(name: str) -> None:
    pytest.importorskip("matplotlib")
    given = outputs_of(FOLDER / f"{name}.py")
    for number, (new, old) in enumerate(zip(comparable(given), comparable(saved(name)), strict=True), 1):
        assert new == old, f"code cell {number}: run `make notebooks`, and read the difference"


@each_notebook
def test_a_saved_notebook_is_small_and_tells_no_place_and_no_moment(name: str) -> None:
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 300_000
    assert any(saved(name)), "a notebook shows something"
    texts = [json.dumps(one, ensure_ascii=False) for cell in comparable(saved(name)) for one in cell]
    assert [found[0] for text in texts for found in PLACES.finditer(text)] == []


@each_notebook
def test_a_notebook_begins_with_what_its_reader_will_be_able_to_do(name: str) -> None:
    kind, text = next(cells((FOLDER / f"{name}.py").read_text(encoding="utf-8")))
    assert kind == "markdown"
    assert re.match(r"# [^\n]+\n\n\S", text)
    assert re.search(r"\b[Yy]ou\b", text.split("\n## ")[0])
    longest = max(len(body.splitlines()) for kind, body in cells((FOLDER / f"{name}.py").read_text()) if kind == "code")
    assert longest <= 32, "a cell is short"


def test_no_notebook_is_alone() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NAMES)
    linked = re.findall(r"\]\((\w+)\.ipynb\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(linked) == NAMES


@each_notebook
def test_links_of_a_notebook_lead_somewhere(name: str) -> None:
    texts = [body for kind, body in cells((FOLDER / f"{name}.py").read_text(encoding="utf-8")) if kind == "markdown"]
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", "\n".join(texts))
    assert [link for link in links if not (FOLDER / link).exists()] == []


def test_the_first_tutorial_is_its_notebook() -> None:
    text, pictures = as_page(stored(NAME))
    assert PAGE.read_text(encoding="utf-8") == text, "run `make notebooks`"
    assert {path.name: path.read_bytes() for path in PICTURES.iterdir()} == pictures, "run `make notebooks`"
    assert len(pictures) >= 3
    assert max(map(len, pictures.values())) < 60_000


def test_cells_are_told_apart() -> None:
    assert list(cells(TWO)) == [("markdown", "# Title\n\nText."), ("code", "x = 1\n\n\ny = 2")]
    text, code = as_notebook(TWO, [[]])["cells"]
    assert (text["source"], "outputs" in text) == (["# Title\n", "\n", "Text."], False)
    assert (code["source"], code["outputs"]) == (["x = 1\n", "\n", "\n", "y = 2"], [])


class Drawn:
    """A value with a picture."""

    def __repr__(self) -> str:
        return "drawn"

    def _repr_png_(self) -> bytes:
        return b"png"

    def _repr_html_(self) -> None:
        """As pandas does where HTML is switched off."""


def test_a_cell_gives_what_it_prints_and_its_last_value() -> None:
    space: dict[str, Any] = {"Drawn": Drawn}
    assert run_cell("x = 1", "cell", space, 1) == []
    assert run_cell("print(x)\nprint('b')\nNone", "cell", space, 2) == [
        {"name": "stdout", "output_type": "stream", "text": ["1\n", "b\n"]}
    ]
    (result,) = run_cell("Drawn()", "cell", space, 3)
    assert result == {
        "data": {"text/plain": ["drawn"], "image/png": base64.b64encode(b"png").decode()},
        "execution_count": 3,
        "metadata": {},
        "output_type": "execute_result",
    }
    assert run_cell("x = 2\nx;", "cell", space, 4)[0]["data"] == {"text/plain": ["2"]}
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", "cell", space, 5)


def test_a_notebook_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)^absent\.py fails:.*FileNotFoundError"):
        outputs_of(tmp_path / "absent.py")
