"""``acep match --plot``: a page of bounded size that needs nothing else, with the right events, whatever the data."""

from __future__ import annotations

import gzip
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main, plotting
from acep.cli.plotting import Chosen
from acep.native.compiled import why_not
from acep.plots import page as pages
from acep.plots.page import MOST_BYTES, Drawn, as_file

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]
CSV = "ts,type,k,price\n" + "".join(f"{n},{'ab'[n % 2]},u{n % 3},{n % 7}.5\n" for n in range(30))
QUERY = "PATTERN SEQ(a x, b y) WHERE [k] AND y.price > x.price WITHIN 9"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text(CSV)
    return tmp_path


class Parts(HTMLParser):
    """The tags of a page, its attributes, and the text of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def of_page(name: str) -> Parts:
    text = Path(name).read_text()
    assert text.startswith("<!DOCTYPE html>")
    parts = Parts(text)
    tags = {tag for tag, _ in parts.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "foreignobject"}
    loaded = [
        value
        for _, attrs in parts.tags
        for name, value in attrs.items()
        if name in ("src", "href", "xlink:href", "data")
    ]
    assert all(value is not None and value.startswith("#") for value in loaded), "nothing comes from elsewhere"
    assert not re.search(r"url\((?!#)|@import", text)
    assert all(not name.startswith("on") for _, attrs in parts.tags for name in attrs)
    return parts


@pytest.mark.long
def test_a_page_has_a_summary_the_time_line_and_matches_over_a_series(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", QUERY, "e.csv", "--plot", "p.html"]) == 0
    plain = capsys.readouterr()
    assert main(["match", QUERY, "e.csv"]) == 0
    assert capsys.readouterr() == plain, "a plot changes no output"
    found = len(plain.out.splitlines())
    parts = of_page("p.html")
    assert QUERY in parts.texts
    assert any(text.startswith(f"30 events, {found} matches in ") for text in parts.texts)
    assert [text for text in parts.texts if text.startswith(("Matches over", "A match over"))] == [
        "Matches over time",
        *["A match over price"] * 4,
    ]
    assert f"{found} matches" in parts.texts
    assert sum(tag == "svg" for tag, _ in parts.tags) == 5


@pytest.mark.long
@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_picture_has_the_same_plots(form: str) -> None:
    assert main(["match", QUERY, "e.csv", "--plot", f"p.{form}", "--output", "out.jsonl"]) == 0
    data = Path(f"p.{form}").read_bytes()
    assert len(data) < MOST_BYTES
    if form == "svg":
        nodes = ET.fromstring(data).iter()  # noqa: S314 - made here
        texts = ["".join(node.itertext()).strip() for node in nodes if node.tag.endswith("text")]
        assert sum(text.startswith("match of k=") for text in texts) == 4
        assert sum(text == "price" for text in texts) == 4
    else:
        assert data.startswith(b"\x89PNG")


def around(args: list[str], monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The page that a run of ``acep match --plot`` draws."""
    drawn: list[Drawn] = []
    monkeypatch.setattr(plotting, "as_file", lambda one, form: drawn.append(one) or b"")
    assert main(["match", *args, "--plot", "p.html", "--output", "out.jsonl"]) == 0
    return drawn[0]


