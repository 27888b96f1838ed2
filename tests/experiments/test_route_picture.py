"""The picture of the page on Spark is the one that the code draws, and shows what the page says."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from experiments.spark.route_picture import ARRIVALS, MATCHES, PICTURE, SINKS, draw_picture

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/spark.md"


def test_the_page_has_the_picture_that_the_code_draws() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw_picture(), "run `make plots`"
    assert f"]({PICTURE.relative_to(PAGE.parent)})" in PAGE.read_text(encoding="utf-8")


def test_the_picture_is_xml_with_each_event_twice() -> None:
    drawing = ET.fromstring(draw_picture())  # noqa: S314 - the picture is ours
    assert len(drawing.findall(".//{http://www.w3.org/2000/svg}circle")) == 2 * len(ARRIVALS)


def test_the_picture_has_the_calls_of_the_table_of_the_page() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("\n\n![")[0]
    for name, _, call in SINKS:
        assert name in table
        assert call.partition("(")[0] in table


def test_matches_of_the_picture_are_of_events_of_their_key() -> None:
    assert all((key, time) in ARRIVALS for key, times in MATCHES.items() for time in times)
