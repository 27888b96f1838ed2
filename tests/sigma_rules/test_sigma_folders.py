"""Files of Sigma beside rules of acep in one folder, in Python, in `acep match` and `follow`, and `acep sigma`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import acep
from acep.alerting.rule_folder import MOST_BYTES, read_rules
from acep.cli import main

BASE = (
    "title: failed\nname: failed\nlogsource: {product: linux, category: auth}\n"
    "detection: {s: {User: Root}, condition: s}\n"
)
BURST = (
    "title: burst\nlevel: high\ncorrelation: {type: event_count, rules: [failed], timespan: 9s, condition: {gte: 2}}\n"
)
SETTINGS = """\
[fields]
User = "user"

[[logsource]]
product = "linux"

[[logsource]]
product = "linux"
category = "auth"
where = "e.type = 'fail' AND e.user IS NOT NULL"
"""
EVENTS = {"ts": [1, 2, 3, 4], "type": ["fail", "pass", "fail", "fail"], "user": ["root", "root", "ROOT", None]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of rules, in which a correlation and the rule that it refers to are in two files."""
    path = tmp_path / "rules"
    (path / "below").mkdir(parents=True)
    (path / "below/failed.yml").write_text(BASE)
    (path / "burst.yaml").write_text(BURST)
    (path / "pass.rule").write_text('---\nname = "pass"\n---\nPATTERN pass p')
    (path / "sigma.toml").write_text(SETTINGS)
    (tmp_path / "events.jsonl").write_text(
        "".join(
            json.dumps(dict(zip(EVENTS, values, strict=True))) + "\n" for values in zip(*EVENTS.values(), strict=True)
        )
    )
    return path


def test_they_are_rules_like_others(folder: Path) -> None:
    rules = acep.rules(folder, strict=True)
    assert [rule.name for rule in rules.rules] == ["burst", "pass"]
    matches = rules.match(EVENTS, unit="s")
    assert [match.bindings for match in matches["burst"]] == [{"events": (0, 2)}]
    assert rules.rule("burst").file == str(folder / "burst.yaml")


def test_a_log_source_is_a_condition(folder: Path) -> None:
    assert "events.type = 'fail'" in acep.rules(folder).rule("burst").text
    (folder / "sigma.toml").unlink()
    text = acep.rules(folder).rule("burst").text
    assert "events.product = 'linux'" in text
    assert "events.category = 'auth'" in text
    problems = acep.rules(folder)
    with pytest.warns(acep.DataWarning, match=r"rule `burst` in .*unknown column `product`.*sigma\.toml says"):
        problems.match(EVENTS, unit="s")


def test_a_number_for_a_column_of_texts_names_the_cast(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "number.yml").write_text(
        "title: number\nlogsource: {product: linux}\ndetection: {s: {code: 1}, condition: s}\n"
    )
    events = folder.parent / "codes.jsonl"
    events.write_text('{"ts": 1, "type": "pass", "user": "ann", "code": "1"}\n')
    command = ["match", "--rules", str(folder), str(events), "--unit", "s", "--count"]
    assert main(command) == 4
    assert "a cast reads the column as another type, as in --cast EventID=int" in capsys.readouterr().err
    assert main([*command, "--cast", "code=int"]) == 0
    assert '"rule": "number", "severity": null, "tags": [], "count": 1' in capsys.readouterr().out


def test_a_folder_without_rules_says_how_the_files_of_rules_end(tmp_path: Path) -> None:
    with pytest.raises(acep.DataError) as caught:
        acep.rules(tmp_path)
    assert caught.value.hint is not None
    assert ".rule, or in .yml or .yaml" in caught.value.hint


def test_match_and_follow_have_them(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = str(tmp_path / "events.jsonl")
    assert main(["match", "--rules", str(folder), events, "--unit", "s"]) == 0
    alerts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(alert["rule"], alert["severity"], alert["end"]) for alert in alerts] == [
        ("pass", None, 2),
        ("burst", "high", 3),
    ]
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (tmp_path / "events.jsonl").rename(inbox / "1.jsonl")
    line = ["follow", "--rules", str(folder), str(inbox), "--state", str(tmp_path / "state"), "--unit", "s"]
    assert main([*line, "--output", str(tmp_path / "alerts"), "--end", "--no-progress"]) == 0
    rows = [json.loads(row) for path in (tmp_path / "alerts").glob("*.jsonl") for row in path.read_text().splitlines()]
    assert {row["rule"] for row in rows} == {"burst", "pass"}


def test_a_rule_of_two_files_with_one_name_is_in_none(folder: Path) -> None:
    (folder / "again.yml").write_text(BURST)
    rules, _ = read_rules(folder)
    assert [rule.name for rule in rules.rules] == ["pass"]
    assert len(rules.problems) == 2
    assert "has the same name" in str(rules.problems[0])


def test_without_pysigma_a_file_is_left_out_with_a_hint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    rules, warnings = read_rules(folder)
    assert [rule.name for rule in rules.rules] == ["pass"]
    assert [problem.summary for problem in rules.problems] == [
        f"`{folder / name}`: sigma is not installed, and a rule of Sigma needs it [engine_missing]; "
        "hint: pip install 'acep[sigma]'"
        for name in ("below/failed.yml", "burst.yaml")
    ]
    assert not warnings


def test_a_large_file_is_not_read(folder: Path) -> None:
    (folder / "large.yml").write_text(f"# {'x' * MOST_BYTES}\n{BASE}")
    (problem,) = read_rules(folder)[0].problems
    assert f"more than {MOST_BYTES:,} bytes" in str(problem)
    (folder / "sigma.toml").write_bytes(b"\xff")
    assert any("sigma.toml" in str(problem) for problem in read_rules(folder)[0].problems)


def test_sigma_shows_and_saves_rules(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sigma", str(folder)]) == 0
    text = acep.rules(folder).rule("burst").text
    assert capsys.readouterr().out == text
    assert main(["sigma", str(folder), "--save", str(tmp_path / "saved")]) == 0
    assert (tmp_path / "saved/burst.rule").read_text() == text
    assert main(["sigma", str(folder), "--save", str(tmp_path / "saved")]) == 2
    assert "is there already" in capsys.readouterr().err
    (folder / "bad.yml").write_text("title: bad\nlogsource: {product: x}\ndetection: {s: [word], condition: s}\n")
    assert main(["sigma", str(folder)]) == 4
    assert "rule `bad` in" in capsys.readouterr().err
    (folder / "burst.yaml").unlink()
    (folder / "below/failed.yml").unlink()
    assert main(["sigma", str(folder)]) == 2
