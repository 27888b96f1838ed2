"""A test that takes long without saying so fails, whatever takes long in it, and however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.duration_limit import Clocks, DurationLimit, read_clocks
from tests.thinned import thinned_product

ROOT = Path(__file__).resolve().parents[1]
WORK = '''
import subprocess
import sys
import time
import pytest

def work(seconds):
    """Take processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
'''


def run(pytester: pytest.Pytester, *sources: str, read: Callable[..., Clocks] = read_clocks) -> list[str]:
    """Run tests in this process, each of which may take 0.2 s. Return the complaints, without the name of the test."""
    pytester.makepyfile(test_them=WORK + "\n".join(sources))
    limit = DurationLimit(0.2, read)
    reports = pytester.inline_run("--doctest-modules", "-p", "no:cacheprovider", plugins=[limit]).getreports()
    return [str(each.longrepr) for each in reports if isinstance(each, pytest.TestReport) and each.failed]


def test_setup_call_and_teardown_count_together(pytester: pytest.Pytester) -> None:
    fixture = "@pytest.fixture\ndef resource():\n  work({0})\n  yield\n  work({0})"
    test = "def test_it(resource): work({})"
    assert run(pytester, fixture.format(0.02), test.format(0.02)) == []
    (complaint,) = run(pytester, fixture.format(0.1), test.format(0.05))
    assert complaint.startswith("test_them.py::test_it: it took ")
    assert "(setup 0.1 s, call 0." in complaint
    assert ", teardown 0.1 s), and a test of `make test` may take 0.2 s" in complaint


def test_the_message_says_which_mark_and_which_command(pytester: pytest.Pytester) -> None:
    (complaint,) = run(pytester, "def test_it(): work(0.3)")
    for text in ("mark the test `long`", "`make test-long` and `.ci/run` run it", "`whole` only `make test-all`"):
        assert text in complaint


@pytest.mark.parametrize("mark", ["long", "whole"])
def test_what_is_marked_may_take_long(pytester: pytest.Pytester, mark: str) -> None:
    pytester.makeini("[pytest]\nmarkers =\n  long\n  whole")
    fixture = "@pytest.fixture(scope='module')\ndef resource(): work(0.3)"
    assert (
        run(pytester, fixture, f"@pytest.mark.{mark}\ndef test_it(resource): work(0.3)", "def test_next(): pass") == []
    )


@pytest.mark.parametrize(
    ("seconds", "scope"),
    thinned_product([(0.3, 0.0), (0.0, 0.3), (0.15, 0.15)], ["class", "module", "session"], every=4),
)
def test_a_fixture_that_tests_share_counts_apart(
    pytester: pytest.Pytester, seconds: tuple[float, float], scope: str
) -> None:
    setup, teardown = seconds
    fixture = f"@pytest.fixture(scope='{scope}')\ndef resource():\n  work({setup})\n  yield\n  work({teardown})"
    tests = "class TestIt:\n  def test_a(self, resource): work(0.1)\n  def test_b(self, resource): work(0.1)"
    (complaint,) = run(pytester, fixture, tests)
    assert f"the fixture `resource` of its {scope} took 0.3 s (setup " in complaint
    assert ("test_a" if setup == 0.3 else "test_b") in complaint.partition(":: ")[0]


def test_a_fixture_inside_another_counts_once(pytester: pytest.Pytester) -> None:
    inner = "@pytest.fixture(scope='module')\ndef inner(): work(0.15)"
    outer = "@pytest.fixture(scope='module')\ndef outer(request):\n  request.getfixturevalue('inner')\n  work(0.1)"
    assert run(pytester, inner, outer, "def test_it(outer): work(0.1)") == []


def test_the_session_of_spark_is_of_no_test(pytester: pytest.Pytester) -> None:
    fixture = "@pytest.fixture(scope='session')\ndef spark(): work(0.3)"
    assert run(pytester, fixture, "def test_it(spark): pass") == []


def test_processes_that_a_test_starts_count(pytester: pytest.Pytester) -> None:
    script = "import time\nwhile time.process_time() < 0.4: pass"
    (complaint,) = run(pytester, f"def test_it(): subprocess.run([sys.executable, '-c', {script!r}], check=True)")
    assert "test_it: it took" in complaint


def test_processes_that_run_count_with_spark(pytester: pytest.Pytester) -> None:
    """As the JVM does, which outlives the test."""
    pytester.makeini("[pytest]\nmarkers = spark")
    script = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"
    start = f"jvm = subprocess.Popen([sys.executable, '-c', {script!r}], stdin=-1, stdout=-1)"
    test = f"@pytest.mark.spark\ndef test_it():\n  global jvm\n  {start}\n  jvm.stdout.readline()"
    end = "@pytest.fixture(scope='module', autouse=True)\ndef end():\n  yield\n  jvm.communicate(b'\\n')"
    (complaint,) = run(pytester, test, end, read=without_idle)
    assert "test_it: it took" in complaint


def test_examples_in_docstrings_count(pytester: pytest.Pytester) -> None:
    (complaint,) = run(pytester, 'def f():\n  """Do it.\n\n  >>> work(0.3)\n  """')
    assert complaint.startswith("test_them.py::test_them.f: it took 0.3 s")
    assert "move it into a test" in complaint


@pytest.mark.long
def test_examples_of_every_room_are_seen(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks of a conftest.py see only the tests beside it; the limit is for all."""
    (pytester.mkdir("acep") / "room.py").write_text(f'"""A room.\n\n{BUSY}"""\n')
    monkeypatch.setenv("ACEP_SLOWEST", "0.2")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("ACEP_DURATIONS", "ACEP_RESUME", "ACEP_STEP"):  # those of the run around this test
        monkeypatch.delenv(name, raising=False)
    result = pytester.runpytest_subprocess("-p", "tests.conftest", "--doctest-modules", "-q", "acep")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["acep/room.py::room: it took *"])


BUSY = ">>> import time\n>>> end = time.process_time() + 0.4\n>>> while time.process_time() < end: pass\n"


def without_idle(*, uses_spark: bool = False) -> Clocks:
    """Read the clocks of a machine of which no core is ever idle."""
    return read_clocks(uses_spark=uses_spark)._replace(idle=0)


def test_waiting_counts_only_while_a_core_is_idle(pytester: pytest.Pytester) -> None:
    hours = count(step=3_600)
    wait, work = "def test_wait(): time.sleep(0.3)", "def test_work(): work(0.05)"

    def read_on_busy_machine(*, uses_spark: bool) -> Clocks:
        """Each step of a test waits an hour for a core."""
        return without_idle(uses_spark=uses_spark)._replace(wall=next(hours))

    def read_on_idle_machine(*, uses_spark: bool) -> Clocks:
        return read_clocks(uses_spark=uses_spark)._replace(idle=2 * time.perf_counter())

    assert run(pytester, wait, work, read=read_on_busy_machine) == []
    (complaint,) = run(pytester, wait, read=read_on_idle_machine)
    assert "test_wait: it took 0.3 s" in complaint


def test_a_test_that_fails_by_itself_is_not_complained_of(pytester: pytest.Pytester) -> None:
    (text,) = run(pytester, "def test_it():\n  work(0.3)\n  assert False, 'by itself'")
    assert "by itself" in text
