"""Make the pictures of docs/howto/plots.md: ``python -m experiments.plots`` runs the code of the page.

The pictures that it saves are put into docs/howto/plots/. ``--png FOLDER`` writes the plots of matplotlib as PNG files
there instead, to look at them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import acep

__all__ = ["MOST_BYTES", "PAGE", "PICTURES", "main", "run_page"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/howto/plots.md"
PICTURES = ROOT / "docs/howto/plots"
MOST_BYTES = 60_000  # of a picture
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path, folder: Path) -> list[Path]:
    """Run the Python code of a page in a folder, and return the pictures that are there then."""
    (folder / "examples").symlink_to(ROOT / "examples")
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, str(page), "exec"), names)  # noqa: S102 - the page is ours
    return sorted(path for path in folder.iterdir() if path.suffix in (".svg", ".png"))


def main(argv: list[str] | None = None) -> None:
    """Run the page, and keep its pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--png", metavar="FOLDER", type=Path, help="write PNG files here")
    args = parser.parse_args(argv)
    save = acep.plots.save
    if args.png is not None:
        args.png.mkdir(parents=True, exist_ok=True)
        target = args.png.resolve()
        acep.plots.save = lambda plot, path: save(plot, target / Path(path).with_suffix(".png").name)
    with tempfile.TemporaryDirectory(prefix="acep-plots-") as name:
        made = run_page(PAGE, Path(name))
        for picture in made if args.png is None else ():
            size = picture.stat().st_size
            if size > MOST_BYTES:
                raise SystemExit(f"{picture.name} has {size:,} bytes, of at most {MOST_BYTES:,}")
            PICTURES.mkdir(exist_ok=True)
            shutil.copyfile(picture, PICTURES / picture.name)
            print(f"{os.path.relpath(PICTURES / picture.name, ROOT)}: {size:,} bytes")


if __name__ == "__main__":
    main()
