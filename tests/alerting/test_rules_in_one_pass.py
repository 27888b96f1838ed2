"""Alerts of a folder of rules are the alerts of each of its rules matched alone, however the events come."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.alerting.alerts import HEADS, ordered_records, write_alerts
from acep.alerting.rule import AlertRule, read_rule
from acep.alerting.rule_pass import RulePass
from acep.alerting.rules import Rules, rules_of
from acep.cli import main
from acep.events.tables import schema_of
from acep.native.compiled import choose_engine, why_not
from acep.output.json_records import json_line
from acep.plan.compile import compile_query
from tests.case_counts import CASES

PATTERNS = (
    "SEQ(a x, b y)",
    "SEQ(a x, b+ y[], c z)",
    "SEQ(a x, ~(c n), b y)",
    "SEQ(a x, b y, ~(c n))",
    "SEQ(a x, (b | c) y)",
    "a x",
    "SEQ(b+ y[], a x)",
)
OUTPUTS = ("", "", "", " OUTPUT NON OVERLAP", " OUTPUT EARLIEST MAXIMAL")
NAMES = {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}


def random_rule(rng: Random, number: int) -> str:
    """The text of a rule file."""
    pattern = rng.choice(PATTERNS)
    variables = [name for name in "xyz" if f" {name}" in pattern]
    fields = [f"{name}.v" for name in variables if rng.random() < 0.5]
    if "y[]" in pattern and rng.random() < 0.5:
        fields.append("count(y[])")
    where = [] if rng.random() < 0.3 else ["[k]"]
    where += ["x.v > 3"] if rng.random() < 0.3 else []
    query = f"PATTERN {pattern}" + (f" WHERE {' AND '.join(where)}" if where else "") + f" WITHIN {rng.randint(2, 8)}"
    query += " RETURN x.v AS own" if rng.random() < 0.3 else ""
    query += rng.choice(OUTPUTS)
    severity = f'severity = "{rng.choice(("low", "high"))}"\n' if rng.random() < 0.5 else ""
    errors = "errors = 1\n" if rng.random() < 0.2 and "~" not in pattern and pattern != "a x" else ""
    return f'---\nname = "rule {number}"\n{severity}{errors}fields = {json.dumps(fields)}\n---\n{query}\n'


def random_rules(rng: Random) -> Rules:
    readings = [read_rule(random_rule(rng, number), f"{number}.rule") for number in range(rng.randint(1, 6))]
    rules = rules_of(readings, "rules")
    assert not rules.problems, rules.problems[0]
    return rules


def random_events(rng: Random, n_events: int = 30) -> dict[str, list[Any]]:
    times, clock = [], 0
    for _ in range(n_events):
        clock += rng.randint(0, 2)
        times.append(clock)
    values = [rng.choice((None, *range(8))) for _ in times]
    return {"ts": times, "type": rng.choices("abcd", k=n_events), "k": rng.choices("pq", k=n_events), "v": values}


def alone(rule: AlertRule, rows: Any) -> list[str]:
    """The alerts of a rule that is matched alone, as lines."""
    return [json_line(record) for record in ordered_records([(rule, acep.match(rows, rule.query))])]


def passed(rules: Rules, table: pa.Table, cuts: list[int]) -> list[str]:
    """The alerts of all rules over batches of events, as lines, in the order in which they are given."""
    run = RulePass(rules, table.schema, table.num_rows, output="matches", counts=True, **NAMES)
    bounds = pairwise([0, *cuts, table.num_rows])
    parts = [part for start, end in bounds if end > start for part in run.push(table.slice(start, end - start))]
    parts += run.finish()
    filled = [[(rule, matches) for rule, matches in part if len(matches)] for part in parts]
    return [json_line(record) for part in filled for record in ordered_records(part)]


def decoded(table: pa.Table) -> list[str]:
    """A table of alerts as lines."""
    out = io.StringIO()
    write_alerts(table, out, "jsonl")
    return [json_line({head: {"values": {}, **json.loads(line)}[head] for head in HEADS}) for line in lines_of(out)]


def lines_of(out: io.StringIO) -> list[str]:
    return out.getvalue().splitlines()


@pytest.mark.filterwarnings("ignore::acep.DataWarning")
@pytest.mark.parametrize("seed", range(CASES(200)))
def test_alerts_of_a_folder_are_those_of_each_rule(seed: int) -> None:
    rng = Random(seed)
    rules, rows = random_rules(rng), random_events(rng)
    expected = {rule.name: alone(rule, rows) for rule in rules.rules}
    table = pa.table(rows)
    batches = passed(rules, table, sorted(rng.sample(range(table.num_rows + 1), rng.randint(0, 4))))
    assert {name: [line for line in batches if json.loads(line)["rule"] == name] for name in rules} == expected
    whole = decoded(rules.alerts(rules.match(rows)))
    in_order = sorted((line for lines in expected.values() for line in lines), key=lambda line: json.loads(line)["end"])
    assert whole == in_order
    if all(rule.query.output.name == "ALL" for rule in rules.rules):
        assert batches == whole


def test_the_random_rules_have_alerts() -> None:
    """Of the seeds above, many have alerts of several rules: else nothing would be compared."""
    n_several = 0
    for seed in range(20):
        rng = Random(seed)
        rules, rows = random_rules(rng), random_events(rng)
        n_several += sum(bool(alone(rule, rows)) for rule in rules.rules) > 1
    assert n_several >= 10


# The command line -----------------------------------------------------------------------------------

EVENTS = """ts,type,user,ip,bytes
1,fail,ann,1.1.1.1,
2,fail,ann,1.1.1.1,
3,login,ann,1.1.1.2,
4,login,bob,1.1.1.3,
5,upload,bob,1.1.1.3,500
"""
GUESSED = """---
name = "guessed password"
severity = "high"
tags = ["auth"]
fields = ["b.ip", "count(a[])"]
---
PATTERN SEQ(fail+ a[], login b) WHERE skip_till_next_match(a[], b) { [user] } WITHIN 10 HAVING count(a[]) > 1
"""
UPLOAD = """---
name = "upload"
fields = ["u.bytes"]
---
PATTERN SEQ(login l, upload u) WHERE [user] WITHIN 10 RETURN l.ip AS source
"""
BAD = '---\nname = "bad"\n---\nPATTERN login l WHERE l.usr = 3\n'
LINES = """
{"rule": "guessed password", "severity": "high", "tags": ["auth"], "key": {"user": "ann"}, "start": 1, "end": 3,
 "error": 0, "bindings": {"a": [0, 1], "b": [2]}, "fields": {"b.ip": "1.1.1.2", "count(a[])": 2}, "bundle": 3}

