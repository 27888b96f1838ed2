"""Results in a notebook and in a terminal: escaped, bounded in size, and clear about what is cut."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.display import bounded_repr, clip_text
from acep.explain.closest_partial import Furthest
from acep.learning.history.graph import History
from acep.matches.match_form import MatchForm
from acep.matches.matches import Matches
from acep.matches.records import Found
from acep.pattern.tree import Query
from acep.plan.schema import Kind, Schema
from acep.shedding.history_file import read_history
from acep.streaming.progress import Progress

HOSTILE = "<script>alert('1')</script>"
HUGE = "<b>x" * 25_000  # 100,000 characters
TEXTS = [HOSTILE, HUGE, "a\n  b\x1b[31m\u202e", "&amp;"]
SMALL = 60_000  # characters of any page but drawings
LINES = 14


class Tags(HTMLParser):
    """The tags of a page, and whether each one is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in ("href", "src") or (value or "").startswith("data:image/svg+xml;base64,")
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(html: str | None) -> str:
    """A page that is whole, without tags of the user and without its drawings, which are whole, too."""
    assert html is not None
    tags = Tags(html)
    assert tags.open == []
    assert tags.seen <= {"div", "p", "b", "small", "br", "table", "thead", "tbody", "tr", "th", "td", "pre", "img"}
    for data in re.findall(r'base64,([^"]*)"', html):
        svg = base64.b64decode(data).decode()
        assert svg.startswith("<svg")
        assert "<script" not in svg
        assert "http://" not in svg.replace("http://www.w3.org/2000/svg", "")
        assert len(svg) < 200_000
    html = re.sub(r'base64,[^"]*"', '"', html)
    assert len(html) < SMALL
    assert "http" not in html
    return html


def results(text: str) -> dict[str, Any]:
    """Results of each class in which each name, type, id and value is a text."""
    short = text[:12_000]  # a query has a greatest length
    name, literal = f"`{short}`", short.replace("'", "''")
    query = acep.parse(
        f"PATTERN SEQ({name} a, {name}+ b[]) WHERE [{name}] WITHIN 9 RETURN a.{name} AS {name}", errors=1
    )
    rows = {"ts": [1, 2, 3], "type": [short] * 3, "id": [f"{text}{i}" for i in range(3)], short: [text] * 3}
    found = acep.match(pa.table(rows), query, id="id")
    arcs = [acep.arc("begin", short, f"e.{name} = '{literal}'", bind=short)]
    return {
        "matches": found,
        "match": found[-1],
        "bundles": found.bundles(),
        "bundle": found.bundles()[0],
        "points": found.points(),
        "point": found.points()[0],
        "report": acep.Report(events=3, shed=2, recall=None, interval=(0.0, 1.0), unknown=text),
        "query": query,
        "automaton": acep.Automaton(arcs, final=short),
    }


@pytest.mark.parametrize("kind", list(results("x")))
@pytest.mark.parametrize("text", TEXTS, ids=["script", "huge", "control", "entity"])
def test_texts_of_users_are_escaped_and_cut(text: str, kind: str) -> None:
    shown = results(text)[kind]
    html = checked(shown._repr_html_())
    assert "<script" not in html
    if text == HOSTILE and kind != "report":
        assert "&lt;script&gt;" in html
    for words in (repr(shown), str(shown)):
        assert len(words) < 20_000
        assert len(words.splitlines()) <= LINES
        assert all(line.isprintable() for line in words.splitlines())
    if text == HUGE:
        assert "characters)" in repr(shown) + str(shown)
        assert "characters)" in html


def a_million() -> acep.Matches:
    rows = {"ts": range(2000), "type": np.repeat(["a", "b"], 1000)}
    found = acep.match(rows, acep.regex("ab", within=None))
    assert len(found) == 1_000_000
    return found


def test_a_million_matches_are_shown_by_the_first() -> None:
    found = a_million()
    began = time.process_time()
    html, words = checked(found._repr_html_()), repr(found)
    assert time.process_time() - began < 5
    assert html.count("<tr>") == 11
    assert "... and 999,990 more" in html
    assert words.splitlines()[0] == "1,000,000 matches in 1 bundle"
    assert len(words.splitlines()) == 12
    points = found.points()
    assert "... and 990 more" in checked(points._repr_html_())
    assert repr(points).splitlines()[0] == "1,000 match points"


def test_matches_that_are_taken_back_are_not_counted_one_by_one() -> None:
    found = a_million()
    again = Matches(found.found, MatchForm(found.schema, keys=found.keys, revised=True))
    began = time.process_time()
    assert repr(again).startswith("1,000,000 matches, 0 taken back")
    assert time.process_time() - began < 2


