"""``acep.replay``: what one call of ``match`` finds, as a stream, at the pace of its clock, and taken up again."""

from __future__ import annotations

import os
import pty
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli.keys import HELP, KeyPause
from acep.errors import AcepError, DataError, QueryError, SnapshotError
from acep.following import replay as replay_module
from acep.streaming.progress import Progress

QUERY = acep.regex("a(b|c)d", within="20 s", by="k", errors=1)
SECOND = 1_000_000_000


def random_events(size: int, seed: int, unit: str = "ns") -> pa.Table:
    """Return events of three keys, some 3 a second, with many equal times."""
    chance = np.random.default_rng(seed)
    ticks = np.sort(chance.integers(0, size * 4, size)) * SECOND // 12
    times = pa.array(ticks).cast(pa.timestamp("ns")).cast(pa.timestamp(unit), safe=False)
    letters = chance.choice(list("abcde"), size).tolist()
    return pa.table({"ts": times, "type": letters, "k": chance.integers(0, 3, size)})


def matches_of(rows: pa.Table) -> list[dict[str, Any]]:
    """Return matches as rows of Python, with bindings as a dict."""
    return [row | {"bindings": dict(row["bindings"]), "key": row.get("key", {})} for row in rows.to_pylist()]


@pytest.mark.parametrize(("unit", "chunk"), [("ns", 1), ("us", 7), ("ms", 20), ("s", 7), ("us", None)])
def test_a_replay_finds_what_match_finds(unit: str, chunk: int | None) -> None:
    table = random_events(60, 3, unit)
    exact = acep.match(table, QUERY)
    done = acep.replay(QUERY, table, chunk=chunk)
    assert matches_of(done.table()) == matches_of(exact.to_arrow())
    assert len(exact) > 10
    assert (done.events, done.matches, done.bundles) == (60, len(exact), len(exact.bundles()))
    assert done.batches == (1 if chunk is None else -(-60 // chunk))
    assert done.report.matches == len(exact)
    assert done.behind == 0


@pytest.mark.parametrize("seed", range(4))
def test_names_order_and_ids_of_columns_are_those_of_match(seed: int) -> None:
    chance = random.Random(seed)
    rows = 40
    table = pa.table(
        {
            "t": [chance.randrange(12) for _ in range(rows)],
            "kind": pa.array(chance.choices("abcd", k=rows)).dictionary_encode(),
            "n": pa.array(chance.sample(range(rows), rows), pa.uint16()),
            "name": [f"event {row}" for row in range(rows)],
        }
    )
    query = acep.regex("ab?c", within=3)
    names = {"ts": "t", "type": "kind", "seq": "n", "id": "name"}
    exact = acep.match(table, query, **names)
    assert len(exact) > 0
    assert matches_of(acep.replay(query, table, chunk=5, **names).table()) == matches_of(exact.to_arrow())


def test_in_the_order_of_the_file_late_events_are_counted(tmp_path: Path) -> None:
    ticks = [3, 1, 5, 4, 9, 2, 12]
    table = pa.table({"ts": ticks, "type": list("abababb")})
    path = tmp_path / "events.parquet"
    pq.write_table(table, path)
    query = acep.regex("ab", within=3)
    done = acep.replay(query, path, chunk=1, watermark=2)
    accepted = table.filter(pa.array([True, True, True, True, True, False, True]))
    assert (done.events, done.late) == (6, 1)
    assert done.table()["end"].to_pylist() == acep.match(accepted, query).to_arrow()["end"].to_pylist()
    assert acep.replay(query, path, chunk=1).late == 0


def test_without_events_there_is_an_empty_result() -> None:
    done = acep.replay(QUERY, random_events(5, 0).slice(0, 0))
    assert (done.events, done.batches, done.matches, done.table().num_rows) == (0, 0, 0, 0)
    assert done.table().column_names == acep.replay(QUERY, random_events(5, 0)).table().column_names


# Pace ----------------------------------------------------------------------------------------------


@dataclass
class Clock:
    """A clock that runs only while a replay waits or works, in place of the module ``time``."""

    now: float = 100.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> float:
        self.now += seconds
        return 0.0

    def working(self, seconds: float) -> Callable[[Progress], None]:
        def tell(_: Progress) -> None:
            self.now += seconds

        return tell


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(replay_module, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.wait))
    return clock


TWO_A_SECOND = pa.table({"ts": pa.array([500 * n for n in range(41)]), "type": ["ab"[n % 2] for n in range(41)]})


@pytest.mark.parametrize("speed", [0.5, 1, 4])
def test_a_paced_replay_takes_as_long_as_its_clock_says(clock: Clock, speed: float) -> None:
    told: list[tuple[float, int]] = []
    query = acep.regex("ab", within="1 s")
    done = acep.replay(
        query, TWO_A_SECOND, unit="ms", speed=speed, tell=lambda progress: told.append((clock.now - 100, progress.rows))
    )
    # An event is there once its time has come, and a micro-batch has those of one second of the replay.
    assert told[-1][0] == 20 / speed
    assert sum(rows for _, rows in told) == 41
    taken = 0
    for seconds, rows in told:
        taken += rows
        assert seconds == 0.5 * (taken - 1) / speed
    assert max(rows for _, rows in told) == max(1, round(2 * speed))
    assert done.behind == 0
    assert matches_of(done.table()) == matches_of(acep.match(TWO_A_SECOND, query, unit="ms").to_arrow())


def test_a_replay_that_cannot_keep_its_pace_says_how_far_it_was_behind(clock: Clock) -> None:
    query = acep.regex("ab", within="1 s")
    done = acep.replay(query, TWO_A_SECOND, unit="ms", speed=1, tell=clock.working(2.0))
    # Each micro-batch but the last has one second of the replay and takes two.
    assert done.behind == 20.5
    assert str(done).endswith("\nthe replay was up to 20.5 s behind its pace")
    assert "pace" not in str(acep.replay(query, TWO_A_SECOND, unit="ms", speed=1))


def test_the_time_of_a_pause_does_not_count(clock: Clock) -> None:
    def wait(seconds: float) -> float:
        clock.now += seconds + 30
        return 30.0

    done = acep.replay(acep.regex("ab", within="1 s"), TWO_A_SECOND, unit="ms", speed=1, wait=wait)
    assert done.behind == 0
    assert clock.now == 100 + 20 + 30 * done.batches


def test_with_a_speed_micro_batches_may_have_a_number_of_events(clock: Clock) -> None:
    told: list[int] = []
    query = acep.regex("ab", within="1 s")
    acep.replay(query, TWO_A_SECOND, unit="ms", speed=2, chunk=30, tell=lambda progress: told.append(progress.rows))
    assert told == [30, 11]
    assert clock.now == 110


@pytest.mark.usefixtures("clock")
def test_the_speed_of_a_replay_is_that_of_its_budget() -> None:
    query = acep.regex("ab", within="1 s")
    told: list[Progress] = []
    for speed in (1, 1e9):
        budget = acep.Budget(cpu=1e-3)
        acep.replay(query, TWO_A_SECOND, unit="ms", speed=speed, chunk=10, budget=budget, tell=told.append)
    assert told[-1].allowance < told[0].allowance


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"speed": 0}, "speed=0 is no factor"),
        ({"speed": float("nan")}, "speed=nan is no factor"),
        ({"speed": True}, "speed=True is no factor"),
        ({"speed": 2}, "the length of a tick of `ts` is not known"),
        ({"speed": 2, "unit": "ms", "budget": acep.Budget(cpu=0.5, speed=3)}, "the budget has speed=3"),
        ({"chunk": 0}, "not a positive number"),
        ({"tell": 3}, "tell= is called after each micro-batch"),
        ({"watermark": "soon"}, "watermark="),
        ({"versions": "nowhere"}, "there is none at"),
        ({"engine": "fast"}, "there is no engine"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AcepError, match=complaint):
        acep.replay(acep.parse("PATTERN SEQ(a x, b y) WITHIN 1000"), TWO_A_SECOND, **options)


