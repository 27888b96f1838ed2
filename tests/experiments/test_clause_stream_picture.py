"""The picture of clauses on streams is the one that the code draws."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from experiments.clause_stream_picture import CLAUSES, LETTERS, PICTURE, draw_picture, streamed_matches

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/sql.md"


def test_the_page_has_the_picture_that_the_code_draws() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw_picture(), "run `make plots`"
    assert f"]({PICTURE.relative_to(PAGE.parent)})" in PAGE.read_text(encoding="utf-8")


def test_greedy_quantifiers_wait_and_reluctant_ones_do_not() -> None:
    rows = {pattern: [match.row - match.stop for match in streamed_matches(pattern)] for pattern in CLAUSES}
    assert rows["A B+"] == [1, 1]
    assert rows["A B+?"] == rows["A B{2}"] == [0, 0]
    assert rows["A B+ C"] == [0]
    assert streamed_matches("A B+")[-1].row == len(LETTERS) + 1
    assert streamed_matches("A B+ WITHIN 2")[-1].row == len(LETTERS)


def test_the_picture_is_xml_with_a_dot_for_each_match() -> None:
    drawing = ET.fromstring(draw_picture())  # noqa: S314 - the picture is ours
    n_matches = sum(len(streamed_matches(pattern)) for pattern in CLAUSES)
    assert len(drawing.findall(".//{http://www.w3.org/2000/svg}circle")) == n_matches + 1