def test_a_match_of_very_many_events_and_variables() -> None:
    ids = tuple(range(100_000))
    names = [f"v{i}" for i in range(500)]
    bindings = (*((name, ids[:1]) for name in names), ("all", ids))
    one = Found(tuple(names), 1, 9, 0, bindings, 9, tuple(names))
    matches = Matches([one], MatchForm(Schema(()), keys=tuple(names), returns=tuple(f"r{name}" for name in names)))
    for shown in (matches, matches[0]):
        html = checked(shown._repr_html_())
        assert "500" in html or "more" in html
        assert max(len(repr(shown)), len(str(shown))) < 10_000
    few = Matches([Found((), 1, 9, 0, (("all", ids),), 9)], MatchForm(Schema(())))
    assert str(few[0]) == "1..9  all=0,1,2,3,4,...,99999 (100,000 events)"
    assert "<td>100,000</td>" in few[0]._repr_html_()


def test_texts_that_could_be_something_else_are_quoted() -> None:
    found = [Found((key,), 1, 2, 0, (("a", (key,)),), 2) for key in ("x", "5", "x y", "None", "a=1", "", "x'")]
    lines = repr(Matches(found, MatchForm(Schema((("k", Kind.STRING),)), keys=("k",)))).splitlines()[1:]
    keys = [line.split("  1..2")[0].strip() for line in lines]
    assert keys == ["k=x", "k='5'", "k='x y'", "k='None'", "k='a=1'", "k=''", 'k="x\'"']
    assert len(set(lines)) == len(found)


@pytest.mark.parametrize("name", ["start", "end"])
def test_a_bundle_says_that_its_start_is_a_match_point(name: str) -> None:
    found = acep.match({"ts": [1, 4, 6], "type": list("abb")}, acep.regex("ab", within=5))
    (bundle,) = found.bundles()
    assert (found[0].start, bundle.start, bundle.end) == (1, 4, 6)
    assert bundle.start == found[0].end
    assert f"{name} ({'first' if name == 'start' else 'last'} match point)" in bundle._repr_html_()
    assert f"{name} ({'first' if name == 'start' else 'last'} event)" in found[0]._repr_html_()
    assert str(bundle) == "match points 4..6  2 matches  best=0"
    assert repr(bundle) == "Bundle(key={}, start=4, end=6, matches=2, best=0)"
    assert repr(found.bundles()) == f"1 match bundle\n  {bundle}"
    assert repr(found.points()[0]) == "Point(key={}, point=4, best=0)"


def test_matches_and_their_parts_in_words() -> None:
    found = acep.match({"ts": [1, 4], "type": list("ab"), "k": ["x", "x"]}, acep.regex("ab", within=5, by=["k"]))
    assert str(found[0]) == "k=x  1..4  a=0 b=1"
    assert repr(found[0]) == (
        "Match(key={'k': 'x'}, start=1, end=4, error=0, bindings={'a': (0,), 'b': (1,)}, bundle=4, values={})"
    )
    taken = Matches([Found((), 1, 4, 0, (("a", (0,)),), 4, op=-1)], MatchForm(Schema(()), revised=True))[0]
    assert repr(taken).endswith("bundle=None, values={}, op=-1)")
    assert str(taken) == "taken back:  1..4  a=0"
    assert "<td>taken back</td>" in taken._repr_html_()
    assert repr(found[:0].bundles()) == "no match bundles"
    assert repr(acep.Report(events=3, matches=None)) == "Report(events=3, matches=None)"
    assert repr(acep.Report()) == "Report()"


# Queries and histories ---------------------------------------------------------------------------


