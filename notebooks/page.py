"""Make the first tutorial of the documentation from its notebook: text, code, outputs as text, pictures as files."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

from pair import FOLDER

__all__ = ["NAME", "PAGE", "PICTURES", "as_page", "write_page"]

NAME = "first_steps"
PAGE = FOLDER.parent / "docs" / "tutorial" / f"{NAME}.md"
PICTURES = PAGE.with_suffix("")
NOTE = (
    f"This page is made from [a notebook](../../notebooks/{NAME}.ipynb). Its code runs in the root of the repository."
)


def as_page(notebook: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return the page and its pictures by the names of their files.

    The notebook runs in its own folder, and the page in the root of the repository, so paths lose their ``../``.
    """
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    heading = ""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = (re.findall(r"^#+ (.*)$", text, re.MULTILINE) or [heading])[-1]
            parts.append(_relink(text))
            continue
        parts.append(f"```python\n{text.replace('../examples/', 'examples/')}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{re.sub(r'[^a-z]+', '_', heading.lower()).strip('_')}.png"
                if name in pictures:
                    raise ValueError(f"two pictures below the heading {heading!r}")
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![{heading}]({NAME}/{name})")
            else:
                parts.append(f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```")
    title, _, body = parts[0].partition("\n")
    parts[0] = f"{title}\n\n{NOTE}\n{body}"
    return "\n\n".join(parts) + "\n", pictures


def write_page(notebook: dict[str, Any]) -> None:
    """Write the page and its pictures; pictures of an older page go."""
    text, pictures = as_page(notebook)
    PAGE.write_text(text, encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.iterdir():
        old.unlink()
    for name, data in pictures.items():
        (PICTURES / name).write_bytes(data)


def _relink(text: str) -> str:
    """Return a text with its links from the folder of the page instead of the folder of the notebooks."""

    def relocate(link: re.Match[str]) -> str:
        path = os.path.relpath((FOLDER / link[1]).resolve(), PAGE.parent)
        return f"]({Path(path).as_posix()}{link[2] or ''})"

    return re.sub(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)", relocate, text)
