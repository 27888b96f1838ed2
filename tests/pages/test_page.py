"""``Matches.page`` and ``acep match --page``: a file that loads nothing, without markup of the data; clear errors."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.cli import main

pytest.importorskip("bokeh")

HOSTILE = (
    "<script>window.injected = 1</script>",
    "</script><img src=x onerror='window.injected = 1'>",
    "\"'`&amp;&lt;b&gt;",
    "\x00\x1b[31m\u2028\u2029\x85",
    "\u202eright to left\u202c\u200f",
    "<!-- <![CDATA[ ]]> -->",
    "$$\\frac{1}{2}$$ @{key}{safe} {{data}}",
    "x" * 100_000,
)
CSV = "ts,type,user,x\n" + "".join(f"{n},{'ab'[n % 2]},u{n % 3},{n % 7}.5\n" for n in range(30))
QUERY = "PATTERN SEQ(a p, b q) WHERE [user] AND q.x > p.x WITHIN 9 RETURN q.x - p.x AS rise"


def hostile_events() -> dict[str, list[Any]]:
    """Return a pair of events for each hostile text, which is the key, and a text and a name of a column."""
    n_texts = len(HOSTILE)
    return {
        "ts": list(range(2 * n_texts)),
        "type": ["a", "b"] * n_texts,
        "user": [text for text in HOSTILE for _ in "ab"],
        "x": [1.0, 2.0] * n_texts,
        "$$</script><b>note$$": [text for text in HOSTILE for _ in "ab"],
    }


def hostile_query() -> acep.Query:
    text = "-- </script><script>window.injected = 1</script> '\"&\n" + QUERY.replace("9", "99")
    return acep.parse(text.replace("q.x > p.x", "q.x > p.x AND p.type != '</pre><b>\"'"))


class Elements(HTMLParser):
    """The tags of a page with their attributes, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.get_starttag_text().startswith("<script"):
            self.scripts.append(data)


@pytest.mark.long
def test_nothing_of_the_data_is_markup_and_nothing_is_loaded() -> None:
    page = acep.match(hostile_events(), hostile_query()).page()
    plain = acep.match({"ts": [0, 1], "type": ["a", "b"], "user": ["u", "u"], "x": [1.0, 2.0]}, QUERY).page()
    hostile, harmless = Elements(page.html), Elements(plain.html)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in harmless.tags], "the data add no element"
    loaded = [value for _, attrs in hostile.tags for name, value in attrs.items() if name in ("src", "href", "action")]
    assert loaded == []
    assert all(not name.startswith("on") for _, attrs in hostile.tags for name in attrs)
    assert len(page.data.matches.numbers) == len(HOSTILE)
    assert "x" * 1_000 not in page.html


