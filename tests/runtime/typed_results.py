"""State the types that a type checker knows of the results of :func:`acep.match`, of a Matcher and of Matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import acep
from acep.matches.batches import Batches
from acep.matches.compressed import Compressed

EVENTS: Any = {"ts": [1, 2], "type": ["a", "b"]}
QUERY = acep.regex("ab", within=5)
TEXT = "PATTERN SEQ(a x, b y) WITHIN 5"


def of_match(which: str) -> None:
    """Match with each kind of output, and with one query or several."""
    assert_type(acep.match(EVENTS, QUERY), acep.Matches)
    assert_type(acep.match(EVENTS, TEXT, output="matches", limit=5, ts="ts"), acep.Matches)
    assert_type(acep.match(EVENTS, QUERY, output="count", budget=acep.Budget(work=5)), acep.Count)
    assert_type(acep.match(EVENTS, QUERY, output="points"), acep.Points)
    assert_type(acep.match(EVENTS, QUERY, output="bundles", counts=False), acep.Bundles)
    assert_type(acep.match(EVENTS, QUERY, output="exists", engine="reference"), bool)
    assert_type(acep.match(EVENTS, QUERY, output="compressed"), Compressed)
    assert_type(acep.match(EVENTS, QUERY, output="batches"), Batches)
    assert_type(acep.match(EVENTS, [QUERY, TEXT]), list[acep.Matches])
    assert_type(acep.match(EVENTS, {"one": QUERY, "other": TEXT}), dict[str, acep.Matches])
    assert_type(acep.match(EVENTS, [QUERY, TEXT], output="count"), Any)
    assert_type(acep.match(EVENTS, QUERY, output=which), Any)
    acep.match(EVENTS, QUERY, budgets=None)  # type: ignore[call-overload]
    acep.match(EVENTS, QUERY, ts=5)  # type: ignore[call-overload]


def of_matcher() -> None:
    """Push batches to one query, and to several."""
    one = acep.Matcher(QUERY, seq=None)
    assert_type(one.push(EVENTS), acep.Matches)
    assert_type(one.blocks(EVENTS), Iterator[acep.Matches])
    assert_type(one.finish_blocks(), Iterator[acep.Matches])
    assert_type(one.finish(), acep.Matches)
    assert_type(one.report, acep.Report)
    assert_type(acep.Matcher([QUERY, TEXT]).push(EVENTS), list[acep.Matches])
    assert_type(acep.Matcher({"one": QUERY}).finish(), dict[str, acep.Matches])
    acep.Matcher(QUERY, output="count")  # type: ignore[call-overload]


def of_matches(found: acep.Matches, plain: acep.Matcher) -> None:
    """Read single matches, parts of all, and summaries."""
    assert_type(found[0], acep.Match)
    assert_type(found[:5], acep.Matches)
    assert_type(next(iter(found)), acep.Match)
    assert_type(found.points(), acep.Points)
    assert_type(found.points()[0], acep.Point)
    assert_type(found.points()[0].change, int | None)
    assert_type(found.bundles(counts=False), acep.Bundles)
    assert_type(found.bundles()[1:], acep.Bundles)
    assert_type(found.count(), acep.Count)
    assert_type(found.report, acep.Report)
    assert_type(plain.finish(), Any)


def of_learning() -> None:
    """Learn ahead with the same options, but no engine."""
    assert_type(acep.learn(EVENTS, QUERY, seed=3, history=None), bytes)
    acep.learn(EVENTS, QUERY, engine="auto")  # type: ignore[call-arg]
