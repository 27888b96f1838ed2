"""The report on many matches agrees with acep.match: counts, differences, and the matches that each change leaves."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.cli import main
from acep.tuning.many import why_many
from tests.case_counts import CaseCounts
from tests.complaints import case_text, difference, fail_if_wrong_on_rows


def stream(seed: int, events: int = 400) -> dict[str, list[Any]]:
    rng = random.Random(seed)
    keys = [rng.randrange(4) for _ in range(events)]
    return {
        "ts": list(range(events)),
        "type": rng.choices("abc", k=events),
        "k": keys,
        "owner": [f"o{key}" for key in keys],
        "x": [rng.randrange(20) for _ in range(events)],
    }


PATTERN = "PATTERN SEQ(a p, b q, c r) WHERE {strategy} {{ [k] AND r.x > q.x }} WITHIN {window}{output}"
PLAIN = {"strategy": "skip_till_any_match", "window": "40", "output": ""}
TEXT = PATTERN.format(**PLAIN)
CHANGES = {
    "OUTPUT NON OVERLAP": {"output": " OUTPUT NON OVERLAP"},
    "OUTPUT LONGEST NON OVERLAP": {"output": " OUTPUT LONGEST NON OVERLAP"},
    "OUTPUT EARLIEST MAXIMAL": {"output": " OUTPUT EARLIEST MAXIMAL"},
    "skip_till_next_match": {"strategy": "skip_till_next_match"},
    "partition_contiguity": {"strategy": "partition_contiguity"},
    "WITHIN 20": {"window": "20"},
    "WITHIN 10": {"window": "10"},
}


def test_all_numbers_are_those_of_match(cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(20)):
        rows = pa.table(stream(seed, 200)).to_pylist()
        complaint_of = partial(complaint_of_numbers, seen)
        fail_if_wrong_on_rows(rows, f"# seed {seed}", complaint_of, case_text("many", TEXT))
    assert set(seen) <= set(CHANGES)
    cases.expect(seen, *CHANGES)


def complaint_of_numbers(seen: Counter[str], rows: list[Any]) -> str:
    """Say which numbers are not those of the matches; count the changes that are named."""
    table = pa.Table.from_pylist(rows)
    report, matches = why_many(table, TEXT), acep.match(table, TEXT)
    firsts = Counter(match.bindings["p"][0] for match in matches)
    numbers: dict[str, Any] = {
        "matches": len(matches),
        "bundles": len(matches.bundles()),
        "points": len({(match.key["k"], match.end) for match in matches}),
        "keys": len({match.key["k"] for match in matches}),
        "firsts": len(firsts),
        "most": max(firsts.values(), default=0),
    }
    reported = {name: getattr(report, name) for name in numbers}
    assert report.event.startswith("event ")
    for spread in report.spreads:
        by_bundle, by_first = defaultdict(set), defaultdict(set)
        for match in matches:
            by_bundle[match.key["k"], match.bundle].add(match.bindings[spread.variable])
            by_first[match.bindings["p"]].add(match.bindings[spread.variable])
        for name, values in (("per_bundle", by_bundle), ("per_first", by_first)):
            reported[f"{spread.variable} {name}"] = pytest.approx(getattr(spread, name))
            numbers[f"{spread.variable} {name}"] = mean(map(len, values.values()))
    for fewer in report.fewer:
        seen[fewer.change] += 1
        reported[fewer.change] = fewer.matches
        numbers[fewer.change] = len(acep.match(table, PATTERN.format(**PLAIN | CHANGES[fewer.change])))
        assert fewer.matches < report.matches
    return difference(reported, numbers, ("why_many", "match"))


def test_the_variable_that_multiplies_is_named_with_what_ties_it() -> None:
    rows = {"ts": list(range(20)), "type": ["a"] + ["b"] * 18 + ["c"], "x": list(range(20))}
    found = why_many(rows, "PATTERN SEQ(a p, b q, c r) WHERE r.x > q.x WITHIN 30")
    assert found.multiplies is not None
    assert (found.multiplies.variable, found.multiplies.per_bundle) == ("q", 18)
    assert "tied to others by r.x > q.x" in str(found)
    free = why_many(rows, "PATTERN SEQ(a p, b q, c r) WITHIN 30")
    assert "no condition ties it to another variable" in str(free)


def test_a_shared_attribute_is_proposed_only_if_it_leaves_less() -> None:
    rng = random.Random(1)
    rows: dict[str, list[Any]] = {"ts": [], "type": [], "who": [], "x": []}
    for n in range(300):
        for kind in "ab":
            rows["ts"].append(len(rows["ts"]))
            rows["type"].append(kind)
            rows["who"].append(f"u{n if rng.random() < 0.999 else 0}")
            rows["x"].append(n)
    found = why_many(rows, "PATTERN SEQ(a p, b q) WHERE q.x <= p.x AND q.x >= p.x WITHIN 50")
    assert all(one.matches is None or one.matches < found.matches for one in found.fewer)


@pytest.mark.long
def test_matches_that_explode_are_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.tuning.many.EFFORT", 1_000_000)
    rows = {"ts": list(range(400)), "type": ["a"] + ["b"] * 399}
    text = "PATTERN SEQ(a p, b+ q[]) WHERE skip_till_any_match(p, q[]) { q[i].ts > q[i-1].ts } WITHIN 500"
    found = why_many(rows, text)
    assert "to count the matches of more takes too long" in found.cut
    assert 10 < found.events < 40
    assert found.matches == len(acep.match({name: column[: found.events] for name, column in rows.items()}, text))
    assert str(found).startswith("only the first")


@pytest.mark.long
def test_any_number_of_matches_is_counted_where_they_need_not_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.tuning.many.EFFORT", 1_000_000)
    monkeypatch.setattr("acep.tuning.many.LOOKED_AT", 1_000)
    rows = {"ts": list(range(200)), "type": ["a"] + ["b"] * 199}
    found = why_many(rows, "PATTERN SEQ(a p, b+ q[]) WHERE skip_till_any_match(p, q[]) WITHIN 250")
    assert (found.events, found.matches, found.cut) == (200, 2**199 - 1, "")
    assert str(found).startswith("200 events: about 10^59 matches at 199 match points")
    assert {one.change: one.matches for one in found.fewer}["WITHIN 125"] == 2**125 - 1
    assert {one.change: one.matches for one in found.fewer}["OUTPUT NON OVERLAP"] == 1
    assert {one.change: one.matches for one in found.fewer}["OUTPUT LONGEST NON OVERLAP"] is None
    assert "not counted: that takes too much work" in str(found)


@pytest.mark.long
def test_what_can_be_counted_in_a_moment_is_counted() -> None:
    """More than 200,000 touches, which once were said to be too many to count."""
    rng = random.Random(1)
    rows = {"ts": list(range(9_000)), "type": rng.choices("ab", k=9_000), "x": [rng.random() for _ in range(9_000)]}
    text = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { q.x > p.x } WITHIN 100"
    assert acep.match(rows, text, output="count").report.work > 200_000
    found = why_many(rows, text)
    for output in ("NON OVERLAP", "EARLIEST MAXIMAL", "LONGEST NON OVERLAP"):
        expected = int(acep.match(rows, f"{text} OUTPUT {output}", output="count"))
        assert {one.change: one.matches for one in found.fewer}[f"OUTPUT {output}"] == expected


def test_no_match_and_the_reference_runtime() -> None:
    none = why_many(stream(0), "PATTERN SEQ(a p, b q) WHERE p.x > 1000 WITHIN 5")
    assert (none.matches, none.fewer, none.multiplies) == (0, (), None)
    nested = "FROM (PATTERN SEQ(a p, b q) WITHIN 3) AS T PATTERN SEQ(T t, T u) WITHIN 9"
    assert why_many(stream(0, 60), nested).matches == len(acep.match(stream(0, 60), nested)) > 0


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, path = stream(3), tmp_path / "events.csv"
    lines = [",".join(map(str, row)) for row in zip(*rows.values(), strict=True)]
    path.write_text(",".join(rows) + "\n" + "\n".join(lines) + "\n")
    query = PATTERN.format(**PLAIN)
    exact = acep.match(rows, query)
    own = [one for one in exact if one.key["k"] == 2]
    assert main(["why", query, str(path), "--many"]) == 0
    assert f"400 events: {len(exact):,} matches" in capsys.readouterr().out
    assert main(["why", query, str(path), "--many", "--key", "2"]) == 0
    assert f"{rows['k'].count(2)} events: {len(own):,} matches" in capsys.readouterr().out
    assert main(["why", query, str(path), "--key", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"k=2: {rows['k'].count(2)} events, {len(own):,} matches\n")
    assert len(own) >= 20
    assert f"{len(own):,} matches at" in printed
    assert main(["why", query, str(path), "--many", "--key", "9"]) == 2
    assert main(["why", query.replace("[k] AND ", ""), str(path), "--many", "--id", "ts"]) == 0
