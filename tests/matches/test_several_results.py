"""Results of several queries are a dict or a list that shows each of them, as text and in a notebook."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

import acep
from tests.matches.test_shown import HOSTILE, checked

EVENTS = {"ts": [1, 2, 3, 4], "type": ["a", "b", "a", "b"], "k": ["x"] * 4}
UP, DOWN = acep.regex("ab", within=5), acep.regex("b(a|c)", within=5, by="k")
QUERIES = {"up": UP, "down": DOWN}


def of_each_kind(queries: Any) -> dict[str, Any]:
    """The results of several queries of each way in which they are given."""
    matcher = acep.Matcher(queries)
    matcher.push(EVENTS)
    found = {output: acep.match(EVENTS, queries, output=output) for output in ("count", "points", "bundles", "exists")}
    return found | {
        "matches": acep.match(EVENTS, queries),
        "of a limit": acep.match(EVENTS, queries, limit=1),
        "of a stream": matcher.finish(),
        "of no events": acep.match({name: [] for name in EVENTS}, queries),
    }


KINDS = ("count", "points", "bundles", "exists", "matches", "of a limit", "of a stream", "of no events")


@pytest.mark.parametrize("kind", KINDS)
def test_each_result_of_a_dict_is_shown(kind: str) -> None:
    found = of_each_kind(QUERIES)[kind]
    first, *lines = repr(found).splitlines()
    assert first == "2 queries"
    for name, result in found.items():
        text = repr(result).splitlines()
        place = lines.index(f"  {name}: {text[0]}")
        assert lines[place + 1 : place + len(text)] == [f"    {line}" for line in text[1:]]
    assert str(found) == repr(found)
    html = checked(found._repr_html_())
    assert "<b>2 queries</b>" in html
    for name, result in found.items():
        own = getattr(result, "_repr_html_", lambda result=result: f">{result!r}</pre>")()
        assert own in html.partition(f"<b>{name}</b>")[2]


def test_results_of_a_dict_stay_a_dict() -> None:
    found = acep.match(EVENTS, QUERIES, output="count")
    assert isinstance(found, dict)
    assert found == {"up": 3, "down": 1} == dict(found)
    assert ([*found], found["up"], {**found}, found | {"more": 1}) == (
        ["up", "down"],
        3,
        {"up": 3, "down": 1},
        {"up": 3, "down": 1, "more": 1},
    )
    assert json.loads(json.dumps({name: int(count) for name, count in found.items()})) == {"up": 3, "down": 1}
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 - these bytes are our own
    for same in (copy.copy(found), copy.deepcopy(found), again):
        assert (type(same), same, repr(same)) == (type(found), found, repr(found))
    match found:
        case {"up": up}:
            assert up == 3
    assert {"up": acep.match(EVENTS, UP), "down": acep.match(EVENTS, DOWN)} == acep.match(EVENTS, QUERIES)


def test_results_of_a_list_are_shown_by_their_number() -> None:
    found = acep.match(EVENTS, [UP, DOWN])
    assert isinstance(found, list)
    assert found == [acep.match(EVENTS, UP), acep.match(EVENTS, DOWN)]
    assert repr(found).startswith("2 queries\n  0: 3 matches in 1 bundle\n      1..2  a=0 b=1\n")
    assert "<b>1</b>" in checked(found._repr_html_())
    assert repr(copy.deepcopy(found)) == repr(found)


def test_of_very_many_queries_the_first_are_shown_and_names_are_escaped() -> None:
    names = [HOSTILE, "two\nlines", "x" * 1_000, *map(str, range(30))]
    found = acep.match(EVENTS, dict.fromkeys(names, UP))
    html, text = checked(found._repr_html_()), repr(found)
    assert text.startswith("33 queries\n")
    assert (text.splitlines()[-1], "... and 23 more" in html) == ("  ...", True)
    assert html.count("<table>") == 10
    assert "<script" not in html
    for shown in (html, text):
        assert r"two\nlines" in shown
        assert "(1,000 characters)" in shown
