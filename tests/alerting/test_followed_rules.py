"""Rules come, go and change while a folder is followed; each alert is given once, whenever the follower stops."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.alerting.rule import AlertRule, read_rule
from acep.cli import main
from acep.following.outbox import Outbox
from acep.streaming.live_buckets import forget_live
from tests.case_counts import CASES

HEAD = "ts,type,k,v\n"
QUERIES = (
    "PATTERN SEQ(a x, b y) WITHIN 9",
    "PATTERN SEQ(a x, b+ y[]) WHERE skip_till_next_match(x, y[]) { [k] } WITHIN 9",
    "PATTERN SEQ(a x, ~(c n), b y) WHERE [k] WITHIN 9",
    "PATTERN c x WHERE x.v > 3",
)


def rule_text(name: str, query: str, severity: str = "low") -> str:
    fields = '["x.v"]'
    return f'---\nname = "{name}"\nseverity = "{severity}"\nfields = {fields}\n---\n{query}\n'


def follow(place: Path, **options: Any) -> acep.Followed:
    folders = {"state": place / "state", "into": place / "found"}
    return acep.follow(place / "in", rules=place / "rules", unit="s", **folders, **options)


def alerts(place: Path) -> list[dict[str, Any]]:
    """All alerts so far, in the order in which they were given."""
    files = sorted((place / "found").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("in", "rules"):
        (tmp_path / name).mkdir()
    return tmp_path


def expected_alerts(
    rows: list[tuple[Any, ...]], text: str, first_time: int | None, end_time: int | None
) -> list[tuple[Any, ...]]:
    """The alerts of a rule that sees the events from ``first_time`` on, and is gone before those from ``end_time`` on
    are matched, as of one table of events."""
    rule = read_rule(text, "x.rule")
    assert isinstance(rule, AlertRule)
    seen = [row for row in rows if first_time is None or row[1] >= first_time]
    columns = zip(*seen, strict=True) if seen else [()] * 5
    types = (pa.int64(), pa.int64(), pa.string(), pa.string(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=["n", "ts", "type", "k", "v"])
    matches = acep.match(table, rule.query, id="n", unit="s")
    return [
        (rule.name, match.start, match.end, str(match.bindings), match.values["x.v"], match.bundle)
        for match in matches
        if end_time is None or match.end < end_time
    ]


@pytest.mark.filterwarnings("ignore::acep.DataWarning")
@pytest.mark.parametrize("seed", range(CASES(60)))
def test_rules_come_go_and_change(seed: int, place: Path) -> None:
    """Each rule has the alerts of the events that are matched while it is there; the text of a broken file does not
    count, nor does a change of the header alone."""
    rng = Random(seed)
    rows, lives = list[tuple[Any, ...]](), list[tuple[str, int | None, int | None]]()
    running = dict[str, tuple[str, int | None]]()  # the query of each rule, and since when it has run
    newest: int | None = None
    n_files = 4
    for number in range(n_files):
        for name in ("p", "q", "r"):
            act = rng.choice(("keep", "query", "query", "header", "break", "remove"))
            file = place / "rules" / f"{name}.rule"
            if act == "query" or (act == "header" and name in running):
                query = rng.choice(QUERIES) if act == "query" else running[name][0]
                file.write_text(rule_text(name, query, rng.choice(("low", "high"))))
                if name in running and running[name][0] != query:
                    lives.append((rule_text(name, running[name][0]), running[name][1], newest))
                    running.pop(name)
                running.setdefault(name, (query, newest))
            elif act == "break":
                file.write_text("---\nname = ")
            elif act == "remove":
                file.unlink(missing_ok=True)
                if name in running:
                    query, since = running.pop(name)
                    lives.append((rule_text(name, query), since, newest))
        (place / "rules" / "always.rule").write_text(rule_text("always", QUERIES[0]))
        running.setdefault("always", (QUERIES[0], newest))
        lines = []
        for _ in range(8):
            time = (rows[-1][1] if rows else 0) + rng.randint(0, 2)
            rows.append((len(rows), time, rng.choice("abc"), rng.choice("kl"), rng.randrange(8)))
            lines.append(",".join(map(str, rows[-1][1:])) + "\n")
        (place / "in" / f"{number}.csv").write_text(HEAD + "".join(lines))
        newest = rows[-1][1]
        if rng.random() < 0.5:
            forget_live()  # as a new process
        follow(place, **({"end": True} if number == n_files - 1 else {"once": True}))
    lives += [(rule_text(name, query), since, None) for name, (query, since) in running.items()]
    wanted = [alert for life in lives for alert in expected_alerts(rows, *life)]
    got = [
        (a["rule"], a["start"], a["end"], str({n: tuple(ids) for n, ids in a["bindings"].items()}),
         a["fields"]["x.v"], a["bundle"])
        for a in alerts(place)
    ]  # fmt: skip
    assert sorted(got) == sorted(wanted)
    assert got


def test_a_rule_whose_header_changes_goes_on(place: Path) -> None:
    (place / "rules" / "p.rule").write_text(rule_text("p", QUERIES[0]))
    (place / "in" / "1.csv").write_text(HEAD + "1,a,k,7\n2,c,k,0\n")
    follow(place, once=True)
    (place / "rules" / "p.rule").rename(place / "rules" / "renamed.rule")
    (place / "rules" / "renamed.rule").write_text(rule_text("p", f"-- said anew\n{QUERIES[0]}", "critical"))
    (place / "in" / "2.csv").write_text(HEAD + "3,b,k,0\n")
    assert follow(place, end=True).report.matches == 1
    (alert,) = alerts(place)
    assert (alert["severity"], alert["start"], alert["end"], alert["fields"]) == ("critical", 1, 3, {"x.v": 7})


def test_a_micro_batch_that_is_begun_again_has_the_rules_of_its_plan(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower that is killed before its results are written gives them with the rules that it had planned."""
    (place / "rules" / "p.rule").write_text(rule_text("p", "PATTERN a x"))
    (place / "in" / "1.csv").write_text(HEAD + "1,a,k,7\n2,b,k,8\n3,c,k,9\n")

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "write", fail)
        with pytest.raises(KeyboardInterrupt):
            follow(place, once=True)
    (place / "rules" / "p.rule").unlink()
    (place / "rules" / "q.rule").write_text(rule_text("q", "PATTERN (a | b | c) x"))
    forget_live()
    follow(place, once=True)
    # The first micro-batch has the rule that was planned; the event that was not final yet is for the new rule.
    assert [(alert["rule"], alert["start"]) for alert in alerts(place)] == [("p", 1)]
    follow(place, end=True)
    assert [(alert["rule"], alert["start"]) for alert in alerts(place)] == [("p", 1), ("q", 3)]


