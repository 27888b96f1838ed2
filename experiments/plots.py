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
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import acep
from acep.cli.watch import view
from acep.streaming.progress import Progress

__all__ = ["MOST_BYTES", "PAGE", "PICTURES", "live_view", "main", "run_page"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/howto/plots.md"
PICTURES = ROOT / "docs/howto/plots"
MOST_BYTES = 60_000  # of a picture
WIDE, HIGH = 10, 20  # pixels of a letter of the live view, and of a line
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path, folder: Path) -> list[Path]:
    """Run the Python code of a page in a folder, and return the pictures that are there then."""
    (folder / "examples").symlink_to(ROOT / "examples")
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, str(page), "exec"), names)  # noqa: S102 - the page is ours
        if "seen" in names:
            Path("live.svg").write_text(live_view(names["seen"]), encoding="utf-8")
    return sorted(path for path in folder.iterdir() if path.suffix in (".svg", ".png"))


def live_view(frames: Sequence[Progress]) -> str:
    """Draw the last frame of ``--watch`` as a terminal of 80 columns shows it."""
    lines = view(frames, 80)
    size = f'width="{80 * WIDE}" height="{(len(lines) + 1) * HIGH}"'
    rows = "\n".join(
        f'<text x="{WIDE}" y="{(row + 1) * HIGH}" xml:space="preserve">{escape(line)}</text>'
        for row, line in enumerate(lines)
    )
    style = f'font-family="DejaVu Sans Mono, monospace" font-size="{HIGH * 3 // 4}" fill="#ddd"'
    shown = f'<rect {size} fill="#222"/>\n<g {style}>\n{rows}\n</g>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{shown}\n</svg>\n'


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
        pictures = run_page(PAGE, Path(name))
        for picture in pictures if args.png is None else ():
            size = picture.stat().st_size
            if size > MOST_BYTES:
                raise SystemExit(f"{picture.name} has {size:,} bytes, of at most {MOST_BYTES:,}")
            PICTURES.mkdir(exist_ok=True)
            shutil.copyfile(picture, PICTURES / picture.name)
            print(f"{os.path.relpath(PICTURES / picture.name, ROOT)}: {size:,} bytes")


if __name__ == "__main__":
    main()
