"""Hand-written automata: the experiment runs small, all ways find the same, and its page says what its rows say."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

import acep
from experiments.automata import RISES, events, main, query, two_state_automaton
from experiments.joins import Joins

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", RISES)
def test_an_automaton_of_two_states_finds_the_same(name: str) -> None:
    stream = events(4_000, RISES[name])
    found = [acep.match(stream, one(name, 60), type=None) for one in (query, two_state_automaton)]
    ends = [[(m.start, m.end) for m in some] for some in found]
    assert ends[0] == ends[1] != []
    if name == "q2":
        assert [m.values["shapes"] for m in found[0]] == [m.values["shapes"] for m in found[1]]


@pytest.mark.parametrize("name", RISES)
def test_joins_that_feed_back_find_the_same(name: str) -> None:
    stream, automaton = events(4_000, RISES[name]), query(name, 60)
    joins = Joins(automaton)
    for at in range(0, len(stream), 700):
        joins.push(stream.slice(at, 700))
    assert joins.matches == len(acep.match(stream, automaton, type=None)) > 0


@pytest.mark.whole
def test_a_page_is_written(tmp_path: Path) -> None:
    assert main(["--rows", "3000", "--output", str(tmp_path)]) == 0
    with (tmp_path / "automata.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = [row["table"] for row in rows]
    assert Counter(kinds) == {"window": 27, "pushes": 9, "changes": 15, "ignored": 10}
    assert all(float(row["rate"]) > 0 for row in rows)
    for interval in ("10", "100", "1000"):  # changes find the same whether they are made in time or declared ahead
        found = {row["matches"] for row in rows if row["interval"] == interval and row["way"] in ("change", "ahead")}
        assert len(found) == 1
    made = {(row["share"], row["way"]): float(row["made"]) for row in rows if row["table"] == "ignored"}
    assert made["0.9", "ignorable"] < made["0.9", "bound"] / 4
    for share in ("0.0", "0.9"):
        found = {row["matches"] for row in rows if row["table"] == "ignored" and row["share"] == share}
        assert len(found) == 1
    page = (tmp_path / "automata.md").read_text(encoding="utf-8")
    assert "| q3 | 2,000 |" in page
    assert "| query | 1,000 | 10,000 | 100,000 |" in page
    assert (tmp_path / "automata.svg").is_file()
