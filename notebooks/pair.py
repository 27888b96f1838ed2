"""Write each notebook from the ``.py`` file it is paired with: ``python notebooks/pair.py``, or ``make notebooks``.

A cell begins with a line ``# %%``; that of a text with ``# %% [markdown]``, and its lines are comments (the percent
format of jupytext). What a notebook has besides, such as outputs, goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["as_notebook", "cells", "sources"]

HERE = Path(__file__).resolve().parent
BORDER = re.compile(r"^# %%(?P<text> \[markdown\])?\n", re.MULTILINE)
ABOUT = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources() -> list[Path]:
    """Return the ``.py`` files that are notebooks: those that begin with a cell."""
    return [path for path in sorted(HERE.glob("*.py")) if BORDER.match(path.read_text(encoding="utf-8"))]


def cells(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield kind ("markdown" or "code") and content of each cell.

    >>> list(cells("# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n"))
    [('markdown', '# Title\n\nText.'), ('code', 'x = 1')]
    """
    borders = list(BORDER.finditer(text))
    for border, end in zip(borders, [*(later.start() for later in borders[1:]), len(text)], strict=True):
        body = text[border.end() : end].strip("\n")
        if border["text"]:
            yield "markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        else:
            yield "code", body


def as_notebook(text: str) -> dict[str, Any]:
    """Return the notebook of a ``.py`` file, without outputs, as the content of its ``.ipynb`` (format 4.5)."""
    found: list[dict[str, Any]] = []
    for number, (kind, body) in enumerate(cells(text), 1):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": body.splitlines(keepends=True)}
        found.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    return {"cells": found, "metadata": ABOUT, "nbformat": 4, "nbformat_minor": 5}


def main() -> None:
    """Write all notebooks."""
    for path in sources():
        notebook = as_notebook(path.read_text(encoding="utf-8"))
        path.with_suffix(".ipynb").write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
