"""Queries over the real streams of the catalogue, one file each: ``examples/<stream>/<name>.acep``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import acep

__all__ = ["Example", "examples"]

FOLDER = Path(__file__).resolve().parent
LETTERS = "re:"
COMMENT = re.compile(r"^-- ?(.*)$", re.MULTILINE)
WITHIN = re.compile(r"^WITHIN\s+(.*\S)\s*$", re.MULTILINE)

# A letter expression is letters only: what it finds, and what the command line is told besides.
WORDS = {
    "buy_point": "Equation (1) of the 2016 paper, over the letters of all tweets on a symbol: bullish, then good news.",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "buy_point": {"within": "6 h", "by": "symbol", "strategy": "skip_till_next_match"},
}


@dataclass(frozen=True)
class Example:
    """A query of a file, and the stream that it is for."""

    path: Path

    @property
    def stream(self) -> str:
        """Return the name of the stream: that of the folder."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """Return the name of the file, without its suffix."""
        return self.path.stem

    @property
    def key(self) -> str:
        """Stream and name."""
        return f"{self.stream}/{self.name}"

    @cached_property
    def text(self) -> str:
        """Return the contents of the file."""
        return self.path.read_text(encoding="utf-8").strip()

    @property
    def words(self) -> str:
        """Return the words on the matches that the query finds."""
        return WORDS[self.name] if self.letters else " ".join(COMMENT.findall(self.text))

    @property
    def window(self) -> str:
        """Return the window of the query (of the outer one, where there are several)."""
        return str(OPTIONS[self.name]["within"]) if self.letters else WITHIN.findall(self.text)[-1]

    @property
    def letters(self) -> bool:
        """Return whether the query is a letter expression."""
        return self.text.startswith(LETTERS)

    @cached_property
    def query(self) -> acep.Query:
        """Return the query of the file."""
        if self.letters:
            return acep.regex(self.text.removeprefix(LETTERS), **OPTIONS[self.name])
        return acep.parse(self.text)


def examples() -> list[Example]:
    """Return all examples, by stream and name."""
    return [Example(path) for path in sorted(FOLDER.glob("*/*.acep"))]
