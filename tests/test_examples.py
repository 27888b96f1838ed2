"""The examples on their streams: acep against a walk in plain Python, and the walk against the catalogue.

``tests/walks.py`` knows nothing of acep. On whole streams it must count what the catalogue says, by the catalogue's
rule, and give the numbers of docs/tutorial/examples.md, by that of acep; on the streams that are shipped, the numbers
of ``tests/golden/shipped.json``. On as much of a stream as the engine manages in seconds acep must find the same
matches, event by event. ``ACEP_CASES`` makes that part greater. Streams that are not shipped have stand-ins
(``tests/stand_ins.py``), on which the same properties hold. ``ACEP_GOLDEN=write`` writes the numbers anew.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from examples import data as streams
from examples import examples
from examples.data.make import SLICES, cut
from examples.table import PAGE, Counts, render
from tests.thinned import thinned
from tests.walks import KINDS, WALKS, Walk, part_of, read, tweets_of, walk

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden" / "shipped.json"
EXAMPLES = {example.key: example for example in examples()}
# Of the letters of tweets the catalogue has no pattern.
KNOWN = [key for key, example in EXAMPLES.items() if example.stream != "stock_tweet_tokens"]
each_example = pytest.mark.parametrize("key", EXAMPLES)
# A stream is read once, and walked once for all tests.
pytestmark = pytest.mark.xdist_group("examples")


@pytest.fixture(autouse=True, scope="module")
def _no_search_for_cycles() -> Iterator[None]:
    """Among millions of small records it would take longer than the walks."""
    gc.disable()
    yield
    gc.enable()


@cache
def walked(path: Path, key: str) -> list[tuple[int, int, Any, bool]]:
    """(time from the first event to the last, first event, key, greedy) of each match on the whole stream.

    Queries that differ in their windows only are walked once, with the longest.
    """
    this, stream = WALKS[key], EXAMPLES[key].stream
    alike = [
        other
        for name, other in WALKS.items()
        if (EXAMPLES[name].stream, other.stages, other.run) == (stream, this.stages, this.run)
    ]
    longest = max(alike, key=lambda other: other.window)
    if longest is not this:
        (name,) = (name for name, other in WALKS.items() if other is longest)
        return walked(path, name)
    return [(one.span, one.first, one.key[0], one.greedy) for one in walk(this, read(path))]


def counted(path: Path, key: str, *, greedy: bool = False) -> Counts:
    found = [
        (first, value)
        for span, first, value, chosen in walked(path, key)
        if span <= WALKS[key].window and chosen >= greedy
    ]
    return Counts(len(found), len({first for first, _ in found}), len({value for _, value in found}))


def catalogue(path: Path) -> dict[str, dict[str, Any]]:
    """The patterns of the catalogue of whole streams, by stream and name; empty where a stream comes without one."""
    file = path.parent / "catalog.json"
    if not file.is_file():
        return {}
    held = json.loads(file.read_text(encoding="utf-8"))["datasets"]
    return {f"{stream['name']}/{one['name']}": one for stream in held for one in stream["patterns"]}


def test_each_example_is_walked_and_is_a_pattern_of_the_catalogue(data: Callable[[str], Path]) -> None:
    assert set(EXAMPLES) == set(WALKS)
    patterns = catalogue(data("sepsis"))
    assert set(patterns) in (set(), set(KNOWN))
    for key, pattern in patterns.items():
        assert EXAMPLES[key].window == pattern["window"]


@pytest.mark.parametrize("name", SLICES)
def test_what_is_shipped_is_cut_from_the_whole(name: str) -> None:
    """And without the whole stream: it has the columns and the rows that its page tells of."""
    shipped = pq.read_table(streams.FOLDER / f"{name}.parquet")
    told = (streams.FOLDER / "README.md").read_text(encoding="utf-8").split(f"## `{name}.parquet`")[1].split("##")[0]
    assert re.match(rf"\s*{shipped.num_rows:,} ", told)
    assert "**Credit**" in told
    assert "**Licence**" in told
    assert "**Changes**" in told
    whole = streams.whole_folder() / f"{name}.parquet"
    if whole.is_file() and whole.parent != streams.FOLDER:
        assert cut(pq.read_table(whole), SLICES[name]).equals(shipped)


def test_little_is_shipped() -> None:
    files = [*streams.FOLDER.glob("*.parquet")]
    assert {file.stem for file in files} == set(SLICES)
    assert sum(file.stat().st_size for file in files) < 5.5e6


@pytest.mark.long
@pytest.mark.parametrize("key", KNOWN)
def test_the_catalogue_counts_the_same_first_events(key: str, data: Callable[[str], Path]) -> None:
    """The catalogue's run proceeds where it can, and so may leave an open repetition too early, where acep goes on
    besides: acep may find more. In fact no start is lost by that on the recorded streams. One of acep's runs is the
    catalogue's, so there is never less."""
    path = data(EXAMPLES[key].stream)
    by_its_rule, by_ours = counted(path, key, greedy=True), counted(path, key)
    assert by_its_rule.matches == by_its_rule.firsts
    if path.parent in streams.MORE:  # a stand-in
        assert 0 < by_its_rule.firsts <= by_ours.firsts
        assert 0 < by_its_rule.keys <= by_ours.keys
        return
    pattern = catalogue(path).get(key)
    told = (pattern["matches"], pattern["keys_with_match"]) if pattern else tuple(golden()[key][1:])
    assert (by_its_rule.firsts, by_its_rule.keys) == told
    assert (by_ours.firsts, by_ours.keys) == told