@pytest.mark.parametrize("order", ["in order", "mixed"])
@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("id", [None, "name"])
def test_the_events_around_a_match_are_those_of_the_file(
    order: str, size: str, id: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Large files are read in batches, sorted on disk where they are not in order; the rows are found all the same."""
    import acep.events.files.survey as surveys

    if size == "large":
        monkeypatch.setattr(surveys, "SMALL", 1)
        monkeypatch.setattr("acep.events.files.stream.ROWS", 64)
    chance = random.Random(4)
    rows = 1_000
    ts = sorted(chance.randrange(5_000) for _ in range(rows))
    if order == "mixed":
        chance.shuffle(ts)
    table = {
        "ts": ts,
        "type": chance.choices("abx", k=rows),
        "k": chance.choices(["u", "v"], k=rows),
        "price": [chance.random() for _ in range(rows)],
        "name": [f"e{n}" for n in chance.sample(range(rows), rows)],
    }
    pa.csv.write_csv(pa.table(table), "many.csv")
    named = [] if id is None else ["--id", id]
    drawn = around([QUERY.replace("9", "40"), "many.csv", *named], monkeypatch)
    assert ("sorted on disk" in capsys.readouterr().err) is ((order, size) == ("mixed", "large"))
    assert drawn.value == "price"
    assert len(drawn.series) == 4
    at = {name: row for row, name in enumerate(table["name"])}
    for match, series in drawn.series:
        low, high = (
            match.start - round(0.5 * (match.end - match.start)),
            match.end + round(0.5 * (match.end - match.start)),
        )
        expected = sorted(
            (table["ts"][row], table["price"][row])
            for row in range(rows)
            if low <= ts[row] <= high and table["k"][row] == match.key["k"]
        )
        assert sorted(zip(series.times.tolist(), series.values.tolist(), strict=True)) == expected
        for variable, bound in match.bindings.items():
            here = [at[one] if id else one for one in bound]
            assert series.values[series.rows[variable]].tolist() == [table["price"][row] for row in here]
    assert any(len(series.times) > 2 for _, series in drawn.series)


@pytest.mark.long
def test_hand_written_automata_and_packed_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("up.toml").write_text(
        'start = "0"\nfinal = "2"\nkeys = "k"\nwindow = 20\n'
        '[[arc]]\nfrom = "0"\nto = "1"\nfence = "e.price < 3"\nbind = "low"\n'
        '[[arc]]\nfrom = "1"\nto = "1"\nignorable = true\n'
        '[[arc]]\nfrom = "1"\nto = "2"\nfence = "e.price > 4"\nbind = "high"\n'
    )
    Path("e.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    for query in (QUERY, "up.toml"):
        assert main(["match", query, "e.csv.gz", "--plot", "p.svg"]) == 0
        found = capsys.readouterr().out.count("\n")
        text = Path("p.svg").read_text()
        assert text.count(">price<") == min(4, found) > 0
        assert (">low<" in text) is (query == "up.toml")


@pytest.mark.long
def test_events_from_a_pipe_are_read_twice(folder: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "acep", "match", QUERY, "-", "--format", "csv", "--plot", "p.svg"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, input=CSV, capture_output=True, text=True, check=True, cwd=folder, env=env)
    assert Path("p.svg").read_text().count(">price<") == 4


def test_the_column_of_the_series() -> None:
    def value(query: acep.Query, asked: str | None = None) -> str | None:
        import argparse

        args = argparse.Namespace(plot="p.html", plot_value=asked, ts="ts", events=["e.csv"], query="q")
        plot = plotting.MatchPlot(args, query)
        schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "v": pa.float32(), "w": pa.int8()})
        plot.settle(schema, {"ts": "ts", "type": "type", "seq": None, "id": None})
        return plot.value

    assert value(acep.parse("PATTERN SEQ(a x, b y) WHERE [k] AND x.type = 'a' AND y.ts > 3 AND y.w > x.v")) == "w"
    assert value(acep.parse("PATTERN SEQ(a x, b y) WHERE [k]")) is None
    assert value(acep.parse("PATTERN SEQ(a x, b y) WHERE [k]"), "k") == "k"
    with pytest.raises(acep.DataError, match="there is no column `vv`"):
        value(acep.parse("PATTERN SEQ(a x, b y)"), "vv")
    with pytest.raises(acep.DataError, match="column `type` is string, and no number"):
        value(acep.parse("PATTERN SEQ(a x, b y)"), "type")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--plot", "p.pdf"], "`p.pdf` does not say how a plot is to be written"),
        (["--plot", "no/p.html"], "`no/p.html` cannot be written: there is no such folder"),
        (["--plot", "p.html", "--count"], "--plot draws matches"),
        (["--plot-value", "price"], "--plot-value is for a plot"),
        (["--plot", "p.html", "--plot-value", "prise"], "--plot-value: there is no column `prise`"),
        (["--plot", "p.html", "--plot-value", "k"], "--plot-value: column `k` is string, and no number"),
    ],
)
def test_mistakes_are_told_before_the_work(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", QUERY, "e.csv", *args]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"acep: {message}")


def test_queries_without_a_series_say_why() -> None:
    composed = f"FROM ({QUERY} RETURN y.price AS p) AS T PATTERN SEQ(T t, T u) WHERE u.p > t.p WITHIN 9"
    for query, why in (
        (composed, "matches of the queries in FROM"),
        ("PATTERN SEQ(a x, b y) WITHIN 2", "no column of numbers"),
    ):
        assert main(["match", query, "e.csv", "--plot", "p.html", "--output", "out.jsonl"]) == 0
        assert any(text.startswith("none: ") and why in text for text in of_page("p.html").texts)


@pytest.mark.long
def test_a_budget_and_a_limit_are_told() -> None:
    assert main(["match", QUERY, "e.csv", "--plot", "p.html", "--limit", "2", "--output", "out.jsonl"]) == 0
    assert "2 matches" in of_page("p.html").texts
    if why_not() is not None:
        pytest.skip("a budget needs the native core")
    assert main(["match", QUERY, "e.csv", "--plot", "p.html", "--work", "0.3", "--output", "out.jsonl"]) == 0
    assert any("not exact" in text for text in of_page("p.html").texts)


@pytest.mark.long
def test_an_output_that_is_closed_early_draws_nothing_and_says_so(folder: Path) -> None:
    rows = "".join(f"{n},{'ab'[n % 2]},u,{n}\n" for n in range(20_000))
    Path("e.csv").write_text(f"ts,type,k,price\n{rows}")
    command = f'{sys.executable} -m acep match "{QUERY}" e.csv --plot p.html | head -1'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=folder, env=env)
    assert done.stdout.count("\n") == 1
    assert done.stderr == "acep: the output was closed before the end, so `p.html` was not drawn\n"
    assert not Path("p.html").exists()


@pytest.mark.long
def test_data_of_a_user_is_never_code() -> None:
    evil = "</title><script>alert(1)</script>\"'&$x$"
    types = ["ab"[n % 2] for n in range(40)]
    table = pa.table({"ts": range(40), "type": types, "k": [evil] * 40, "_v": range(40)})
    pq.write_table(table, "e<b>.parquet")
    query = "PATTERN SEQ(a _x, b y) WHERE [k] AND y._v > _x._v WITHIN 5 -- <script>alert(2)</script>"
    for form in ("html", "svg"):
        assert main(["match", query, "e<b>.parquet", "--plot", f"p.{form}", "--output", "out.jsonl"]) == 0
    parts = of_page("p.html")
    assert query in parts.texts
    assert "e<b>.parquet" in parts.texts
    assert any(evil[:30] in text for text in parts.texts)
    assert "<script" not in Path("p.html").read_text() + Path("p.svg").read_text()


@pytest.mark.long
@pytest.mark.whole
def test_a_page_is_bounded() -> None:
    """The greatest plots of all kinds: long names in many bytes, thousands of matches, keys, variables and events."""
    rows = 12_000
    long = "名" * 300
    chance = np.random.default_rng(2)
    types = [f"{'ab'[n % 2]}" for n in range(rows)]
    keys = [f"{long[: n % 290]}{n % 150}" for n in range(rows)]
    pq.write_table(pa.table({"ts": range(rows), "type": types, "k": [*keys], "v": chance.random(rows)}), "e.parquet")
    # Each of the 200 variables binds an event, and all events are between.
    variables = [f"{'v' * 200}{n}" for n in range(200)]
    query = (
        f"PATTERN SEQ({', '.join(f'ANY {one}' for one in variables)})"
        f" WHERE skip_till_next_match({', '.join(variables)}) {{ {variables[0]}.v > 0.9 }} WITHIN 11000"
    )
    many = "PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { y.v > 0.5 } WITHIN 9"
    sizes = []
    keyed = "PATTERN SEQ(ANY x, ANY y) WHERE skip_till_next_match(x, y) { [k] AND y.v > x.v } WITHIN 9000"
    for text in (query, many, keyed):
        Path("q.acep").write_text(text)
        assert main(["match", "q.acep", "e.parquet", "--plot", "p.html", "--output", "out.jsonl"]) == 0
        parts = of_page("p.html")
        sizes.append(Path("p.html").stat().st_size)
        assert sum(tag == "svg" for tag, _ in parts.tags) == 5, "nothing was left out"
    Path("q.acep").write_text(query)
    assert main(["match", "q.acep", "e.parquet", "--plot", "p.svg", "--output", "out.jsonl"]) == 0
    sizes.append(Path("p.svg").stat().st_size)
    assert max(sizes) > 150_000
    assert max(sizes) <= MOST_BYTES


def test_a_plot_without_room_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = acep.match({"ts": [1, 2], "type": ["a", "b"]}, acep.regex("ab", within=5))
    monkeypatch.setattr(pages, "MOST_BYTES", 8_000)
    data = as_file(Drawn("q", [("query", "x" * 9_000)], list(found), 1, "ts"), "html").decode()
    assert len(data) <= 8_000
    assert "Matches over time: left out, as a page has at most 8,000 bytes." in data
    assert "<svg" not in data


def test_some_of_a_stream_are_chosen_evenly(cases: Callable[[int], int]) -> None:
    chance = random.Random(8)
    for _ in range(cases(200)):
        chosen, given, most = Chosen(chance.randrange(1, 20)), 0, 0
        for _ in range(chance.randrange(12)):
            more = chance.choice([0, 1, 5, 300])
            chosen.add(range(given, given + more))
            given += more
        most = chosen.limit
        assert chosen.items == list(range(0, given, chosen.step))
        assert chosen.n_seen == given
        assert len(chosen.items) == given if given <= 2 * most else most <= len(chosen.items) <= 2 * most


def test_too_many_events_around_a_match_are_no_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotting, "MOST_ROWS", 2)
    drawn = around([QUERY, "e.csv"], monkeypatch)
    told = [text for name, text in drawn.facts if name == "series"]
    assert len(told) + len(drawn.series) == 4
    assert told
    assert all(text.startswith("more than 2 events around the match of k=u") for text in told)
