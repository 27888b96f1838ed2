"""Run all notebooks and write them with their outputs, and the page of the first one: ``make notebooks``.

``python notebooks/write.py NAME ...`` writes these only.
"""

from __future__ import annotations

import json
import sys

from outputs import outputs_of
from page import NAME, write_page
from pair import as_notebook, sources


def main() -> None:
    """Write the notebooks that are named, or all."""
    for path in sources():
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        notebook = as_notebook(path.read_text(encoding="utf-8"), outputs_of(path))
        path.with_suffix(".ipynb").write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        if path.stem == NAME:
            write_page(notebook)


if __name__ == "__main__":
    main()
