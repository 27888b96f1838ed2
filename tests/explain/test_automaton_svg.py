"""Pictures: well-formed, nothing overlaps, whatever a query names is escaped, and large ones are refused."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from itertools import combinations
from random import Random
from xml.etree import ElementTree as ET

import pytest

import acep
from acep.explain.automaton_svg import query_svg
from acep.explain.layers import Box, Link, place
from tests.case_counts import CASES
from tests.random_cases import random_case

SVG = "{http://www.w3.org/2000/svg}"


def read(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - the picture is ours


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in read(picture).iter(f"{SVG}text")]


def test_the_letters_and_costs_of_a_query_are_drawn() -> None:
    found = texts(query_svg(acep.regex("ab", within=5, errors=1)))
    assert found[0] == "ab"
    for label in ("a", "b", "+1", "start", "1  a", "ends +1", "2  b"):
        assert label in found


def test_negations_groups_and_gaps_are_drawn() -> None:
    found = texts(query_svg(acep.parse("PATTERN SEQ((A a, ~B b, C c)+, D d)")))
    assert {"no b: B", "no b", "again g0", "3  d: D"} <= set(found)
    text = "PATTERN SEQ(A a, (B b | C c, D d), E e) WHERE strict_contiguity"
    assert "+1 to 2" in texts(query_svg(acep.parse(text, errors=2)))


def test_names_are_escaped() -> None:
    query = acep.parse("PATTERN SEQ(`<b>&\"'\x01` a, B b)")
    found = texts(query_svg(query))
    assert "a: <b>&\"'\N{REPLACEMENT CHARACTER}" in found


def test_long_names_are_shortened() -> None:
    found = texts(query_svg(acep.parse(f"PATTERN {'T' * 200} a")))
    assert max(len(text) for text in found[2:]) < 110


def test_what_is_too_large_is_said_to_be() -> None:
    found = texts(query_svg(acep.regex("a{1,90}", within=5)))
    assert any("too large to be drawn" in text for text in found)


def test_colours_for_dark_backgrounds() -> None:
    assert "@media (prefers-color-scheme: dark)" in query_svg(acep.regex("ab", within=5))


def test_random_queries_can_be_drawn(cases: Callable[[int], int]) -> None:
    for seed in range(cases(150)):
        case = random_case(seed)
        picture = query_svg(case.query())
        assert read(picture).get("viewBox")
        assert picture == query_svg(case.query())


def random_graph(seed: int) -> tuple[list[Box], list[Link]]:
    rng = Random(seed)
    boxes = [Box(rng.randint(30, 120), rng.randint(30, 60)) for _ in range(rng.randint(1, 9))]
    links = []
    loops = set()
    for _ in range(rng.randint(0, 16)):
        source, target = rng.randrange(len(boxes)), rng.randrange(len(boxes))
        if source == target and source in loops:
            continue
        loops |= {source} if source == target else set()
        links.append(Link(source, target, rng.choice((Box(0, 0), Box(rng.randint(10, 90), rng.randint(1, 3) * 16)))))
    return boxes, links


@pytest.mark.parametrize("seed", range(CASES(40)))
def test_boxes_and_labels_do_not_overlap(seed: int) -> None:
    boxes, links = random_graph(seed)
    drawing = place(boxes, links)
    assert drawing is not None
    areas = [
        (x - box.width / 2, y - box.height / 2, x + box.width / 2, y + box.height / 2)
        for box, (x, y) in zip(boxes, drawing.centres, strict=True)
    ]
    for link, (x, y) in zip(links, drawing.labels, strict=True):
        if link.label.height:
            areas.append((x - link.label.width / 2, y - link.label.height, x + link.label.width / 2, y))
    for left, top, right, bottom in areas:
        assert left >= -0.1
        assert top >= -0.1
        assert right <= drawing.width + 0.1
        assert bottom <= drawing.height + 0.1
    for one, two in combinations(areas, 2):
        beside = one[2] <= two[0] + 0.1 or two[2] <= one[0] + 0.1
        above = one[3] <= two[1] + 0.1 or two[3] <= one[1] + 0.1
        assert beside or above, (one, two)


@pytest.mark.parametrize("seed", range(CASES(40)))
def test_links_run_from_border_to_border(seed: int) -> None:
    boxes, links = random_graph(seed)
    drawing = place(boxes, links)
    assert drawing is not None
    for i, (link, route) in enumerate(zip(links, drawing.routes, strict=True)):
        if link.source == link.target:
            continue
        sign = -1 if i in drawing.backward else 1
        (x, y), box = drawing.centres[link.source], boxes[link.source]
        assert route[0][0] == pytest.approx(x + sign * box.width / 2)
        assert route[0][2] == pytest.approx(y)
        (x, y), box = drawing.centres[link.target], boxes[link.target]
        assert route[-1][1] == pytest.approx(x - sign * box.width / 2)
        assert route[-1][2] == pytest.approx(y)


def test_the_path_of_a_chain_is_level() -> None:
    drawing = place([Box(30, 30)] * 4, [Link(i, i + 1) for i in range(3)])
    assert drawing is not None
    assert len({round(y, 3) for _, y in drawing.centres}) == 1
    assert [x for x, _ in drawing.centres] == sorted(x for x, _ in drawing.centres)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_an_end_of_a_line_inside_of_quotes_is_an_arrow_and_not_a_line_of_the_drawing(end: str) -> None:
    query = acep.parse(
        f"PATTERN SEQ(A a, `B{end}x` b) -- it's a comment\nWHERE a.x = 'one{end}WITHIN 7 it''s' WITHIN 5"
    )
    svg = query_svg(query)
    lines = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert lines[:2] == ["PATTERN SEQ(A a, `B↵x` b) -- it's a comment", "WHERE a.x = 'one↵WITHIN 7 it''s' WITHIN 5"]
    assert "b: B↵x" in lines
    assert not any(mark in line for line in lines for mark in (end, "\\n"))
    html = query._repr_html_()
    assert html is not None
    assert "a.x = &#x27;one↵WITHIN 7 it&#x27;&#x27;s&#x27;" in html
    assert "'one↵WITHIN 7 it''s'" in str(query)
    picture = base64.b64decode(re.findall(r"base64,([^\"']+)", html)[0]).decode()
    assert re.findall(r"<text[^>]*>([^<]*)</text>", picture)[:2] == lines[:2]
