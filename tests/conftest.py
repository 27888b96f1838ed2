"""What tests share: one Spark session, the streams on disk, and how many cases random tests try.

``ACEP_CASES`` multiplies the number of cases of every random test (1 if it is not set), ``ACEP_DATA`` is the folder of
the whole streams; where it has none, tests read what is shipped in ``examples/data``, or stand-ins made by chance.
``ACEP_SLOWEST`` is how many seconds a test may take that is not marked ``long`` (20 if it is not set; 0 for as many as
it likes, as under sanitizers). With ``CI`` set, Hypothesis draws the same cases in every run.
"""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Callable, Generator, Iterator
from itertools import compress
from operator import not_
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from acep.native.compiled import REFERENCE, why_not
from examples.data import MORE, stream
from tests import stand_ins
from tests.case_counts import CASES, CaseCounts
from tests.duration_limit import DurationLimit
from tests.durations import DurationsWriter, passed_tests, settings_of_run
from tests.groups import PiecesOfFiles, group_of, longest_first
from tests.shared_plans import share_plans
from tests.spark.quick_session import java_options, quick_settings, quicken_gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

DURATIONS, STEP = os.environ.get("ACEP_DURATIONS"), os.environ.get("ACEP_STEP", "test")
SLOWEST = float(os.environ.get("ACEP_SLOWEST") or 20)
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
MEMORY = resource.getrlimit(resource.RLIMIT_AS)

os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

# A busy machine is no failure: no deadlines, and no complaint that data are generated slowly.
settings.register_profile("local", deadline=None, max_examples=CASES(100), suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config: pytest.Config) -> None:
    """Where there is no native core the tests run too; elsewhere nothing may be said of it."""
    if why_not() is not None:
        config.addinivalue_line("filterwarnings", f"ignore:{REFERENCE}")
    if SLOWEST:  # registered, it sees the doctests in acep/ too, to which hooks of this file do not apply
        config.pluginmanager.register(DurationLimit(SLOWEST))
    if DURATIONS and not hasattr(config, "workerinput"):  # of several processes only the first one writes
        config.pluginmanager.register(DurationsWriter(Path(DURATIONS), STEP))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Find the tests without a search for garbage, which takes a third of that time and finds none. What is there then
    stays to the end, and no later search looks at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that share the Spark session in one process, and those that start a JVM of their own one after
    the other in another, if tests are spread over several; mark the tests that read streams. Leave out what passed
    before, where a run goes on."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.get_closest_marker("spark") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("spark sessions"))
        if "data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.streams)
    if DURATIONS and os.environ.get("ACEP_RESUME"):
        passed = passed_tests(Path(DURATIONS), STEP, settings_of_run())
        did_pass = [not passed.isdisjoint((item.nodeid, _name_in_group(item))) for item in items]
        config.hook.pytest_deselected(items=[*compress(items, did_pass)])
        items[:] = compress(items, map(not_, did_pass))
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> PiecesOfFiles | None:
    """Hand out pieces of files, where tests of a group are kept together."""
    return PiecesOfFiles(config, log) if config.getvalue("dist") == "loadgroup" else None


def _name_in_group(item: pytest.Item) -> str:
    """Return the name of a test in the reports of pytest-xdist, which adds the group."""
    return f"{item.nodeid}@{group_of(item)}"


@pytest.fixture(autouse=True)
def same_limits() -> Generator[None, None, None]:
    """Lift the limits that a test set on this process: experiments keep to one core and bound their memory, and all
    later tests would run under that."""
    yield
    if CORES is not None:
        os.sched_setaffinity(0, CORES)
    resource.setrlimit(resource.RLIMIT_AS, MEMORY)


@pytest.fixture(scope="session")
def cases() -> CaseCounts:
    """How many cases a random test is to try, of so many that it would try usually."""
    return CASES


@pytest.fixture
def shared_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the matchers of a test share the plans of its queries: a test of plans asks for no such thing."""
    share_plans(monkeypatch)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a stream, by its name: the whole one, what is shipped of it, or a stand-in."""

    def path(name: str) -> Path:
        if (file := stream(name)) is None:
            MORE.append(tmp_path_factory.mktemp("stand_ins"))
            file = stand_ins.write(name, MORE[-1])
        return file

    return path


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of all tests."""
    from acep.spark.session import get_session

    with pytest.MonkeyPatch.context() as monkeypatch:
        quicken_gateway(monkeypatch)
        session = get_session(**quick_settings())
        yield session
        session.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Let a random test that fails say what it had drawn."""
    try:
        return (yield)
    except Exception as error:
        from tests.drawn_values import drawn_values

        if values := drawn_values(error):
            item.add_report_section("call", "values drawn in the", values)
        raise