{"rule": "upload", "severity": null, "tags": [], "key": {"user": "bob"}, "start": 4, "end": 5, "error": 0,
 "bindings": {"l": [3], "u": [4]}, "fields": {"u.bytes": 500}, "values": {"source": "1.1.1.3"}, "bundle": 5}"""
LINES = [line.strip().replace("\n", "") for line in LINES.split("\n\n")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with events and rules, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text(EVENTS)
    Path("rules").mkdir()
    Path("rules/guessed.rule").write_text(GUESSED)
    Path("rules/upload.rule").write_text(UPLOAD)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, list[str], str]:
    """The exit status of a command line, the lines of its output, and what it says on stderr."""
    status = main(["match", *args])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


@pytest.mark.usefixtures("folder")
def test_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--rules", "rules", "events.csv") == (0, LINES, "")
    assert run(capsys, "events.csv", "--rules=rules", "--limit", "1") == (0, LINES[:1], "")
    assert run(capsys, "--rules", "rules", "events.csv", "--exists") == (0, ["true"], "")
    _, counts, _ = run(capsys, "--rules", "rules", "events.csv", "--count")
    assert [json.loads(line)["count"] for line in counts] == [1, 1]
    _, points, _ = run(capsys, "--rules", "rules", "events.csv", "--points")
    assert points[1] == (
        '{"rule": "upload", "severity": null, "tags": [], "key": {"user": "bob"}, "point": 5, "best": 0}'
    )
    _, bundles, _ = run(capsys, "--rules", "rules", "events.csv", "--bundles", "--no-counts")
    assert [[*json.loads(line)][3:] for line in bundles] == [["key", "start", "end", "best"]] * 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", [[], ["--bundles"], ["--points"]], ids=["matches", "bundles", "points"])
def test_files_have_the_same_rows_in_each_format(kind: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("found.jsonl", "found.csv", "found.parquet"):
        assert run(capsys, "--rules", "rules", "events.csv", "--output", name, *kind) == (0, [], "")
    records = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    rows = pq.read_table("found.parquet").to_pylist()
    with Path("found.csv").open() as stream:
        cells = list(csv.DictReader(stream))
    assert len(records) == len(rows) == len(cells) == 2
    for record, row, cell in zip(records, rows, cells, strict=True):
        assert [*row] == [*cell]
        assert json.loads(row["key"]) == json.loads(cell["key"]) == record["key"]
        assert json.loads(cell["tags"]) == row["tags"] == record["tags"]
        for name in {"start", "end", "point", "bundle", "matches"} & {*row}:
            assert row[name] == int(cell[name]) == record[name]
        if not kind:
            assert json.loads(row["values"]) == json.loads(cell["values"]) == record.get("values", {})
            assert {name: [*ids] for name, ids in row["bindings"]} == record["bindings"]


@pytest.mark.usefixtures("folder")
def test_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    events = ["--rules", "rules", "events.csv"]
    assert run(capsys, *events, "--fail-on-match")[0] == 1
    Path("rules/bad.rule").write_text(BAD)
    status, lines, err = run(capsys, *events)
    assert (status, lines) == (4, LINES)
    assert err.startswith("acep: rule `bad` in `rules/bad.rule`: unknown column `usr` [query_name] (line 4, column 23)")
    assert run(capsys, *events, "--fail-on-match", "--count")[0] == 5
    status, lines, err = run(capsys, *events, "--strict")
    assert (status, lines, err[:18]) == (2, [], "acep: rule `bad` i")
    for name in ("guessed", "upload"):
        Path(f"rules/{name}.rule").unlink()
    status, lines, err = run(capsys, *events)
    assert (status, lines) == (2, [])
    assert "no rule in `rules` can run" in err
    assert run(capsys, "PATTERN login l", "events.csv", "--fail-on-match", "--exists") == (1, ["true"], "")
    assert run(capsys, "PATTERN logout l", "events.csv", "--fail-on-match", "--log-level", "error") == (0, [], "")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "args",
    [
        ["--rules", "rules", "events.csv", "--flat"],
        ["--rules", "rules", "events.csv", "--errors", "1"],
        ["--rules", "rules", "events.csv", "--plot", "x.html"],
        ["--rules", "none", "events.csv"],
        ["PATTERN login l", "events.csv", "--strict"],
        ["PATTERN login l", "events.csv", "--fail-on-match", "--limit", "0"],
    ],
)
def test_options_that_do_not_go_together(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, lines, err = run(capsys, *args)
    assert (status, lines) == (2, [])
    assert err.startswith("acep: ")


def test_many_rules_share_one_pass(tmp_path: Path) -> None:
    """The work of 60 rules is that of each alone, and no event is read twice: they are plans of one stream."""
    rows = random_events(Random(1), 200)
    for number in range(60):
        text = f'---\nname = "r{number}"\n---\nPATTERN SEQ(a x, b y) WHERE [k] AND y.v > {number % 8} WITHIN 9'
        (tmp_path / f"{number}.rule").write_text(text)
    rules = acep.rules(tmp_path)
    run_of_all = RulePass(rules, pa.table(rows).schema, 200, output="matches", counts=True, **NAMES)
    assert len(run_of_all.tables.plans) == 60
    list(run_of_all.push(pa.table(rows)))
    list(run_of_all.finish())
    assert run_of_all.report.events == 200


@pytest.mark.skipif(why_not() is not None, reason="the native core is not installed")
@pytest.mark.parametrize(("fields", "engine"), [("[]", "merged"), ('["y.v"]', "nodes")])
def test_the_engine_of_a_rule(fields: str, engine: str) -> None:
    """docs/howto/rules.md says which rules share the work of an event."""
    text = f'---\nname = "x"\nfields = {fields}\n---\nPATTERN SEQ(a x, b y) WHERE [k] WITHIN 9'
    rule = read_rule(text, "x.rule")
    assert isinstance(rule, AlertRule)
    plan = compile_query(rule.query, schema_of(pa.table(random_events(Random(1))).schema))
    assert choose_engine(plan, "auto", "matches").base == engine
