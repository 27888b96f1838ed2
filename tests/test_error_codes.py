"""Each code of an error: the reference lists exactly these, with an example that raises it and shows it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from acep.bucket_state.folders import folder_of
from acep.bucket_state.run_orders import Runs
from acep.cli import main
from acep.errors import CODES, AcepError, Code, QueryError, memory_errors
from acep.spark.failures import error_in
from tests.test_docs import ROOT, Block, blocks

PAGE = ROOT / "docs" / "reference" / "errors.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL))


def example(code: str) -> Block:
    """The block that shows a code."""
    (line,) = [n for n, text in enumerate(TEXT.splitlines(), 1) if text == f"### {code}"]
    return next(block for block in blocks(PAGE) if block.line > line)


def test_the_page_lists_exactly_the_codes_that_there_are() -> None:
    assert re.findall(r"^### (\w+)$", TEXT, re.MULTILINE) == list(CODES)


@pytest.mark.parametrize("code", CODES)
def test_a_section_says_what_it_means_and_shows_it(code: str) -> None:
    assert len(SECTIONS[code].partition("```")[0].split()) > 8
    assert (
        f" [{code}]" in example(code).text
    )  # test_docs.py runs the block, test_without_a_page_to_run what does not run


def test_each_code_is_raised_somewhere() -> None:
    sources = [
        path.read_text(encoding="utf-8")
        for room in ("acep", "learning", "sketches")
        for path in (ROOT / room).rglob("*.py")
    ]
    given = {code for text in sources for code in re.findall(r'\b(?:code|usual)(?:: [\w\[\]]+)? ?= ?"(\w+)"', text)}
    assert set(CODES) <= given


# A page cannot show these by running them: another process, another environment, an exhausted memory.


def used(folder: Path) -> None:
    first, second = (Runs(folder_of(str(folder)), "call", run) for run in map(str, (uuid4(), uuid4())))
    assert (first.begin(), second.begin()) == (1, 2)
    first.require_newest()


def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from acep.spark import get_session

    monkeypatch.setitem(sys.modules, "pyspark", None)
    get_session()


def memory() -> None:
    with memory_errors():
        raise MemoryError


def workers() -> None:
    found = error_in(RuntimeError("ModuleNotFoundError: No module named 'acep'"))
    assert found is not None
    raise found


def test_without_a_page_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[Code, Callable[[], None]] = {
        "state_used": lambda: used(tmp_path),
        "engine_missing": lambda: missing(monkeypatch),
        "engine_memory": memory,
        "engine_workers": workers,
    }
    assert set(calls) == {code for code in CODES if example(code).language == "text"}
    for code, call in calls.items():
        with pytest.raises(AcepError) as caught:
            call()
        shown = re.escape(example(code).text.strip()).replace(r"\.\.\.", ".*")
        assert re.fullmatch(shown, caught.value.render().splitlines()[0]), caught.value.render()
        assert caught.value.code == code


# Where codes are seen --------------------------------------------------------------------------------


def test_the_command_line_shows_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "PATTERN SEQ(", "nowhere.csv"]) == 2
    assert capsys.readouterr().err.startswith("acep: the query ends too early [query_syntax] (line 1, column 13)\n")
    with pytest.raises(SystemExit) as left:
        main(["match", "--nothing"])
    assert left.value.code == 2
    assert capsys.readouterr().err.endswith("[option_invalid]\n")


def test_an_error_of_a_worker_keeps_its_code() -> None:
    error = QueryError("unknown `x`", hint="known: `y`", code="query_name")
    again = error_in(RuntimeError(f"Traceback\nacep.errors.QueryError: {error.render()}\n\tat org.apache"))
    assert again is not None
    assert (again.code, again.hint) == ("query_name", "known: `y`")
    assert again.render() == error.render()
    plain = error_in(RuntimeError("acep.errors.QueryError: no key [k]\n\tat org.apache"))
    assert plain is not None
    assert (plain.code, plain.message) == ("query_invalid", "no key [k]")
