"""With so many keys that the memory of later events is loaded ahead, the matches of each key are those of few keys."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.native.compiled import why_not
from tests.thinned import thinned

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

KEYS = 2_400
FEW = KEYS // 3  # fewer than Session::push loads ahead for
QUERIES = {
    "rising": "SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] AND a[i].x > a[i-1].x } WITHIN 14000",
    "any": "SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] AND b.x > a.x } WITHIN 14000",
    "negation": "SEQ(A a, ~B n, C c) WHERE skip_till_next_match(a, c) { [k] AND c.x >= a.x } WITHIN 14000",
    "contiguous": "SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] AND b.x > a.x } WITHIN 14000",
    "untied": "SEQ(A a, {B b, C c}) WHERE skip_till_any_match(a, b, c) { [k] } WITHIN 14000",
    "chosen": "SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] AND b.x > a.x } WITHIN 14000 OUTPUT NON OVERLAP",
}


def stream() -> pa.Table:
    rng = Random(4)
    rows = [
        {"ts": n, "type": rng.choice("ABCD"), "k": rng.randrange(KEYS), "x": rng.randrange(9)} for n in range(18_000)
    ]
    return pa.Table.from_pylist([row | {"id": n} for n, row in enumerate(rows)])


EVENTS = stream()


def told(found: Any) -> list[str]:
    return sorted(map(str, found))


@pytest.mark.parametrize("errors", [0, 1])
@pytest.mark.parametrize("name", thinned([*QUERIES], 2))
def test_each_key_has_the_matches_that_it_has_among_few(name: str, errors: int) -> None:
    query = acep.parse(f"PATTERN {QUERIES[name]}", errors=errors)
    keys = EVENTS.column("k").to_numpy()
    parts = [EVENTS.filter(pa.array(keys // FEW == third)) for third in range(3)]
    for output in ("matches", "points"):
        whole = acep.match(EVENTS, query, id="id", output=output)
        assert len(whole) > 100
        among_few = [acep.match(part, query, id="id", output=output) for part in parts]
        assert told(whole) == sorted(one for found in among_few for one in told(found))
    counts = [acep.match(part, query, id="id", output="count") for part in parts]
    assert acep.match(EVENTS, query, id="id", output="count") == sum(map(int, counts))


def test_a_stream_goes_on_from_its_state_with_many_keys() -> None:
    query = acep.parse(f"PATTERN {QUERIES['rising']}")
    wanted, found = acep.match(EVENTS, query, id="id"), list[Any]()
    matcher = acep.Matcher(query, id="id")
    for begin in range(0, len(EVENTS), 4_000):
        found += matcher.push(EVENTS.slice(begin, 4_000))
        state, matcher = matcher.snapshot(), acep.Matcher(query, id="id")
        matcher.restore(state)
    found += matcher.finish()
    assert told(found) == told(wanted)
