"""Parts of lists on every way that events take through one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from acep.pattern.printing import canonical

ROWS = [
    {
        "ts": i,
        "type": "ab"[i % 2],
        "id": i,
        "op": 1,
        "tags": ["x", str(i)] if i % 3 else None,
        "dev": {"n": [i, None]},
    }
    for i in range(8)
]
TABLE = pa.Table.from_pylist(ROWS)
QUERY = (
    "PATTERN SEQ(a p, b q) WHERE contains(p.tags, 'x') AND q.dev.n[1] > 2 AND CAST(q.tags AS text) LIKE '%x%' WITHIN 5"
)
WANTED = [
    {"p": (p,), "q": (q,)}
    for p in (2, 4)
    for q in (5, 7)
    if q > p and q - p <= 5
]  # fmt: skip


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"engine": "reference"},
        {"lateness": 3},
        {"lateness": 3, "speculation": "inf"},
        {"lateness": 3, "op": "op", "id": "id", "speculation": 2},
        {"seq": "id", "seq_gaps": True},
        {"dynamic": True},
    ],
)
def test_a_stream_that_is_restored_between_batches(how: dict[str, Any]) -> None:
    matcher, bound = acep.Matcher(QUERY, **how), []
    for part in (TABLE.slice(0, 3), TABLE.slice(3, 1), TABLE.slice(4)):
        bound += [match.bindings for match in matcher.push(part)]
        state = matcher.snapshot()
        matcher = acep.Matcher(QUERY, **how)
        matcher.restore(state)
    bound += [match.bindings for match in matcher.finish()]
    assert sorted(map(str, bound)) == sorted(map(str, WANTED))


def test_a_query_that_is_replaced_may_ask_of_other_lists() -> None:
    matcher = acep.Matcher(QUERY, dynamic=True)
    matcher.push(TABLE.slice(0, 3))
    matcher.replace(QUERY.replace("contains(p.tags, 'x')", "p.tags[2] = '4'"))
    bound = [match.bindings for match in (*matcher.push(TABLE.slice(3)), *matcher.finish())]
    assert {"p": (4,), "q": (5,)} in bound


def test_a_version_of_a_followed_query_reads_no_other_parts(tmp_path: Path) -> None:
    """Of lists only the parts are kept that the first version reads."""
    for folder in ("in", "versions"):
        (tmp_path / folder).mkdir()
    lines = ['{"ts": 1, "type": "a", "tags": ["x"]}\n', '{"ts": 2, "type": "b", "tags": ["y"]}\n']
    (tmp_path / "in" / "1.jsonl").write_text(lines[0])
    query = "PATTERN SEQ(a p, b q) WHERE contains(p.tags, 'x') WITHIN 5 RETURN q.tags[1] AS tag"
    how: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "versions": tmp_path / "versions"}
    acep.follow(tmp_path / "in", query, **how, once=True)
    new = tmp_path / "versions" / "0002-more.sase"
    new.write_text(query.replace("WITHIN", "AND contains(q.tags, 'y') WITHIN"))
    (tmp_path / "in" / "2.jsonl").write_text(lines[1])
    with pytest.raises(QueryError, match=r"it reads `contains\(tags, 'y'\)`, a part of a list that the first"):
        acep.follow(tmp_path / "in", query, **how, once=True)
    new.write_text(query.replace("WITHIN", "AND q.tags[1] = 'y' WITHIN"))
    assert acep.follow(tmp_path / "in", query, **how, end=True).report.matches == 1


def test_values_and_rows_of_matches() -> None:
    query = "PATTERN a p WHERE contains(p.tags, 'x') RETURN p.tags[2] AS second, CAST(p.tags AS text)"
    query += ", contains(p.tags, '4')"
    found = acep.match(TABLE, query)
    assert [match.values for match in found] == [
        {"second": "2", "cast_p_tags": '["x","2"]', "p_contains_tags_4": False},
        {"second": "4", "cast_p_tags": '["x","4"]', "p_contains_tags_4": True},
    ]
    assert found.events(found[0]).column("tags").to_pylist() == [["x", "2"]]
    assert acep.match(TABLE, "PATTERN SEQ(a p, b q) WHERE [tags[1]] WITHIN 5")[0].key == {"tags[1]": "x"}


def test_a_hand_written_automaton_asks_of_lists() -> None:
    text = """
        final = "end"
        [[arc]]
        from = "begin"
        to = "end"
        fence = "contains(e.tags, '4') AND e.dev.n[1] = 4"
        bind = "first"
    """
    (match,) = acep.match(TABLE, acep.Automaton.from_toml(text))
    assert match.bindings == {"first": (4,)}


@pytest.mark.parametrize(
    "condition",
    [
        "contains(a.tags, 'it''s')",
        "contains(b[i-1].n, -5)",
        "b[i].tags[2] = 'x'",
        "contains(a.f, TRUE)",
        "contains(a.dev.z, 1.5)",
        "a.answers[1].name[2] = 'x'",
        'a."odd name"[1] = 1',
        "CAST(a.tags AS text) = '[]'",
        "max(b[].n[1]) > 5",
    ],
)
def test_a_query_that_is_printed_is_the_same(condition: str) -> None:
    query = acep.parse(f"PATTERN SEQ(A a, B+ b[]) WHERE [dev.roles[1]] AND {condition}")
    again = acep.parse(canonical(query))
    assert canonical(again) == canonical(query)
    assert again.ties == query.ties == ("dev.roles[1]",)


def test_a_column_that_is_called_like_an_element_goes_first() -> None:
    rows = {"ts": [1], "type": ["a"], "tags": [["list"]], "tags[1]": ["column"]}
    assert acep.match(rows, "PATTERN a x RETURN x.tags[1] AS t")[0].values == {"t": "column"}
