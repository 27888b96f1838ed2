"""The notebooks: each says the same as its ``.py`` file, and runs to its end with all that it asserts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
sys.path.append(str(FOLDER))
from pair import as_notebook, cells, sources  # noqa: E402

sys.path.pop()

NAMES = [path.stem for path in sources()]
each_notebook = pytest.mark.parametrize("name", NAMES)
TWO = "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n\n\ny = 2\n"


@each_notebook
def test_a_pair_says_the_same(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    stored = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    told = [(cell["cell_type"], "".join(cell["source"])) for cell in stored["cells"]]
    assert told == list(cells(text)), "run `make notebooks`"
    assert stored == as_notebook(text), "run `make notebooks`"


def test_no_notebook_is_alone() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NAMES)
    linked = re.findall(r"\]\((\w+)\.ipynb\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(linked) == NAMES


def run(name: str, data: Path, folder: Path = FOLDER) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", folder / f"{name}.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "ACEP_DATA": os.fspath(data)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@each_notebook
def test_a_notebook_alone_runs_on_a_stream_that_it_makes(name: str, tmp_path: Path) -> None:
    for file in FOLDER.glob("*.py"):
        shutil.copy(file, tmp_path)
    run(name, tmp_path, tmp_path)


@each_notebook
def test_a_notebook_runs_on_the_recorded_stream(name: str, data: Callable[[str], Path]) -> None:
    run(name, data("cluster_jobs").parent)


def test_cells_are_told_apart() -> None:
    assert list(cells(TWO)) == [("markdown", "# Title\n\nText."), ("code", "x = 1\n\n\ny = 2")]
    text, code = as_notebook(TWO)["cells"]
    assert (text["source"], "outputs" in text) == (["# Title\n", "\n", "Text."], False)
    assert (code["source"], code["outputs"]) == (["x = 1\n", "\n", "\n", "y = 2"], [])