def test_problems_are_told_once_and_strict_stops(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, query in {"good": "PATTERN a x", "unfit": "PATTERN a x WHERE x.w > 3"}.items():
        (place / "rules" / f"{name}.rule").write_text(rule_text(name, query))
    for number in range(2):
        (place / "in" / f"{number}.csv").write_text(f"{HEAD}{number},a,k,7\n")
    folders = ["--state", str(place / "state"), "--output", str(place / "found"), "--max-files", "1"]
    args = ["follow", "--rules", str(place / "rules"), str(place / "in"), *folders]
    assert main([*args, "--strict", "--once"]) == 2
    assert "rule `unfit` in" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main([*args, "--end"]) == 4
    err = capsys.readouterr().err
    assert err.count("rule `unfit` in") == 1  # of two looks at the folder
    assert "unknown column `w` [query_name] (line 6, column 19); hint: " in err
    assert [(alert["rule"], alert["start"]) for alert in alerts(place)] == [("good", 0), ("good", 1)]


def test_a_folder_that_lost_its_rules_stops_the_stream(place: Path) -> None:
    (place / "rules" / "p.rule").write_text(rule_text("p", "PATTERN a x"))
    (place / "in" / "1.csv").write_text(HEAD + "1,a,k,7\n2,b,k,8\n")
    follow(place, once=True)
    (place / "rules" / "p.rule").unlink()
    (place / "in" / "2.csv").write_text(HEAD + "3,a,k,7\n")
    with pytest.raises(acep.DataError, match="there is no rule"):
        follow(place, end=True)
    (place / "rules" / "p.rule").write_text(rule_text("p", "PATTERN a x"))
    assert follow(place, end=True).report.matches == 2


@pytest.mark.parametrize("has_events", [False, True])
@pytest.mark.filterwarnings("always::acep.errors.DataWarning")
def test_a_run_without_new_files_looks_at_the_rules(place: Path, has_events: bool) -> None:
    rule = place / "rules" / "p.rule"
    rule.write_text(rule_text("p", QUERIES[0]))
    if has_events:
        (place / "in" / "1.csv").write_text(HEAD + "1,a,k,7\n2,c,k,0\n")
        follow(place, once=True)
    (place / "rules" / "bad.rule").write_text(rule_text("bad", "PATTERN SEQ("))
    with pytest.warns(acep.DataWarning, match="bad"):
        assert [problem.rule for problem in follow(place, once=True).problems] == ["bad"]
    with pytest.raises(acep.QueryError):
        follow(place, once=True, strict=True)
    (place / "rules" / "bad.rule").unlink()
    assert not follow(place, once=True).problems
    rule.unlink()
    with pytest.raises(acep.DataError, match="rule"):
        follow(place, once=True)


def test_a_state_of_rules_is_of_rules_alone(place: Path) -> None:
    (place / "rules" / "p.rule").write_text(rule_text("p", "PATTERN a x"))
    (place / "in" / "1.csv").write_text(HEAD + "1,a,k,7\n")
    follow(place, once=True)
    with pytest.raises(acep.SnapshotError):
        acep.follow(place / "in", "PATTERN a x", state=place / "state", into=place / "found", unit="s", once=True)
    for options in ({"output": "points"}, {"flat": True}, {"op": "v", "id": "v"}, {"speculation": 3}):
        with pytest.raises(acep.QueryError, match="rules"):
            follow(place, once=True, **options)
    with pytest.raises(acep.QueryError, match="query="):
        acep.follow(place / "in", "PATTERN a x", rules=place, state=place / "s", into=place / "f", once=True)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_formats(place: Path, form: str) -> None:
    (place / "rules" / "p.rule").write_text(rule_text("p", "PATTERN a x"))
    (place / "in" / "1.csv").write_text(HEAD + "1,a,k,7\n2,b,k,8\n")
    follow(place, end=True, into_format=form)
    (file,) = (place / "found").iterdir()
    if form == "csv":
        assert file.read_text().splitlines() == [
            "rule,severity,tags,key,start,end,error,bindings,fields,values,bundle",
            'p,low,[],{},1,1,0,"{""x"": [0]}","{""x.v"": 7}",{},1',
        ]
        return
    (row,) = pq.read_table(file).to_pylist()
    assert (row["rule"], row["fields"], row["bindings"]) == ("p", '{"x.v": 7}', [("x", [0])])