def test_a_query_is_shown_by_its_text_and_its_automaton() -> None:
    query = acep.parse("pattern  SEQ(A a, B b) WITHIN 5", errors=1)
    assert repr(query) == "Query(/* errors 1 */ PATTERN SEQ(A a, B b) WITHIN 5)"
    assert repr(query) != repr(acep.parse("PATTERN SEQ(A a, B b) WITHIN 5"))
    assert repr(acep.regex("ab", within=5)) == "Query(LETTERS ab WITHIN 5)"
    html = query._repr_html_()
    assert html is not None
    checked(html)
    assert "pattern  SEQ(A a, B b) WITHIN 5" in html
    assert html.count("data:image/svg+xml") == 1
    automaton = acep.Automaton([acep.arc("begin", "end")], final="end")
    assert repr(automaton).startswith("Automaton(")
    assert (automaton._repr_html_() or "").count("data:image/svg+xml") == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: acep.regex("a" * 300, within=5),
        lambda: acep.parse("PATTERN {" + ", ".join(f"A a{i}" for i in range(14)) + "} WITHIN 5"),
        lambda: acep.parse("PATTERN A a WHERE " + " AND ".join(f"a.x > {i}" for i in range(5_000)) + " WITHIN 5"),
        lambda: acep.Automaton([acep.arc("s", f"s{i}") for i in range(100)], final="s1"),
    ],
    ids=["long", "set", "conditions", "arcs"],
)
def test_large_queries_are_shown_soon_and_in_part(make: Callable[[], Any]) -> None:
    query = make()
    began = time.process_time()
    html = checked(query._repr_html_())
    assert len(repr(query)) < 3_000
    assert time.process_time() - began < 10
    assert "too large to be drawn here" in html or isinstance(query, Query)


def test_a_history_is_shown_by_what_it_knows() -> None:
    rows = {"ts": range(300), "type": ["a", "b", "c"] * 100, "k": ["x", "y"] * 150}
    query = acep.parse(f"PATTERN SEQ(a `{HOSTILE}`, b q, c r) WHERE [k] WITHIN 20")
    history = History.from_bytes(read_history(acep.learn(rows, query)))
    html = history._repr_html_()
    assert "<script" not in checked(html)
    assert html.count("data:image/svg+xml") == 1
    numbers = r"\d+ states, \d+ epochs, [\d,]+ visits, [\d,]+ of [\d,]+ match vectors"
    assert re.fullmatch(rf"History\(bundles; {numbers}\)", repr(history))
    assert "match vectors" in html
    history.names = (HUGE,) * len(history.names)
    checked(history._repr_html_())


# Texts -------------------------------------------------------------------------------------------


def test_bounded_texts_of_small_values_are_those_of_repr() -> None:
    for value in (None, 5, "x", ("x",), (), [1, 2], {"a": (1, 2)}, {}, 1.5, np.datetime64("2024-01-01"), ("a", ("b",))):
        assert bounded_repr(value) == repr(value)
    assert bounded_repr("x" * 100) == f"{'x' * 80!r}... (100 characters)"
    assert bounded_repr(list(range(20))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 20 in all]"
    assert bounded_repr(dict.fromkeys(range(20))).endswith("9: None, ... 20 in all}")
    assert clip_text("a\x1bb\u202e") == "a\\x1bb\\u202e"


def test_a_drawing_has_the_lines_of_the_text() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b)\r\n\tWHERE a.x = 'p\u2028\x1b'\n\n  WITHIN 10")
    (data,) = re.findall(r'base64,([^"]*)"', query._repr_html_() or "")
    svg = ET.fromstring(base64.b64decode(data))  # noqa: S314 - it is our own
    lines = [
        "PATTERN SEQ(A a, B b)",
        "    WHERE a.x = 'p\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}\\x1b'",
        "",
        "  WITHIN 10",
    ]
    texts = [one.text or "" for one in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[: len(lines)] == lines
    assert (svg.findtext("{http://www.w3.org/2000/svg}title") or "").splitlines() == lines


def test_text_of_several_lines_is_monospaced_whatever_the_page_says_of_it() -> None:
    """Pages that nbconvert makes say `.jp-OutputArea-output pre { font-family: inherit; word-break: break-all }`."""
    events = {"ts": [1, 2], "type": ["A", "B"]}
    query = acep.parse("PATTERN SEQ(A a, B b) WITHIN 5")
    shown = [query, acep.lint(events, query), Furthest(2, 0, "b", {}, (), "", {}), acep.tune(events, query)]
    for html in (one._repr_html_() for one in shown):
        (style,) = re.findall(r'<pre style="([^"]*)">', html or "")
        assert {"white-space:pre", "word-break:normal"} < set(style.split(";"))
        assert re.search(r"font-family:[^;]*\bmonospace;", style)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0002, "in 0.00 s"),
        (0.09, "in 0.09 s"),
        (0.1, "in 0.10 s (1,230,000 events/s)"),
        (2.0, "in 2.00 s (61,700 events/s)"),
    ],
)
def test_a_speed_is_given_only_where_the_time_is_long_enough(seconds: float, said: str) -> None:
    report = acep.Report(events=123_456, seconds=seconds)
    assert str(report).splitlines()[0].endswith(said)
    line = Progress(0, 123_456, 0, 0, 0, 0, "", 0, 123_456, seconds).line
    assert ("/s)" in line) is ("events/s" in said)