def test_the_policy_lets_the_own_scripts_run_and_no_others() -> None:
    page = acep.match(hostile_events(), hostile_query()).page()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.html)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe-eval" not in policy[1]
    scripts = re.findall(r"<script>(.*?)</script>", page.html, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.search(r"script-src (.*)$", policy[1])[1].split() == [f"'sha256-{value}'" for value in hashes]


def test_the_same_matches_give_the_same_data() -> None:
    first, second = (acep.match(hostile_events(), hostile_query()).page() for _ in range(2))
    assert (first.data.matches, first.data.rows) == (second.data.matches, second.data.rows)


def test_a_page_has_near_misses_with_the_condition_that_failed() -> None:
    events = {"ts": [1, 2, 3, 4], "type": list("abab"), "user": [7, 7, 8, 8], "x": [1, 2, 5, 4]}
    page = acep.match(events, QUERY).page()
    assert page.data.misses[0][0] == "user=8: event 3 is no q: q.x > p.x does not hold (q.x = 4, p.x = 5)"
    assert acep.match(events, QUERY).page(misses=0).data.misses == ()
    every_event = {name: values[:2] for name, values in events.items()}
    assert acep.match(every_event, QUERY).page().data.misses_note == "there are none"


def test_events_without_a_key_were_looked_at() -> None:
    events = {"ts": [1, 2, 3, 4], "type": list("aaab"), "user": [None, None, 8, 8], "x": [1, 2, 5, 4]}
    page = acep.match(events, QUERY).page()
    assert page.data.misses[0][0].startswith("user=8: event 3 is no q")
    assert page.data.misses_note == ""


def test_a_page_says_what_a_budget_gave_up() -> None:
    events = {"ts": list(range(400)), "type": ["a", "b"] * 200, "x": [n % 17 for n in range(400)]}
    query = "PATTERN SEQ(a p, b q, a r) WHERE skip_till_any_match(p, q, r) { q.x > p.x } WITHIN 99"
    page = acep.match(events, query, budget=acep.Budget(work=2)).page(misses=0)
    assert "; not exact: " in page.data.title
    assert any("shed" in line for line in page.data.report)


def test_a_page_without_matches_rows_or_query(tmp_path: Path) -> None:
    page = acep.match({"ts": [1], "type": ["a"]}, acep.regex("ab", within=5)).page(tmp_path / "none.html")
    assert page.data.title == "no matches"
    assert (tmp_path / "none.html").read_text() == page.html
    matcher = acep.Matcher(acep.regex("ab", within=5))
    events = {"ts": [1, 2], "type": ["a", "b"]}
    matches = matcher.push(events)
    assert matches.page().data.notes == ("no rows: the events were not kept (page(events=...) takes them)",)
    assert len(matches.page(events=events).data.rows.rows) == 2
    copy = pickle.loads(pickle.dumps(matches))  # noqa: S301 - it is our own
    with pytest.raises(acep.QueryError, match="do not hold their query"):
        copy.page()
    assert copy.page(query=acep.regex("ab", within=5)).data.title == "1 match"


def test_composed_queries_have_no_rows() -> None:
    query = acep.parse("FROM (PATTERN SEQ(a x, b y) WITHIN 2) AS pair PATTERN SEQ(pair p, pair q) WITHIN 9")
    matches = acep.match({"ts": list(range(8)), "type": ["a", "b"] * 4}, query)
    page = matches.page()
    assert len(matches)
    assert page.data.notes == ("no rows: the events of the matches are matches of the queries in FROM",)
    assert page.data.rows.rows == ()


def test_wrong_arguments_are_one_line(tmp_path: Path) -> None:
    matches = acep.match({"ts": [1, 2], "type": ["a", "b"]}, acep.regex("ab", within=5))
    for arguments, message in (
        ({"path": "page.png"}, "does not say how a page is to be written"),
        ({"path": tmp_path / "no" / "page.html"}, "cannot be written"),
        ({"misses": -1}, "misses=-1 is not a number from 0 to 50"),
        ({"events": {"ts": [1, 3], "type": ["a", "b"]}}, "not the events that were matched"),
    ):
        with pytest.raises(acep.AcepError, match=message) as caught:
            matches.page(**arguments)
        assert "\n" not in caught.value.message


def test_a_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    page = acep.match(hostile_events(), hostile_query()).page()
    (frame,) = Elements(page._repr_html_()).tags
    assert frame[0] == "iframe"
    assert frame[1]["sandbox"] == "allow-scripts"
    assert frame[1]["srcdoc"] == page.html
    assert repr(page) == f"ResultPage({len(HOSTILE)} matches)"


@pytest.mark.long
def test_bokeh_is_loaded_for_a_page_alone_and_its_lack_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(CSV)
    script = (
        "import sys, acep\nfrom acep.cli import main\n"
        f"assert main(['match', {QUERY!r}, 'e.csv', '--output', 'm.jsonl']) == 0\n"
        "assert 'bokeh' not in sys.modules\n"
        "import importlib.util\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'bokeh' else find(name, *rest)\n"
        f"print(main(['match', {QUERY!r}, 'e.csv', '--page', 'p.html']))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.strip() != "0"
    assert run.stderr.splitlines() == [
        "acep: bokeh is not installed, and a page needs it [engine_missing]",
        "hint: pip install 'acep[page]'",
    ]
    assert not (tmp_path / "p.html").exists()


# The command line ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text(CSV)
    return tmp_path


def data_of_file(name: str) -> dict[str, Any]:
    text = re.search(r'id="page-data">(.*?)</script>', Path(name).read_text(), re.DOTALL)
    assert text is not None
    parsed: dict[str, Any] = json.loads(text[1])
    return parsed


@pytest.mark.usefixtures("folder")
def test_the_command_line_shows_the_same_as_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", QUERY, "e.csv", "--page", "p.html"]) == 0
    written = capsys.readouterr().out
    assert main(["match", QUERY, "e.csv"]) == 0
    assert capsys.readouterr().out == written
    acep.match("e.csv", QUERY).page("q.html")
    by_command, by_python = data_of_file("p.html"), data_of_file("q.html")
    assert len(by_command["matches"]["numbers"]) == written.count("\n") > 3
    for part in ("matches", "walks", "misses", "misses_note", "query", "notes"):
        assert by_command[part] == by_python[part], part
    for part in ("names", "offsets", "rows", "variables", "steps", "counts", "n_bound", "times"):
        assert by_command["rows"][part] == by_python["rows"][part], part
    assert by_command["rows"]["table"][:5] == by_python["rows"]["table"][:5]


@pytest.mark.long
@pytest.mark.usefixtures("folder")
def test_of_a_long_file_some_matches_and_the_rows_around_them(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{n},{'ab'[n % 2]},u{n // 2 % 5},{n % 2}" for n in range(9_000)]
    Path("long.csv").write_text("\n".join(["ts,type,user,x", *lines]))
    assert main(["match", QUERY, "long.csv", "--page", "p.html", "--output", "m.jsonl"]) == 0
    data = data_of_file("p.html")
    assert data["matches"]["total"] == 4_500
    assert data["matches"]["numbers"] == [*range(0, 4_500, 8)]
    assert data["notes"][0] == "shown: 563 of 4,500 matches, one of every 8 in output order, beginning with match 0"
    assert data["rows"]["table"][0]["texts"][:3] == ["0", "1", "16"] or len(data["rows"]["rows"]) == 2 * 563
    monkeypatch.setattr("acep.cli.paging.MOST_HELD", 100)
    assert main(["match", QUERY, "long.csv", "--page", "p.html", "--output", "m.jsonl"]) == 0
    data = data_of_file("p.html")
    assert 20 <= len(data["matches"]["numbers"]) <= 100
    assert all(count == 2 for count in data["rows"]["counts"])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--page", "p.png"], "does not say how a page is to be written"),
        (["--page", "no/p.html"], "there is no such folder"),
        (["--page", "p.html", "--count"], "--page shows matches"),
    ],
)
def test_options_that_do_not_fit(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", QUERY, "e.csv", *options]) != 0
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_run_without_matches_has_a_page() -> None:
    assert main(["match", QUERY.replace("WITHIN 9", "WITHIN 0"), "e.csv", "--page", "p.html"]) == 0
    assert data_of_file("p.html")["title"] == "no matches"


@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("always::acep.errors.DataWarning")
def test_columns_that_cannot_be_read_are_left_out_if_the_query_does_not_use_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("twice.csv").write_text("ts,type,user,x,n,n\n1,a,u,1,1,2\n2,b,u,2,1,2\n")
    assert main(["match", QUERY, "twice.csv", "--output", "m.jsonl"]) == 0
    assert main(["match", QUERY, "twice.csv", "--page", "p.html", "--output", "m.jsonl"]) == 0
    assert "only the columns that the query names are read: two columns" in capsys.readouterr().err
    assert data_of_file("p.html")["title"] == "1 match"


@pytest.mark.usefixtures("folder")
def test_a_page_of_a_limited_run_says_so() -> None:
    assert main(["match", QUERY, "e.csv", "--page", "p.html", "--output", "m.jsonl", "--limit", "1"]) == 0
    assert re.fullmatch(r"1 of [\d,]+ matches", data_of_file("p.html")["title"])