# Taking up again -----------------------------------------------------------------------------------


class KilledError(Exception):
    """Ends a replay in the middle."""


UNLINK = Path.unlink


def unlink_but_events(path: Path, missing_ok: bool = False) -> None:
    if path.parent.name == "events":
        raise KilledError
    UNLINK(path, missing_ok)


@pytest.mark.parametrize("last", [1, 3, 5])
@pytest.mark.parametrize("keeps_file", [False, True])
def test_a_replay_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int, keeps_file: bool
) -> None:
    table, folder = random_events(60, 8), tmp_path / "run"

    def kill(progress: Progress) -> None:
        if progress.batch == last:
            raise KilledError

    if keeps_file:  # it was killed before the file of the micro-batch was removed
        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", unlink_but_events)
            with pytest.raises(KilledError):
                acep.replay(QUERY, table, chunk=10, checkpoint=folder)
        assert [path.name for path in (folder / "events").iterdir()] == ["000000.parquet"]
    with pytest.raises(KilledError):
        acep.replay(QUERY, table, chunk=10, checkpoint=folder, tell=kill)
    told: list[int] = []
    done = acep.replay(QUERY, table, chunk=10, checkpoint=folder, tell=lambda progress: told.append(progress.batch))
    assert told == list(range(last + 1, 6))
    exact = acep.match(table, QUERY).to_arrow()
    assert matches_of(done.table()) == matches_of(exact)
    assert (done.events, done.report.events) == (60, 60)
    again = acep.replay(QUERY, table, chunk=10, checkpoint=folder)
    assert (again.batches, again.matches, again.events) == (0, len(exact), 60)
    assert not list((folder / "events").iterdir())


