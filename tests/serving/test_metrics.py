"""The figures of a stream on a port: true, complete, on this machine alone, and gone when the stream ends."""

from __future__ import annotations

import math
import re
import socket
import urllib.error
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest
from pyarrow import csv

import acep
from acep.cli import main
from acep.errors import DataError
from acep.serving.metrics import FIGURES, Metrics, figures_of
from acep.streaming.progress import Progress

pytest.importorskip("prometheus_client")

TABLE = pa.table({"ts": list(range(60)), "type": ["abc"[n % 3] for n in range(60)]})
QUERY = acep.regex("ab", within=5)


def fetch(url: str) -> dict[str, float]:
    """Return the figures that are served, by name."""
    with urlopen(url, timeout=10) as answer:  # noqa: S310 - the address is one of this test
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if not line.startswith("#"))}


def test_the_figures_are_those_of_the_progress() -> None:
    seen: list[tuple[Progress, dict[str, float]]] = []
    with Metrics(0) as metrics:

        def tell(progress: Progress) -> None:
            metrics.tell(progress)
            seen.append((progress, fetch(metrics.url)))

        assert fetch(metrics.url) == {}
        done = acep.replay(QUERY, TABLE, chunk=20, tell=tell)
    assert len(seen) == done.batches == 3
    grows = {figure.name: figure.grows for figure in FIGURES}
    for number, (progress, served) in enumerate(seen):
        seconds = sum(earlier.seconds for earlier, _ in seen[: number + 1])
        figures = figures_of(progress, number + 1, seconds)
        names = {f"acep_{name}_total" if grows[name] else f"acep_{name}": name for name in figures}
        assert served.keys() == names.keys()
        assert all(math.isclose(served[name], figures[names[name]]) for name in names)
    assert (seen[-1][1]["acep_events_total"], seen[-1][1]["acep_matches_total"]) == (60, done.matches)


def test_each_figure_has_a_meaning_and_is_served() -> None:
    progress = Progress(0, 5, 1, 2, held=3, state=40, watermark="", reference=0, rows=6, seconds=1, lag=2, age=3)
    figures = figures_of(progress) | {"allowed_work": 0}
    assert [figure.name for figure in FIGURES] == sorted(figures, key=[figure.name for figure in FIGURES].index)
    assert len(figures) == len(FIGURES) == len({figure.meaning for figure in FIGURES})


def test_under_a_budget_the_figures_tell_what_was_given_up() -> None:
    with Metrics(0) as metrics:
        acep.replay(acep.regex("a(b|c)+c", within=50), TABLE, budget=acep.Budget(work=2), tell=metrics.tell)
        served = fetch(metrics.url)
    assert served["acep_shed_total"] > 0
    assert served["acep_work_total"] > 0
    assert served["acep_allowed_work_total"] > 0
    assert 0 <= served["acep_recall_low"] <= served["acep_recall_high"] <= 1


def test_only_this_machine_reaches_the_port_and_only_while_the_stream_runs() -> None:
    with Metrics(0) as metrics:
        assert metrics.url.startswith("http://127.0.0.1:")
        with (
            pytest.raises(DataError, match=r"metrics cannot be served on 127\.0\.0\.1:\d+: .*in use"),
            Metrics(int(metrics.url.split(":")[2].split("/")[0])),
        ):
            pass
        assert fetch(metrics.url) == {}
    with pytest.raises(urllib.error.URLError):
        fetch(metrics.url)


@pytest.mark.parametrize("port", [-1, 65536, "x", True, 1.5])
def test_what_is_no_port_is_refused(port: object) -> None:
    with pytest.raises(DataError, match="is no port"):
        Metrics(port)  # type: ignore[arg-type]


def test_an_address_that_is_not_of_this_machine_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be served"), Metrics(0, "192.0.2.1"):
        pass


def test_a_client_that_sends_nothing_stops_neither_figures_nor_the_end() -> None:
    with Metrics(0) as metrics:
        port = int(metrics.url.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port)):
            assert fetch(metrics.url) == {}


# The command line ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["follow", "replay"])
def test_a_command_serves_the_figures_of_its_stream(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    csv.write_csv(TABLE, folder / "1.csv")
    served: list[dict[str, float]] = []
    tell = Metrics.tell

    def tell_and_fetch(metrics: Metrics, progress: Progress) -> None:
        tell(metrics, progress)
        served.append(fetch(metrics.url))

    monkeypatch.setattr(Metrics, "tell", tell_and_fetch)
    args = ["re:ab", "in", "--within", "5", "--metrics", "0", "--watch"]
    more = ["--state", "s", "--output", "o", "--end"] if command == "follow" else ["--count"]
    assert main([command, *args, *more]) == 0
    assert served[-1]["acep_events_total"] == 60
    err = capsys.readouterr().err
    assert re.search(r"^acep: metrics at http://127\.0\.0\.1:\d+/metrics$", err, re.MULTILINE)
    assert "micro-batch 0: 60 events" in err


@pytest.mark.parametrize(
    ("address", "complaint"),
    [("x", "there is no port"), ("99999", "is no port"), ("nowhere.invalid:0", "metrics cannot be served")],
)
def test_a_wrong_address_is_explained(
    address: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    csv.write_csv(TABLE, tmp_path / "1.csv")
    assert main(["replay", "re:ab", "1.csv", "--within", "5", "--metrics", address]) == 2
    assert complaint in capsys.readouterr().err
