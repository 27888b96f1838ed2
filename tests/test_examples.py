"""The examples on their streams: acep against a walk in plain Python, and the walk against the catalogue.

``tests/walks.py`` knows nothing of acep. On whole streams it must count what the catalogue says, by the catalogue's
rule, and give the numbers of docs/examples.md, by that of acep. On as much of a stream as the engine manages in seconds
acep must find the same matches, event by event. ``ACEP_CASES`` makes that part greater.
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
from examples import examples
from examples.table import PAGE, Counts, render
from tests.walks import KINDS, WALKS, Walk, part_of, read, tweets_of, walk

ROOT = Path(__file__).resolve().parents[1]
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
    """The catalogue's patterns, by stream and name."""
    file = path.parent / "catalog.json"
    if not file.is_file():
        pytest.skip(f"no catalog.json under {path.parent}")
    streams = json.loads(file.read_text(encoding="utf-8"))["datasets"]
    return {f"{stream['name']}/{one['name']}": one for stream in streams for one in stream["patterns"]}


def test_each_pattern_of_the_catalogue_is_an_example(data: Callable[[str], Path]) -> None:
    patterns = catalogue(data("sepsis"))
    assert set(patterns) == set(KNOWN)
    assert set(EXAMPLES) == set(WALKS)
    for key, pattern in patterns.items():
        assert EXAMPLES[key].window == pattern["window"]


@pytest.mark.parametrize("key", KNOWN)
def test_the_catalogue_counts_the_same_first_events(key: str, data: Callable[[str], Path]) -> None:
    """The catalogue's run proceeds where it can, and so may leave an open repetition too early, where acep goes on
    besides: acep may find more. In fact no start is lost by that on these streams. One of acep's runs is the
    catalogue's, so there is never less."""
    path = data(EXAMPLES[key].stream)
    pattern = catalogue(path)[key]
    told = (pattern["matches"], pattern["keys_with_match"])
    by_its_rule, by_ours = counted(path, key, greedy=True), counted(path, key)
    assert (by_its_rule.firsts, by_its_rule.keys) == told
    assert by_its_rule.matches == by_its_rule.firsts
    assert (by_ours.firsts, by_ours.keys) == told


@each_example
def test_acep_finds_what_a_walk_finds(key: str, data: Callable[[str], Path], cases: Callable[[int], int]) -> None:
    example, this = EXAMPLES[key], WALKS[key]
    path = data(example.stream)
    every = max(1, this.every // cases(1))
    table = part_of(read(path), this, every)
    found = acep.match(table, example.query, seq="arrival_seq", id="row")
    given = Counter((one.key[this.key[0]], shape(one, this)) for one in found)
    expected = Counter((one.key[0], one.rows) for one in walk(this, table))
    assert given == expected
    assert given or every < this.every
    assert max(given.values(), default=1) == 1
    whole = catalogue(path).get(key) if every == 1 else None
    if whole:
        assert len({min(row for rows in shape for row in rows) for _, shape in given}) == whole["matches"]
        assert len({value for value, _ in given}) == whole["keys_with_match"]


def shape(one: acep.Match, this: Walk) -> tuple[tuple[Any, ...], ...]:
    """The events bound, by the stages of the walk."""
    if not this.stages:
        return (tuple(sorted(row for rows in one.bindings.values() for row in rows)),)
    return tuple(
        tuple(sorted(row for var in stage.vars.split() for row in one.bindings.get(var, ()))) for stage in this.stages
    )


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


def test_the_page_is_up_to_date(data: Callable[[str], Path]) -> None:
    """By the walk, so that no engine is asked for whole streams: ``python -m examples.table`` asks one."""
    counts = {key: counted(data(example.stream), key) for key, example in EXAMPLES.items()}
    assert PAGE.read_text(encoding="utf-8") == render(counts)


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
    """On the beginnings of streams."""
    monkeypatch.chdir(ROOT)
    _, *arguments = shlex.split(command)
    for name in {example.stream for example in EXAMPLES.values()}:
        if f"/{name}.parquet" in command:
            pq.write_table(pq.read_table(data(name)).slice(0, 30_000), tmp_path / f"{name}.parquet")
    assert main([argument.replace("$ACEP_DATA", os.fspath(tmp_path)) for argument in arguments]) == 0
    assert capsys.readouterr().out.strip()


def test_the_python_of_the_readme_works(data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("ACEP_DATA", os.fspath(data("sepsis").parent))
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "examples/README.md", "exec"), names)  # noqa: S102 - the page is ours
    assert len(names["found"]) > 0


def test_the_readme_names_every_stream() -> None:
    for example in EXAMPLES.values():
        assert f"`{example.stream}/`" in README
