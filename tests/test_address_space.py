"""`ulimit -v` with the command line: right matches, or one line that says how much is needed; never a traceback, and
never an end without a message. Each size is tried in a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from acep.address_space import MINIMUM
from tests.thinned import thinned, thinned_product

_native = pytest.importorskip("acep.native._native")
pytestmark = pytest.mark.skipif(bool(_native.sanitizers), reason="sanitizers reserve address space without end")

MB = 1 << 20
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"
QUERY = "PATTERN SEQ(a x, b y) WITHIN 9"
COMMANDS = {"match": ["match", QUERY], "lint": ["lint", QUERY], "why": ["why", QUERY, "--key", "k=1"]}


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.csv"
    file.write_text("ts,type,k\n1,a,1\n2,b,1\n")
    return file


def run(arguments: list[str], size: int) -> subprocess.CompletedProcess[str]:
    """Run the command line in an address space of ``size`` bytes."""
    return subprocess.run(
        [sys.executable, "-m", "acep.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )


TOO_SMALL = (192 * MB, 256 * MB, MINIMUM - MB)


@pytest.mark.parametrize(("command", "size"), thinned_product([*COMMANDS], TOO_SMALL, every=4))
def test_too_small_an_address_space_is_refused_in_two_lines(command: str, size: int, events: Path) -> None:
    process = run([*COMMANDS[command], str(events)], size)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.splitlines() == [
        f"acep: an address space of {size // MB} MB is too small for this command [engine_memory]",
        f"hint: at least {MINIMUM // MB} MB, and more for many matches: ulimit -v {MINIMUM // 1024}",
    ]


@pytest.mark.parametrize("size", thinned([MINIMUM, MINIMUM + 64 * MB, 2 * MINIMUM], 2))
def test_at_the_least_size_a_command_works(size: int, events: Path) -> None:
    process = run([*COMMANDS["match"], str(events)], size)
    assert (process.returncode, process.stderr) == (0, "")
    assert '"bindings": {"x": [0], "y": [1]}' in process.stdout


@pytest.mark.long
@pytest.mark.parametrize("size", [MINIMUM + 64 * MB])
def test_too_many_matches_for_the_address_space_are_one_message(size: int, tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    file.write_text("ts,type\n" + "".join(f"{n},a\n" for n in range(40)))
    process = run(["match", "PATTERN a+ x[] WHERE skip_till_any_match(x[]) OUTPUT EARLIEST MAXIMAL", str(file)], size)
    assert process.returncode == 2
    assert process.stderr.startswith("acep: ")
    assert "[engine_memory]" in process.stderr
    assert "Traceback" not in process.stderr


def run_python(code: str, size: int) -> subprocess.CompletedProcess[str]:
    """Run Python code in an address space of ``size`` bytes."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )


@pytest.mark.parametrize("size", TOO_SMALL)
@pytest.mark.parametrize(
    "code", ["import acep; acep.match", "from acep import Matcher", "import acep; acep.lint", "import acep; acep.plots"]
)
def test_in_python_too_small_an_address_space_is_an_error(code: str, size: int) -> None:
    process = run_python(code, size)
    assert process.returncode == 1
    message = f"acep.errors.EngineError: an address space of {size // MB} MB is too small for acep [engine_memory]"
    assert process.stderr.splitlines()[-2:] == [
        message,
        f"hint: at least {MINIMUM // MB} MB, and more for many matches: ulimit -v {MINIMUM // 1024}",
    ]
    assert "OpenBLAS" not in process.stderr


def test_in_python_what_needs_no_array_works_in_less() -> None:
    code = "import acep; print(acep.parse('PATTERN SEQ(a x, b y)')); print(acep.QueryError.__name__)"
    process = run_python(code, 192 * MB)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.endswith("QueryError\n")


def test_in_python_a_query_runs_at_the_least_size() -> None:
    code = "import acep; print(acep.match({'ts': [1, 2], 'type': ['a', 'b']}, 'PATTERN SEQ(a x, b y)').count())"
    process = run_python(code, MINIMUM)
    assert (process.returncode, process.stdout, process.stderr) == (0, "1\n", "")


def test_the_page_says_how_much_is_needed() -> None:
    assert f"needs {MINIMUM // MB} MB of address space" in PAGE.read_text(encoding="utf-8").replace("\n", " ")
