"""Draw when a stream gives the matches of a clause: ``python -m experiments.clause_stream_picture``.

Each clause runs over the same rows in an `acep.Matcher`, a row in each push. The picture shows the rows of each match,
and the row with which it came. It is docs/reference/clause_stream.svg.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import acep

__all__ = ["CLAUSES", "LETTERS", "PICTURE", "StreamedMatch", "draw_picture", "main", "streamed_matches"]

PICTURE = Path(__file__).resolve().parents[1] / "docs/reference/clause_stream.svg"
LETTERS = "abbcabbb"
CLAUSES = ("A B+", "A B+?", "A B{2}", "A B+ C", "A B+ WITHIN 2")
DEFINE = "DEFINE A AS letter = 'a', B AS letter = 'b', C AS letter = 'c'"

WIDE, HIGH, LEFT, TOP = 62, 46, 170, 64  # pixels: a row of the stream, a clause, the names, the head
INK, GREY, WAITS, DOT = "#24292f", "#8c959f", "#bfd7f2", "#1f6feb"


@dataclass(frozen=True)
class StreamedMatch:
    """A match of the rows ``start`` to ``stop``; ``row``: the one with which it came, or the number after the last one
    if the end of the stream gave it."""

    start: int
    stop: int
    row: int


def streamed_matches(pattern: str) -> list[StreamedMatch]:
    """Run a pattern over the letters, one at a time.

    >>> streamed_matches("A B+?")
    [StreamedMatch(start=1, stop=2, row=2), StreamedMatch(start=5, stop=6, row=6)]
    """
    matcher = acep.Matcher(
        f"ORDER BY i MEASURES FIRST(i) AS start, LAST(i) AS stop PATTERN ({pattern.partition(' WITHIN')[0]})"
        f"{''.join(pattern.partition(' WITHIN')[1:])} {DEFINE if 'C' in pattern else DEFINE.rpartition(',')[0]}"
    )
    matches = []
    for row in range(1, len(LETTERS) + 2):
        is_over = row > len(LETTERS)
        columns = matcher.finish() if is_over else matcher.push({"i": [row], "letter": [LETTERS[row - 1]]})
        matches += [StreamedMatch(*pair, row) for pair in zip(columns["start"], columns["stop"], strict=True)]
    return matches


def draw_picture() -> str:
    """Return the picture as an SVG document."""
    width, height = LEFT + (len(LETTERS) + 1) * WIDE + 30, TOP + len(CLAUSES) * HIGH + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f'<g font-family="sans-serif" font-size="15" fill="{INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(16, 30, "rows, one in each push"),
    ]
    for row, letter in enumerate([*LETTERS, "end"], 1):
        parts.append(_text(_middle(row), 30, f"{row} {letter}" if letter != "end" else "finish", "middle"))
        parts.append(
            f'<line x1="{_middle(row)}" y1="40" x2="{_middle(row)}" y2="{height - 40}" stroke="{GREY}"'
            ' stroke-width="1" stroke-dasharray="2 4"/>'
        )
    for place, pattern in enumerate(CLAUSES):
        y = TOP + place * HIGH
        parts.append(_text(16, y + 20, pattern, family="monospace"))
        parts += [part for match in streamed_matches(pattern) for part in _drawn_match(match, y)]
    y = height - 22
    parts += [
        f'<rect x="16" y="{y}" width="34" height="14" rx="7" fill="{WAITS}"/>',
        _text(58, y + 12, "the rows of a match"),
        f'<circle cx="230" cy="{y + 7}" r="8" fill="{DOT}"/>',
        _text(246, y + 12, "the push that gives it: no later row can change it"),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _middle(row: int) -> int:
    """Return the x of a row of the stream."""
    return LEFT + (row - 1) * WIDE + WIDE // 2


def _text(x: int, y: int, text: str, anchor: str = "start", family: str = "") -> str:
    own_family = f' font-family="{family}"' if family else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{own_family}>{escape(text)}</text>'


def _drawn_match(match: StreamedMatch, y: int) -> list[str]:
    left, right, dot = _middle(match.start) - 15, _middle(match.stop) + 15, _middle(match.row)
    return [
        f'<line x1="{right}" y1="{y + 15}" x2="{dot}" y2="{y + 15}" stroke="{DOT}" stroke-width="2"/>',
        f'<rect x="{left}" y="{y + 3}" width="{right - left}" height="24" rx="12" fill="{WAITS}"/>',
        f'<circle cx="{dot}" cy="{y + 15}" r="8" fill="{DOT}"/>',
    ]


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw_picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
