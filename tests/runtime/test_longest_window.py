"""The longest window: 2**63 - 2 ticks or events are taken by each engine, and one more is refused."""

from __future__ import annotations

import pytest

import acep
from acep.errors import QueryError

LONGEST = 2**63 - 2
EVENTS = {"ts": [1, 2, 5], "type": ["a", "b", "b"]}
QUERIES = [
    "PATTERN SEQ(a x, b y) WITHIN @",
    "PATTERN SEQ(a x, b y) WITHIN @ EVENTS",
    "PATTERN SEQ(a x, ~c n, b y) WITHIN @",
    "PATTERN SEQ(a x, b y, ~c z) WITHIN @ OUTPUT EARLIEST MAXIMAL",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_longest_window_is_that_of_the_whole_stream(query: str) -> None:
    expected = 1 if "MAXIMAL" in query else 2
    for engine in ("reference", "auto"):
        text = query.replace("@", str(LONGEST))
        assert acep.match(EVENTS, text, engine=engine, output="count") == expected  # type: ignore[call-overload]
        assert len(acep.match(EVENTS, text, engine=engine)) == expected  # type: ignore[call-overload]


@pytest.mark.parametrize("query", [*QUERIES, "PATTERN SEQ(a x, b y) WITHIN @ ns"])
@pytest.mark.parametrize("length", [LONGEST + 1, LONGEST + 2])
def test_a_longer_one_is_refused(query: str, length: int) -> None:
    with pytest.raises(QueryError, match="this window is too long") as error:
        acep.parse(query.replace("@", str(length)))
    assert error.value.code == "query_size"
    with pytest.raises(QueryError):
        acep.parse(query.replace("@", ":w"), parameters={"w": length})


def test_lateness_is_bounded_alike() -> None:
    acep.Matcher("PATTERN a x", lateness=LONGEST).push(EVENTS)
    with pytest.raises(acep.errors.AcepError):
        acep.Matcher("PATTERN a x", lateness=LONGEST + 1).push(EVENTS)
