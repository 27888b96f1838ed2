"""Several queries in one pass give what each of them alone gives."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import acep
from acep.errors import QueryError, SnapshotError

KINDS = "abcd"
TIED = "PATTERN SEQ(a x, b+ y[], c z) WHERE skip_till_next_match(x, y[], z) { y[i].v > x.v } WITHIN 12"
QUERIES = {
    "letters": acep.regex("a(b|c)d", within=9, errors=1),
    "tied": acep.parse(TIED),
    "by key": acep.parse("PATTERN SEQ(a x, ~d n, c z) WHERE [k] WITHIN 15"),
    "composed": acep.parse("FROM (PATTERN SEQ(a x, b y) WITHIN 3) AS P PATTERN SEQ(P p, P q) WITHIN 9"),
}


def stream(seed: int, size: int = 60) -> dict[str, list[Any]]:
    rng = Random(seed)
    return {
        "ts": list(range(size)),
        "type": rng.choices(KINDS, k=size),
        "k": rng.choices([1, 2], k=size),
        "v": [rng.randrange(9) for _ in range(size)],
    }


def part(rows: dict[str, list[Any]], start: int, end: int) -> dict[str, list[Any]]:
    return {name: values[start:end] for name, values in rows.items()}


def plain(result: Any) -> Any:
    """A result in a form that can be compared."""
    if isinstance(result, acep.Matches):
        return [(m.key, m.start, m.end, m.error, m.bindings, m.bundle) for m in result]
    if hasattr(result, "schema"):
        return [row for batch in result for row in batch.to_pylist()]
    return (result.count(), plain(result.matches(limit=10**6))) if hasattr(result, "sample") else result


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count", "compressed", "batches"])
def test_each_gets_its_own(output: str, engine: str) -> None:
    rows = stream(1)
    alone = {name: plain(acep.match(rows, q, output=output, engine=engine)) for name, q in QUERIES.items()}
    assert all(alone.values())
    named = acep.match(rows, QUERIES, output=output, engine=engine)
    assert {name: plain(one) for name, one in named.items()} == alone
    listed = acep.match(rows, list(QUERIES.values()), output=output, engine=engine)
    assert [plain(one) for one in listed] == list(alone.values())


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_batch_by_batch_with_snapshots(engine: str) -> None:
    rows = stream(2)
    matchers = {name: acep.Matcher(q, engine=engine) for name, q in QUERIES.items()}
    several = acep.Matcher(QUERIES, engine=engine)
    for start in range(0, 60, 13):
        some = part(rows, start, start + 13)
        alone = {name: plain(matcher.push(some)) for name, matcher in matchers.items()}
        assert {name: plain(one) for name, one in several.push(some).items()} == alone
        state = several.snapshot()
        several = acep.Matcher(QUERIES, engine=engine)
        several.restore(state)
    found = several.finish()
    assert {name: plain(one) for name, one in found.items()} == {n: plain(m.finish()) for n, m in matchers.items()}
    assert several.report.made == sum(matcher.report.made for matcher in matchers.values())
    assert found["by key"].report.made == matchers["by key"].report.made
    with pytest.raises(SnapshotError):
        acep.Matcher(list(QUERIES.values()), engine=engine).restore(several.snapshot())


def test_no_events_and_no_queries() -> None:
    assert [plain(one) for one in acep.match({}, list(QUERIES.values()))] == [[]] * len(QUERIES)
    assert acep.match({}, QUERIES, output="count") == dict.fromkeys(QUERIES, 0)
    for none in ([], {}):
        with pytest.raises(QueryError, match="there is no query"):
            acep.match({}, none)
    with pytest.raises(QueryError, match="not int"):
        acep.match({}, [5])  # type: ignore[list-item]