def test_a_replay_syncs_files_only_for_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs, fsync = list[int](), os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (syncs.append(descriptor), fsync(descriptor)))
    events = random_events(60, 3)
    without = acep.replay(QUERY, events, chunk=20)
    assert not syncs
    assert acep.replay(QUERY, events, chunk=20, checkpoint=tmp_path / "checkpoint").table().equals(without.table())
    assert syncs


@pytest.mark.parametrize("change", ["query", "events", "chunk", "speed", "errors"])
def test_a_checkpoint_is_of_one_replay(tmp_path: Path, change: str) -> None:
    table = random_events(20, 8)
    acep.replay(QUERY, table, chunk=10, checkpoint=tmp_path)
    query = {"query": acep.regex("ab", within=5), "errors": acep.regex("a(b|c)d", within="20 s", by="k")}
    options: dict[str, Any] = {"chunk": 11 if change == "chunk" else 10, "speed": 1e6 if change == "speed" else None}
    events = table.slice(1) if change == "events" else table
    with pytest.raises((SnapshotError, QueryError, DataError)):
        acep.replay(query.get(change, QUERY), events, checkpoint=tmp_path, **options)


def test_newer_versions_of_the_query_are_taken(tmp_path: Path) -> None:
    query = "PATTERN SEQ({} x, {} y) WHERE skip_till_next_match(x, y) {{ }} WITHIN 1"
    (tmp_path / "0001.sase").write_text(f"-- since: 10\n{query.format('b', 'a')}")
    table = pa.table({"ts": list(range(20)), "type": ["ab"[n % 2] for n in range(20)]})
    done = acep.replay(acep.parse(query.format("a", "b")), table, versions=tmp_path)
    ends = done.table()["end"].to_pylist()
    assert [end for end in ends if end < 10] == [1, 3, 5, 7, 9]
    assert [end for end in ends if end > 11] == [12, 14, 16, 18]


# Keys ----------------------------------------------------------------------------------------------


class Keyboard:
    """A terminal whose keys a test presses."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.file = os.fdopen(slave, "r")

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())


@pytest.fixture
def keyboard() -> Iterator[Keyboard]:
    keyboard = Keyboard()
    yield keyboard
    keyboard.file.close()
    os.close(keyboard.master)


def test_keys_pause_step_and_stop(keyboard: Keyboard) -> None:
    notes = list[str]()
    with KeyPause(notes.append, keyboard.file) as pause:
        assert notes == [HELP]
        assert pause.wait(0.0) == 0.0
        keyboard.press("n")
        assert abs(pause.wait(0.0)) < 1  # this micro-batch at once, and no further one
        assert notes[-1] == f"paused; {HELP}"
        keyboard.press("n")
        pause.wait(0.0)
        keyboard.press(" ")
        pause.wait(0.0)
        assert notes[-1] == HELP
        keyboard.press("x  ")  # another key, and a pause of no length
        pause.wait(0.01)
        assert notes[-3:] == [HELP, f"paused; {HELP}", HELP]
        keyboard.press("q")
        with pytest.raises(KeyboardInterrupt):
            pause.wait(60.0)


def test_a_step_before_its_time_shifts_the_clock(keyboard: Keyboard) -> None:
    with KeyPause(lambda _: None, keyboard.file) as pause:
        keyboard.press("n")
        paused = pause.wait(1000.0)
    assert -1000 <= paused < -900


def test_where_there_is_no_terminal_keys_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("q q q")
    notes: list[str] = []
    with (tmp_path / "input").open() as file, KeyPause(notes.append, file) as pause:
        assert pause.wait(0.001) == 0.0
    assert notes == []
