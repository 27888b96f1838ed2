"""The options of all entry points: one place has their names, types and defaults, and every signature shows them."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.runtime.options import (
    LearnKeywords,
    MatcherKeywords,
    MatchKeywords,
    StreamKeywords,
    StreamOptions,
    thread_count,
)
from tests.test_imports import FOLDERS, ROOT

OPTIONS = StreamOptions.__dataclass_fields__
NOT_LEARNED = {"engine"}
OF_THREADS = {"threads"}
OF_MATCHER = {"cast", "lateness", "speculation", "op", "dynamic", "seq_gaps"}


def spark(name: str) -> Callable[..., Any]:
    pytest.importorskip("pyspark")
    import acep.spark
    from acep.spark.replay import replay

    return replay if name == "replay" else acep.spark.match


ENTRIES: dict[str, Callable[[], Callable[..., Any]]] = {
    "match": lambda: acep.match,
    "Matcher": lambda: acep.Matcher,
    "learn": lambda: acep.learn,
    "follow": lambda: acep.follow,
    "spark.match": lambda: spark("match"),
    "replay": lambda: spark("replay"),
}


def test_types_and_defaults_are_of_the_same_options() -> None:
    types = {name: known.__forward_arg__ for name, known in MatcherKeywords.__annotations__.items()}
    assert types == {name: field.type for name, field in OPTIONS.items()}
    assert set(StreamKeywords.__annotations__) == set(OPTIONS) - OF_MATCHER - OF_THREADS
    assert set(LearnKeywords.__annotations__) == set(OPTIONS) - NOT_LEARNED - OF_MATCHER - OF_THREADS
    assert set(MatchKeywords.__annotations__) == {*OPTIONS, "counts", "limit"} - OF_MATCHER


@pytest.mark.parametrize("name", ENTRIES)
def test_signatures_show_the_options(name: str) -> None:
    parameters = inspect.signature(ENTRIES[name]()).parameters
    wanted = set(OPTIONS) - (NOT_LEARNED if name == "learn" else set()) - (set() if name == "Matcher" else OF_MATCHER)
    wanted -= set() if name in ("match", "Matcher") else OF_THREADS
    shown = {one: parameters[one] for one in wanted}
    assert {one: held.default for one, held in shown.items()} == {one: OPTIONS[one].default for one in wanted}
    assert {one: held.annotation for one, held in shown.items()} == {one: OPTIONS[one].type for one in wanted}
    assert inspect.Parameter.VAR_KEYWORD not in {held.kind for held in parameters.values()}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_unknown_option_is_refused_as_python_does(name: str, tmp_path: Path) -> None:
    entry, query = ENTRIES[name](), acep.regex("ab", within=5)
    events = {"ts": [1], "type": ["a"]}
    first = {"Matcher": (query,), "follow": (tmp_path, query), "replay": (query, events)}.get(name, (events, query))
    more = {"state": tmp_path / "_state", "into": tmp_path / "_into"} if name == "follow" else {}
    shown = rf"{name.removeprefix('spark.')}\S*\(\) got an unexpected keyword argument 'tz'"
    with pytest.raises(TypeError, match=shown):
        entry(*first, tz="UTC", **more)


def test_an_option_of_a_query_is_named() -> None:
    with pytest.raises(TypeError, match=r"match\(\) got an .*'errors'; acep.parse\(text, errors=\.\.\.\) takes it"):
        acep.match({"ts": [1]}, "PATTERN A a", errors=1)


@pytest.mark.parametrize(
    ("name", "where"),
    [("cast", "acep.read_events(path, cast=...)"), ("lateness", "acep.Matcher(query, lateness=...)")],
)
def test_what_takes_an_option_is_named(name: str, where: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"; {where} takes it")):
        acep.match("events.csv", "PATTERN A a", **{name: "x"})


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2", "most", None])
def test_threads_that_are_no_number_of_threads_are_refused(threads: Any) -> None:
    for entry in (partial(acep.match, {"ts": [1], "type": ["A"]}), acep.Matcher):
        with pytest.raises(acep.QueryError, match="is no number of threads") as caught:
            entry("PATTERN A a", threads=threads)
        assert caught.value.code == "option_invalid"
        assert '"all"' in caught.value.hint


def test_all_threads_are_those_that_the_process_may_use() -> None:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert thread_count("all") == available


@pytest.mark.long
def test_a_type_checker_knows_the_results(tmp_path: Path) -> None:
    """Where mypy is installed, it agrees with each ``assert_type`` of typed_results.py."""
    pytest.importorskip("mypy")
    package = tmp_path / "acep"
    package.mkdir()
    for name, folder in FOLDERS.items():
        there = package if name == "acep" else package / name.removeprefix("acep.")
        if name != "acep":
            there.symlink_to(folder)
            continue
        for one in folder.iterdir():
            (there / one.name).symlink_to(one)
    typed = tmp_path / "typed_results.py"
    typed.write_text((ROOT / "tests/runtime/typed_results.py").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--follow-imports=silent"]
    command += ["--cache-dir", ROOT / ".mypy_cache/typed_results", typed.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
