"""Read the cells of a ``.py`` file, and turn them into the content of the ``.ipynb`` that it is paired with.

A cell begins with a line ``# %%``; that of a text with ``# %% [markdown]``, and its lines are comments (the percent
format of jupytext).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["as_notebook", "cells", "sources"]

FOLDER = Path(__file__).resolve().parent
BORDER = re.compile(r"^# %%(?P<text> \[markdown\])?\n", re.MULTILINE)
ABOUT = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources() -> list[Path]:
    """Return the ``.py`` files that are notebooks: those that begin with a cell."""
    return [path for path in sorted(FOLDER.glob("*.py")) if BORDER.match(path.read_text(encoding="utf-8"))]


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


def as_notebook(text: str, outputs: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the notebook of a ``.py`` file, with the outputs of each code cell, as the content of its ``.ipynb``
    (format 4.5)."""
    notebook_cells: list[dict[str, Any]] = []
    numbered_outputs = iter(enumerate(outputs, 1))
    for number, (kind, body) in enumerate(cells(text), 1):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": body.splitlines(keepends=True)}
        if kind == "code":
            count, cell_outputs = next(numbered_outputs)
            cell |= {"execution_count": count, "outputs": cell_outputs}
        notebook_cells.append(cell)
    return {"cells": notebook_cells, "metadata": ABOUT, "nbformat": 4, "nbformat_minor": 5}