def golden() -> dict[str, list[int]]:
    """Of each example whose stream is shipped: matches, first events and keys on what is shipped."""
    held: dict[str, list[int]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return held


@pytest.mark.long
def test_what_is_found_in_shipped_streams(data: Callable[[str], Path]) -> None:
    files = {
        name: streams.FOLDER / f"{name}.parquet" if one.key is not None else data(name) for name, one in SLICES.items()
    }
    keys = [key for key, example in EXAMPLES.items() if example.stream in SLICES]
    found = {key: [*counted(files[EXAMPLES[key].stream], key)] for key in keys}
    if os.environ.get("ACEP_GOLDEN") == "write":
        lines = [f"{json.dumps(key)}: {json.dumps(counts)}" for key, counts in found.items()]
        GOLDEN.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")
    assert found == golden()
    assert all(matches > 0 for matches, _, _ in found.values())


@pytest.mark.parametrize("key", thinned([*EXAMPLES], 2))
def test_acep_finds_what_a_walk_finds(key: str, data: Callable[[str], Path], cases: Callable[[int], int]) -> None:
    example, this = EXAMPLES[key], WALKS[key]
    path = data(example.stream)
    # A stream with half of its keys bears twice the share, and a stand-in is taken whole.
    many = this.every if whole(path) else 1 if path.parent in streams.MORE else this.every // 2
    every = max(1, many // cases(1))
    table = part_of(read(path), this, every)
    found = acep.match(table, example.query, seq="arrival_seq", id="row")
    given = Counter((one.key[this.key[0]], shape(one, this)) for one in found)
    expected = Counter((one.key[0], one.rows) for one in walk(this, table))
    assert given == expected
    assert given or every < many
    assert max(given.values(), default=1) == 1
    pattern = catalogue(path).get(key) if every == 1 else None
    if pattern:
        assert len({min(row for rows in shape for row in rows) for _, shape in given}) == pattern["matches"]
        assert len({value for value, _ in given}) == pattern["keys_with_match"]


def shape(one: acep.Match, this: Walk) -> tuple[tuple[Any, ...], ...]:
    """The events bound, by the stages of the walk."""
    if not this.stages:
        return (tuple(sorted(row for rows in one.bindings.values() for row in rows)),)
    return tuple(
        tuple(sorted(row for var in stage.vars.split() for row in one.bindings.get(var, ()))) for stage in this.stages
    )


@pytest.mark.long
def test_tweets_from_letters_are_the_tweets_of_the_catalogue(data: Callable[[str], Path]) -> None:
    """What is found from letters begins where the catalogue says, and at a few tweets more: one that sees a bullish
    chart and brings good news is two events there, and may be bound as both."""
    table = read(data("stock_tweets"))
    names = ("tech2_then_fund2_1d", "tech2_then_fund2_3d")
    known = {name: {tweet(table, one.first) for one in walk(WALKS[f"stock_tweets/{name}"], table)} for name in names}
    tweets = tweets_of(read(data("stock_tweet_tokens")))
    for name in names:
        once: set[Any] = set()
        twice: set[Any] = set()
        for one in walk(replace(WALKS[f"stock_tweets/{name}"], columns=("type",), stages=KINDS), tweets):
            bound = [tweet(tweets, row) for rows in one.rows for row in rows]
            (once if len(set(bound)) == len(bound) else twice).add(bound[0])
        assert known[name] <= once | twice
        assert (once | twice) - known[name] <= twice - once


def tweet(table: pa.Table, row: int) -> tuple[Any, ...]:
    """Symbol and id of a tweet."""
    return table["symbol"][row].as_py(), table["tweet_id"][row].as_py()


@pytest.mark.long
def test_the_page_is_up_to_date(data: Callable[[str], Path]) -> None:
    """By the walk, so that no engine is asked for whole streams: ``python -m examples.table`` asks one. The figures of
    streams that are not whole here are taken from the page, for its text."""
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \[.*\]\(\.\./\.\./examples/(.*)\.acep\) \|.*\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", page, re.MULTILINE
    )
    told = {key: Counts(*(int(number.replace(",", "")) for number in numbers)) for key, *numbers in rows}
    files = {key: data(example.stream) for key, example in EXAMPLES.items()}
    counts = {key: counted(path, key) if whole(path) else told[key] for key, path in files.items()}
    assert page == render(counts)


def whole(path: Path) -> bool:
    """Whether a stream is all that there is: of the shipped ones, those of which no rows are left out."""
    return path.parent not in streams.MORE and (path.parent != streams.FOLDER or SLICES[path.stem].key is None)


@each_example
def test_an_example_says_what_it_finds(key: str) -> None:
    example = EXAMPLES[key]
    assert example.query.within is not None
    assert re.fullmatch(r"[A-Z].*[.]", example.words)
    assert max(map(len, example.text.splitlines())) <= 120


README = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
COMMANDS = [line.removeprefix("$ ") for line in README.replace("\\\n", "").splitlines() if line.startswith("$ acep")]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_readme_work(
    command: str,
    data: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On the beginnings of streams where they are to be had separately."""
    monkeypatch.chdir(ROOT)
    _, *arguments = shlex.split(command)
    for name in {example.stream for example in EXAMPLES.values()}:
        if f"$ACEP_DATA/{name}.parquet" in command:
            pq.write_table(pq.read_table(data(name)).slice(0, 30_000), tmp_path / f"{name}.parquet")
    assert main([argument.replace("$ACEP_DATA", os.fspath(tmp_path)) for argument in arguments]) == 0
    assert capsys.readouterr().out.strip()


def test_the_python_of_the_readme_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "examples/README.md", "exec"), names)  # noqa: S102 - the page is ours
    assert len(names["found"]) > 0


def test_the_readme_names_every_stream() -> None:
    for example in EXAMPLES.values():
        assert f"`{example.stream}/`" in README
