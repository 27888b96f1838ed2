"""AlertRule files: what is read of them, and where each mistake is said to be, hostile files among them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import acep
from acep.alerting.rule import AlertRule, RuleProblem, read_rule
from acep.alerting.rule_folder import MOST_BYTES, read_rules

QUERY = "PATTERN SEQ(a x, b+ y[]) WITHIN 5"
GOOD = f'---\nname = "good"\n---\n{QUERY}\n'


def test_what_a_rule_says() -> None:
    text = f"""---
name = "paid"
severity = "high"
tags = ["money", "T1"]
description = "said\\nin two lines"
fields = ["x.n", "y[1].n", "count(y[])"]
errors = 1
weights = {{x = inf}}
---
-- a comment
{QUERY} RETURN y.n AS last
"""
    rule = read_rule(text, "paid.rule")
    assert isinstance(rule, AlertRule)
    assert (rule.name, rule.severity, rule.tags) == ("paid", "high", ("money", "T1"))
    assert rule.description == "said\nin two lines"
    assert [name for name, _ in rule.query.returns] == ["last", "x.n", "y[1].n", "count(y[])"]
    assert (rule.query.errors, rule.query.weights) == (1, (("x", None),))


MISTAKES = {
    "": (1, "there is no header"),
    QUERY: (1, "there is no header"),
    '---\nname = "x"\n': (1, "the header does not end"),
    '---\nname = "x"\n---\n  \n': (3, "there is no query"),
    f"---\nname = x\n---\n{QUERY}": (2, "the header is no TOML"),
    f'---\nname = "x"\nname = "y"\n---\n{QUERY}': (3, "the header is no TOML"),
    f"---\ntags = {'[' * 3000}\n---\n{QUERY}": (None, ""),
    f'---\ntags = ["x"]\n---\n{QUERY}': (1, "the rule has no name"),
    f"---\nname = 3\n---\n{QUERY}": (2, "`name` is no text"),
    f'---\nname = "a\\u202e"\n---\n{QUERY}': (2, "`name` is no text"),
    f'---\nname = "x"\nseverty = "high"\n---\n{QUERY}': (3, "unknown key `severty`"),
    f'---\nname = "x"\n[a.b]\n---\n{QUERY}': (3, "unknown key `a`"),
    f'---\nname = "x"\nseverity = "hihg"\n---\n{QUERY}': (3, "`severity` is not one of"),
    f'---\nname = "x"\nseverity = ["high"]\n---\n{QUERY}': (3, "`severity` is not one of"),
    f'---\nname = "x"\ntags = "high"\n---\n{QUERY}': (3, "`tags` is no list of texts"),
    f'---\nname = "x"\ntags = ["a", "a"]\n---\n{QUERY}': (3, "`tags` has a text twice"),
    f'---\nname = "x"\ndescription = 3\n---\n{QUERY}': (3, "`description` is no text"),
    f'---\nname = "x"\nerrors = true\n---\n{QUERY}': (3, "`errors` is no number"),
    f'---\nname = "x"\nerrors = -1\n---\n{QUERY}': (3, ""),
    f'---\nname = "x"\nweights = {{x = 2}}\n---\n{QUERY}': (3, "`weights` says what errors cost"),
    f'---\nname = "x"\nerrors = 1\nweights = {{zz = 2}}\n---\n{QUERY}': (4, "unknown variable `zz`"),
    f'---\nname = "x"\n\nfields = ["z.n"]\n---\n{QUERY}': (4, "field `z.n`: unknown variable `z`"),
    f'---\nname = "x"\nfields = ["x.n, y.n"]\n---\n{QUERY}': (3, "field `x.n, y.n` is no value"),
    f'---\nname = "x"\nfields = ["x.n --"]\n---\n{QUERY}': (3, "field `x.n --` is no value"),
    f'---\nname = "x"\nfields = ["x.n OUTPUT LONGEST --"]\n---\n{QUERY}': (3, "field"),
    f'---\nname = "x"\nfields = ["x.n /*", "*/"]\n---\n{QUERY}': (3, "field"),
    f'---\nname = "x"\nfields = ["x.n"]\n---\n{QUERY} RETURN x.m AS `x.n`': (
        3,
        "RETURN and the fields both have `x.n`",
    ),
    '---\nname = "x"\n---\n\nPATTERN SEQ(a x, b y WITHIN 5': (5, "unexpected `WITHIN`"),
    '---\nname = "x"\n---\nre:ab': (4, "the query of a rule begins with PATTERN"),
    '---\nname = "x"\n---\nSELECT * FROM t': (4, "the query of a rule begins with PATTERN"),
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_has_its_file_and_line(text: str) -> None:
    problem = read_rule(text, "some.rule")
    line, words = MISTAKES[text]
    assert isinstance(problem, RuleProblem)
    assert words in problem.error.message
    assert "`some.rule`" in problem.error.message
    assert problem.line == line
    assert len(problem.summary.splitlines()) == 1
    if 'name = "x"\n' in text and "header" not in problem.error.message:
        assert (problem.rule, problem.error.message[:9]) == ("x", "rule `x` ")


def test_a_rule_takes_no_parameters() -> None:
    problem = read_rule('---\nname = "x"\n---\nPATTERN SEQ(a x, b y) WHERE x.n > :p WITHIN 5', "some.rule")
    assert isinstance(problem, RuleProblem)
    assert problem.error.hint == "write the value into the rule: it takes no parameters"


def test_ends_of_lines_and_a_mark_of_windows(tmp_path: Path) -> None:
    (tmp_path / "w.rule").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    rules, warnings = read_rules(tmp_path)
    assert ([*rules], rules.problems, warnings) == (["good"], (), [])


def hostile_folder(folder: Path) -> None:
    """Fill a folder with one rule, and with much that is none."""
    (folder / "below" / "deep").mkdir(parents=True)
    (folder / "below" / "deep" / "good.rule").write_text(GOOD)
    (folder / "latin.rule").write_bytes(b'---\nname = "caf\xe9"\n---\n' + QUERY.encode())
    (folder / "binary.rule").write_bytes(b"\x7fELF\x00\x01" * 100)
    (folder / "zeros.rule").write_bytes(bytes(100))
    (folder / "large.rule").write_bytes(b"-" * 10_000_000)
    (folder / "empty.rule").touch()
    (folder / "folder.rule").mkdir()
    (folder / "loop").symlink_to(folder)
    (folder / "self.rule").symlink_to(folder / "self.rule")
    (folder / "nowhere.rule").symlink_to(folder / "none")
    os.mkfifo(folder / "pipe.rule")
    for name in (
        ".hidden.rule",
        "_draft.rule",
        "good.rule~",
        "good.rule.bak",
        "#good.rule#",
        ".good.rule.swp",
        "x.tmp",
    ):
        (folder / name).write_text(GOOD)
    (folder / ".git").mkdir()
    (folder / ".git" / "other.rule").write_text(GOOD)


def test_a_hostile_folder(tmp_path: Path) -> None:
    hostile_folder(tmp_path)
    (tmp_path / "README.md").write_text("what these rules are for")
    rules, warnings = read_rules(tmp_path)
    assert [*rules] == ["good"]
    problems = {Path(problem.file).name: problem.error.message for problem in rules.problems}
    assert {name: message.split("`: ")[1][:24] for name, message in problems.items()} == {
        "latin.rule": "line 2 is not UTF-8",
        "binary.rule": "it is no text",
        "zeros.rule": "it is no text",
        "large.rule": f"it has more than {MOST_BYTES:,} bytes, which"[:24],
        "empty.rule": "there is no header",
        "self.rule": "a link that cannot be fo",
        "nowhere.rule": "a link that leads nowher",
        "pipe.rule": "no file, but a pipe or a",
    }
    assert warnings == [
        f"files in `{tmp_path}` that do not end in .rule are no rules, and were left out, as `README.md`"
    ]
    with pytest.warns(acep.DataWarning) as raised:
        assert [*acep.rules(tmp_path)] == ["good"]
    assert len(raised) == len(problems) + 1
    with pytest.raises(acep.AcepError, match=r"binary\.rule"):
        acep.rules(tmp_path, strict=True)


def test_two_links_to_one_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "good.rule").write_text(GOOD)
    for name in "ab":
        (tmp_path / "rules" / f"{name}.rule").symlink_to(tmp_path / "good.rule")
    with pytest.raises(acep.DataError, match="are the same, by a link, and rules would come twice"):
        read_rules(tmp_path / "rules")


def test_rules_of_one_name_are_left_out_all(tmp_path: Path) -> None:
    for name, text in {"a": GOOD, "b": GOOD, "c": GOOD.replace("good", "other")}.items():
        (tmp_path / f"{name}.rule").write_text(text)
    rules, _ = read_rules(tmp_path)
    assert [*rules] == ["other"]
    assert [(problem.rule, problem.line) for problem in rules.problems] == [("good", 2), ("good", 2)]
    assert f"rule `good` in `{tmp_path / 'a.rule'}`: `{tmp_path / 'b.rule'}` has the same name" in str(
        rules.problems[0]
    )


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "no rule"])
def test_a_folder_without_rules(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "rules"
    if kind == "file":
        folder.write_text(GOOD)
    elif kind != "missing":
        folder.mkdir()
    if kind == "no rule":
        (folder / "x.rule").write_text(QUERY)
        with pytest.warns(acep.DataWarning, match="there is no header"), pytest.raises(acep.DataError):
            acep.rules(folder)
        return
    with pytest.raises(acep.DataError, match="there is no"):
        acep.rules(folder)


def test_rules_that_do_not_fit_the_events(tmp_path: Path) -> None:
    (tmp_path / "good.rule").write_text(GOOD)
    (tmp_path / "bad.rule").write_text(
        f'---\nname = "bad"\n---\n-- reads what is not there\n{QUERY[:-9]} WHERE y.n > 3'
    )
    (tmp_path / "worse.rule").write_text(f'---\nname = "worse"\nfields = ["x.m"]\n---\n{QUERY}')
    rules = acep.rules(tmp_path)
    rows = {"ts": [1, 2], "type": ["a", "b"]}
    with pytest.warns(acep.DataWarning) as raised:
        assert {name: len(matches) for name, matches in rules.match(rows).items()} == {"good": 1}
    assert [str(warning.message).split(": unknown column")[0] for warning in raised] == [
        f"rule `{name}` in `{tmp_path / name}.rule`" for name in ("bad", "worse")
    ]
    assert "(line 5, column " in str(raised[0].message)
    assert "(line 3, column 1)" in str(raised[1].message)
    with pytest.raises(acep.QueryError, match="rule `bad` in"):
        rules.match(rows, strict=True)
    with pytest.raises(acep.QueryError, match="query `bad`: unknown column"):
        acep.match(rows, rules)
    with pytest.raises(acep.QueryError, match="no rule `god`"):
        rules.alerts({"god": acep.match(rows, QUERY)})
