"""Run a notebook in a namespace of its own, and print what its code cells give: ``python notebooks/outputs.py NAME``.

A cell gives what it prints, and the value of its last line if that is an expression: its text, and the HTML or the
picture by which it shows itself. One line of JSON holds the outputs of each code cell, as an ``.ipynb`` does.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pair import FOLDER, cells

__all__ = ["outputs_of", "run_cell"]

REPRESENTATIONS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_", "image/png": "_repr_png_"}


def represent(value: Any) -> dict[str, Any]:
    """Return the representations of a value by their type: its text, and those that it has methods for."""
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    for kind, method in REPRESENTATIONS.items():
        representation = getattr(value, method, lambda: None)()
        if isinstance(representation, bytes):
            data[kind] = base64.b64encode(representation).decode()
        elif representation is not None:
            data[kind] = representation.splitlines(keepends=True)
    return data


def run_cell(body: str, name: str, space: dict[str, Any], count: int) -> list[dict[str, Any]]:
    r"""Run a code cell in a namespace, and return its outputs.

    >>> run_cell("print(1)\n2 + 3", "cell", {}, 7)  # doctest: +NORMALIZE_WHITESPACE
    [{'name': 'stdout', 'output_type': 'stream', 'text': ['1\n']},
     {'data': {'text/plain': ['5']}, 'execution_count': 7, 'metadata': {}, 'output_type': 'execute_result'}]
    """
    tree = ast.parse(body, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    values: list[Any] = []
    printed = io.StringIO()
    before, sys.displayhook = sys.displayhook, values.append
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, name, "exec"), space)  # noqa: S102 - the notebooks are ours, and running them is the purpose
            if last is not None:
                exec(compile(ast.Interactive([last]), name, "single"), space)  # noqa: S102
    finally:
        sys.displayhook = before
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    result = {"execution_count": count, "metadata": {}, "output_type": "execute_result"}
    outputs += [{"data": represent(value)} | result for value in values if value is not None]
    return outputs


def outputs_of(path: Path) -> list[list[dict[str, Any]]]:
    """Run the ``.py`` file of a notebook in a process of its own, and return the outputs of each code cell.

    Warnings are errors. Raises :class:`RuntimeError` with what the process wrote to stderr if it fails.
    """
    command = [sys.executable, "-W", "error", str(Path(__file__).resolve()), path.stem]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER, timeout=600)  # noqa: S603
    if done.returncode != 0:
        raise RuntimeError(f"{path.name} fails:\n{done.stderr}")
    outputs: list[list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return outputs


def main() -> None:
    """Run the notebook that is named, and print its outputs."""
    path = FOLDER / f"{sys.argv[1]}.py"
    os.chdir(FOLDER)
    space: dict[str, Any] = {"__name__": "__main__"}
    bodies = [body for kind, body in cells(path.read_text(encoding="utf-8")) if kind == "code"]
    outputs = [run_cell(body, f"{path.name}, code cell {n}", space, n) for n, body in enumerate(bodies, 1)]
    print(json.dumps(outputs))


if __name__ == "__main__":
    main()
