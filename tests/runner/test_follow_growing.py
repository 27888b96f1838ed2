"""Files that grow are followed: each whole line is taken once, over rotation, truncation and restarts."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import acep
from acep.cli import main
from acep.errors import AcepError, DataError, DataWarning, SnapshotError
from acep.following import growing_files
from acep.serving.metrics import figures_of
from tests.runner.streams import Stream, lines_of, the_same

AB = acep.parse("PATTERN SEQ(a x, b y) WHERE [k] WITHIN 8")


class Log(Stream):
    """A log that grows, a follower of it, and all lines that were written to it."""

    def __init__(self, root: Path, query: Any = AB, name: str = "app.csv", **options: Any) -> None:
        super().__init__(root, query, growing=True, **options)
        self.path = self.events / name
        self.header = "ts,type,k\n" if name.endswith(".csv") else ""
        self.clock = 0
        self.rows: list[tuple[int, str, int]] = []

    def follow(self, **more: Any) -> acep.Followed:
        folder, self.events = self.events, self.path
        try:
            return super().follow(**more)
        finally:
            self.events = folder

    def grow(self, n_lines: int = 3) -> None:
        """Write lines, in a new file with its header."""
        is_new = not self.path.exists() or not self.path.stat().st_size
        with self.path.open("a") as log:
            log.write(self.header if is_new else "")
            for _ in range(n_lines):
                self.clock += 1
                row = (self.clock, "ab"[self.clock % 2], self.clock % 3)
                self.rows.append(row)
                log.write(self.line(row))

    def line(self, row: tuple[int, str, int]) -> str:
        if self.header:
            return ",".join(map(str, row)) + "\n"
        return json.dumps(dict(zip(("ts", "type", "k"), row, strict=True))) + "\n"

    def rotate(self, end: str = ".1") -> Path:
        """Rename the file."""
        return self.path.rename(f"{self.path}{end}")

    def truncate(self, copy: str | None = None) -> None:
        if copy is not None:
            shutil.copy(self.path, f"{self.path}{copy}")
        os.truncate(self.path, 0)

    def is_exact(self, *, has_matches: bool = True) -> bool:
        """Whether the results are those of all lines at once."""
        table = {
            name: list(column) for name, column in zip(("ts", "type", "k"), zip(*self.rows, strict=True), strict=True)
        }
        exact = lines_of(acep.match(table, self.query))
        return bool(exact) == has_matches and the_same(self.lines(), exact)


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError


@pytest.fixture(params=["app.csv", "app.jsonl"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    return Log(tmp_path, name=request.param)


def test_lines_are_taken_as_they_come(log: Log) -> None:
    for _ in range(5):
        log.grow(4)
        assert log.follow().report.events == log.clock
    assert log.follow().batches == 0
    done = log.follow(end=True)
    assert done.ended
    assert log.is_exact()


def test_a_line_waits_for_its_end(log: Log) -> None:
    log.grow()
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-4])
    assert log.follow().report.events == 2
    assert log.follow().batches == 0
    with log.path.open("ab") as file:
        file.write(whole[-4:])
    assert log.follow().report.events == 3


def test_at_the_end_a_last_line_without_its_end_is_taken(log: Log) -> None:
    log.grow()
    log.path.write_bytes(log.path.read_bytes()[:-1])
    assert log.follow().report.events == 2
    assert log.follow(end=True).report.events == 3


def test_at_the_end_half_a_line_is_refused(log: Log) -> None:
    log.grow()
    log.path.write_bytes(log.path.read_bytes()[:-4])
    with pytest.raises(DataError, match=rf"`{log.path}`, line {4 if log.header else 3}"):
        log.follow(end=True)
    assert log.follow().report.events == 2


def test_a_header_waits_for_its_end(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for text in ("ts,ty", "pe,k", "\n", "1,a,1"):
        with log.path.open("a") as file:
            file.write(text)
        assert log.follow().batches == 0
    with log.path.open("a") as file:
        file.write("\n2,b,1\n")
    assert log.follow(end=True).report.matches == 1


@pytest.mark.parametrize("looks", [True, False])
def test_a_rotated_file_is_read_to_its_end(looks: bool, log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    log.rotate()
    if looks:  # between the old name and the new file
        assert log.follow().report.events == 6
    log.grow()
    assert log.follow().report.events == 9
    with Path(f"{log.path}.1").open("a") as old:  # a writer that has not opened the new file yet
        old.write(log.line((9, "b", 0)))
    assert log.follow(watermark=0).report.events == 10


@pytest.mark.parametrize("name", ["{}.1", "{}-20260131", "{}.2026-01-31", "old.bak"])
def test_a_rotated_file_is_known_under_any_name(name: str, log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    log.path.rename(log.path.with_name(name.format(log.path.name)))
    log.grow()
    done = log.follow(end=True)
    assert (done.report.events, done.gaps) == (9, ())
    assert log.is_exact()


def test_several_rotations_between_two_looks(log: Log) -> None:
    log.grow()
    log.follow()
    for number in range(12, 0, -1):
        log.grow()
        log.rotate(f".{number}")
    log.grow()
    done = log.follow(end=True)
    assert (done.report.events, done.report.late, done.gaps) == (log.clock, 0, ())
    assert log.is_exact()


def test_rotated_files_of_before_the_first_start_are_not_read_and_named(log: Log) -> None:
    log.grow()
    log.rotate()
    log.rows.clear()
    log.grow()
    with pytest.warns(DataWarning, match=rf"before the first start are not read: `{log.path.name}\.1`"):
        assert log.follow().report.events == 3
    with warnings.catch_warnings(action="error"):
        log.grow()
        assert log.follow(end=True).report.events == 6


def test_a_rotated_file_may_go_once_it_was_read(log: Log) -> None:
    log.grow()
    log.follow()
    old = log.rotate()
    log.grow()
    log.follow()
    old.unlink()
    log.grow()
    with warnings.catch_warnings(action="error"):
        assert log.follow(end=True).gaps == ()
    assert log.is_exact()


def test_a_rotated_file_that_is_gone_too_early_is_announced(log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    log.rotate().unlink()
    log.rows = log.rows[:3]
    log.grow()
    progress: list[acep.Progress] = []
    with pytest.warns(DataWarning, match="(is gone|or written anew).*: . lines, .* were taken of it") as said:
        done = log.follow(end=True, tell=progress.append)
    assert len(said) == len(done.gaps) == progress[-1].gaps == figures_of(progress[-1])["gaps"] == 1
    assert "1 gap: lines could not be read" in str(progress[-1])
    assert done.report.events == 6
    assert "1 gap" in str(done)


def test_a_rotated_file_that_is_compressed_too_early_is_announced(log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    log.rotate(".1.gz").write_bytes(b"\x1f\x8b")
    log.grow()
    with pytest.warns(DataWarning, match="lines that were written to it after that"):
        log.follow(end=True)


def test_the_copy_of_a_truncated_file_is_read_to_its_end(log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    log.truncate(copy=".1")
    log.grow(20)  # more bytes than were taken before
    with warnings.catch_warnings(action="error"):
        assert log.follow(end=True).gaps == ()
    assert log.is_exact()


def test_a_truncated_file_that_was_read_to_its_end_is_announced_too(log: Log) -> None:
    log.grow()
    log.follow()
    log.truncate()
    with pytest.warns(DataWarning, match="was truncated"):
        assert len(log.follow().gaps) == 1
    log.grow(1)
    with warnings.catch_warnings(action="error"):
        assert log.follow(end=True).report.events == 4
    assert log.is_exact(has_matches=False)


def test_the_exit_status_says_that_lines_could_not_be_read(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    log.grow()
    words = ["follow", "PATTERN SEQ(a x, b y) WHERE [k] WITHIN 8", str(log.path), "--once"]
    words += ["--state", str(log.state), "--output", str(log.found)]
    assert main(words) == 0
    log.truncate()
    assert main(words) == 4
    assert "not all lines could be read: 1 gap" in capsys.readouterr().err
    assert main(words) == 0


def test_a_gap_after_one_line_says_one_line(tmp_path: Path) -> None:
    log = Log(tmp_path, name="app.jsonl")
    log.grow(1)
    log.follow()
    log.path.unlink()
    with pytest.warns(DataWarning, match="is gone, .*: 1 line, "):
        log.follow()


@pytest.mark.parametrize("n_lines", [1, 30])
def test_lines_that_are_truncated_before_they_are_read_are_announced(n_lines: int, log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    log.truncate()
    log.rows = log.rows[:3]
    log.grow(n_lines)
    with pytest.warns(DataWarning, match="was truncated"):
        done = log.follow(end=True)
    assert done.report.events == 3 + n_lines
    assert len(done.gaps) == 1
    assert log.is_exact(has_matches=n_lines > 1)


def test_a_truncation_after_nothing_but_the_header_was_seen(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.grow()
    log.follow()
    log.rotate()
    log.path.write_text(log.header)
    log.grow(1)
    log.follow()
    log.rotate(".2")
    log.path.write_text(log.header)
    with Path(f"{log.path}.2").open("a") as old:
        log.rows.append((5, "a", 1))
        old.write("5,a,1\n")
    log.clock = 5
    log.follow()  # the position in the new file is behind its header
    log.grow()
    log.truncate(copy=".3")
    log.grow()
    assert log.follow(end=True).gaps == ()
    assert log.is_exact()


def test_lines_that_come_late_into_a_rotated_file_without_rows(tmp_path: Path) -> None:
    """It was made and rotated between two looks, and its writer had not begun."""
    log = Log(tmp_path)
    log.grow()
    log.follow()
    log.rotate(".2")
    log.path.write_text(log.header)
    log.rotate(".1")
    log.path.write_text(log.header)
    with Path(f"{log.path}.2").open("a") as old:
        log.rows.append((4, "a", 1))
        old.write("4,a,1\n")
    assert log.follow().report.events == 4
    with Path(f"{log.path}.1").open("a") as old:
        log.rows += [(5, "b", 1), (6, "a", 2)]
        old.write("5,b,1\n6,a,2\n")
    assert log.follow().report.events == 6
    log.clock = 6
    log.grow()
    assert log.follow(end=True).report.events == 9
    assert log.is_exact()


def test_a_rotated_file_that_is_unpacked_is_not_read_again(log: Log) -> None:
    log.grow()
    log.follow()
    text = log.path.read_bytes()
    log.rotate(".1")
    log.grow()
    log.follow()
    Path(f"{log.path}.1").unlink()
    log.follow()
    (log.events / f"{log.path.name}.3").write_bytes(text)
    log.grow()
    assert log.follow(end=True).report.events == 9


def test_the_copy_of_a_new_file_is_not_one_more_file(log: Log) -> None:
    """The new file was not read yet, and is copied and truncated only after the look."""
    log.grow()
    log.follow()
    log.rotate(".2")
    log.grow()
    shutil.copy(log.path, f"{log.path}.1")
    assert log.follow().report.events == 6
    log.grow()
    Path(f"{log.path}.1").write_bytes(log.path.read_bytes())
    os.truncate(log.path, 0)
    log.grow()
    assert log.follow(end=True).report.events == 12
    assert log.is_exact()


def test_a_file_that_is_restored_from_a_copy_goes_on(log: Log) -> None:
    log.grow()
    log.follow()
    shutil.copy(log.path, log.events / "draft.tmp")
    log.path.unlink()
    (log.events / "draft.tmp").rename(log.path)
    log.grow()
    assert log.follow(end=True).report.events == 6


@pytest.mark.parametrize("change", ["nothing", "rotated", "truncated"])
def test_a_micro_batch_that_is_begun_again_reads_the_same_lines(change: str, log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep.following.follower.step_bucket", fail)
        with pytest.raises(RuntimeError):
            log.follow()
    if change == "rotated":
        log.rotate().unlink()
    elif change == "truncated":
        log.truncate()
    log.grow()
    with warnings.catch_warnings(action="ignore"):  # nobody knows whether more was written
        done = log.follow(end=True)
    assert done.report.events == 9
    assert bool(done.gaps) == (change != "nothing")
    assert log.is_exact()


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_copy_that_is_damaged_is_made_again_or_refused(damage: str, log: Log) -> None:
    log.grow()
    log.follow()
    log.grow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep.following.follower.step_bucket", fail)
        with pytest.raises(RuntimeError):
            log.follow()
    (copy,) = (log.state / growing_files.COPIES).iterdir()
    old = log.rotate()
    log.grow()
    text = old.read_bytes()
    for content, events in ((text[:-5], None), (text, 9)):
        old.write_bytes(content)
        copy.write_bytes(copy.read_bytes()[:-2]) if damage == "cut" else copy.unlink(missing_ok=True)
        if events is None:
            with pytest.raises(
                DataError, match="are gone or were changed, and their events are not matched yet"
            ) as wrong:
                log.follow()
            assert "plans/1" in str(wrong.value.hint)
        else:
            assert log.follow(end=True).report.events == events
    assert log.is_exact()


@pytest.mark.long
def test_a_bound_of_bytes_cuts_micro_batches(log: Log) -> None:
    log.grow(400)
    done = log.follow(max_bytes=1024)
    assert done.batches > 3
    assert done.report.events == 400
    log.rotate()
    log.grow(100)
    log.rotate(".0")
    log.grow(100)
    done = log.follow(max_bytes="1 kB", end=True)
    assert done.report.events == 600
    assert done.report.late == 0
    assert log.is_exact()


def test_a_row_that_is_longer_than_the_bound_is_taken(tmp_path: Path) -> None:
    log = Log(tmp_path, name="app.jsonl")
    log.path.write_text(
        json.dumps({"ts": 1, "type": "a", "k": 1, "text": "x" * 5000}) + '\n{"ts": 2, "type": "b", "k": 1}\n'
    )
    assert log.follow(max_bytes=1024, end=True).report.matches == 1
    other = Log(tmp_path / "other", name="app.jsonl")
    shutil.copy(log.path, other.path)
    with pytest.raises(DataError, match=r"line 1 is longer than 2,000 bytes"):
        other.follow(max_bytes=1024, max_line=2000)


def test_a_last_line_that_is_longer_than_the_bound_waits_for_its_end(tmp_path: Path) -> None:
    log = Log(tmp_path, name="app.jsonl")
    log.grow(2)
    with log.path.open("a") as file:
        file.write(json.dumps({"ts": 3, "type": "a", "k": 1, "text": "x" * 5000}))
    assert log.follow(max_bytes=1024).report.events == 2
    done = log.follow(max_bytes=1024, end=True)
    assert done.ended
    assert done.report.events == 3


WRITER = """
import sys, time
from pathlib import Path
log, n_lines = Path(sys.argv[1]), int(sys.argv[2])
header = "ts,type,k\\n" if log.suffix == ".csv" else ""
rotations, file = 0, log.open("w")
file.write(header)
for ts in range(1, n_lines + 1):
    kind, key = "ab"[ts % 2], ts % 3
    file.write(f"{ts},{kind},{key}\\n" if header else f'{{"ts": {ts}, "type": "{kind}", "k": {key}}}\\n')
    if ts % 7 == 0:
        file.flush()
    if ts == 20:
        sys.stdin.readline()  # the follower has begun
    if ts % 40 == 0:
        time.sleep(0.005)
    if ts % 150 == 0:  # as logrotate does: the names first, the writer later
        rotations += 1
        log.rename(f"{log}.{10_000 - rotations}")
        if rotations % 2:
            time.sleep(0.002)
        file.close()
        file = log.open("w")
        file.write(header)
file.close()
"""


@pytest.mark.long
def test_a_writer_that_does_not_wait(log: Log) -> None:
    """It writes and rotates while the folder is listed and files are read."""
    n_lines = 3000
    log.rows = [(ts, "ab"[ts % 2], ts % 3) for ts in range(1, n_lines + 1)]
    command = [sys.executable, "-c", WRITER, str(log.path), str(n_lines)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as writer:
        while not log.follow().batches:
            pass
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
        n_looks = 0
        while writer.poll() is None:
            n_looks += log.follow().batches
        assert writer.returncode == 0
    done = log.follow(end=True)
    assert n_looks > 1
    assert (done.report.events, done.report.late, done.gaps) == (n_lines, 0, ())
    assert log.is_exact()


def test_cells_with_line_ends_are_whole(tmp_path: Path) -> None:
    log = Log(tmp_path)
    texts = ["ts,type,k,text\n1,a,1,", '"x\n', "y,", '2\n"', '\n2,b,1,"""\n"""\n', '3,b,1,"open\n', "4,b,1,x\n"]
    events = []
    for text in texts[:5]:
        with log.path.open("a") as file:
            file.write(text)
        events.append(log.follow().report.events)
    assert events == [0, 0, 0, 0, 2]
    with log.path.open("a") as file:
        file.write(texts[5])
    assert log.follow().batches == 0  # the cell may go on
    with log.path.open("a") as file:
        file.write(texts[6])
    with pytest.raises(DataError, match=r"line 7: a quotation mark begins a cell and is not closed"):
        log.follow()


def test_a_line_in_an_error_is_that_of_the_file(log: Log) -> None:
    log.grow()
    log.follow()
    log.grow(1)
    with log.path.open("a") as file:
        file.write("x,a,1\n" if log.header else '{"ts": "x", "type": "a", "k": 1}\n')
    with pytest.raises(DataError, match=rf"`{log.path}`, line {6 if log.header else 5}: `ts` is (not a time|text)"):
        log.follow()


def test_bad_lines_are_skipped_up_to_a_share_of_all_lines(log: Log) -> None:
    options = {"skip_bad_lines": True, "max_skipped": 0.1}
    log.grow(20)
    log.follow(**options)
    for n_bad in (1, 2):
        with log.path.open("a") as file:
            file.write("no event\n")
        done = log.follow(**options)
        assert done.bad.count == 1
        assert str(log.path) in done.bad.first
        assert f"line {20 + n_bad + bool(log.header)}" in done.bad.first
    with log.path.open("a") as file:
        file.write("no event\n")
    with pytest.raises(DataError, match=r"3 of 23 lines cannot be read"):
        log.follow(**options)


def test_a_bad_line_that_stopped_the_stream_may_be_skipped_in_a_later_run(log: Log) -> None:
    log.grow()
    log.follow()
    with log.path.open("a") as stream:
        stream.write("neither this nor that\n")
    log.grow()
    with pytest.raises(DataError, match="line"):
        log.follow()
    done = log.follow(skip_bad_lines=True, max_skipped=0.5)
    assert (done.report.events, done.bad.count) == (6, 1)
    log.grow()
    log.follow(end=True)
    assert log.is_exact()


@pytest.mark.parametrize("ts", ["integers", "moments", "moments with a zone"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_line_with_a_value_of_another_type_is_skipped(form: str, ts: str, tmp_path: Path) -> None:
    query = "PATTERN SEQ(a x, b y) WITHIN 100" + ("" if ts == "integers" else " seconds")
    log = Log(tmp_path, acep.parse(query), f"app.{form}", skip_bad_lines=True, max_skipped=0.5)

    def write(*rows: tuple[Any, str, Any]) -> None:
        with log.path.open("a") as stream:
            stream.write("" if stream.tell() else log.header)
            stream.writelines(map(log.line, rows))

    def at(tick: int) -> Any:
        return tick if ts == "integers" else f"2026-01-31T10:00:{tick:02}" + ("Z" if "zone" in ts else "")

    write((at(1), "a", 1), (at(2), "a", 2))
    assert log.follow().report.events == 2
    write((at(3), "b", 3), ("soon", "b", 4), (at(4), "b", "five" if form == "csv" else 6))
    done = log.follow()
    assert done.bad.count == 1
    assert "line 5" in done.bad.first or "line 4" in done.bad.first
    write((at(5), "b", 7))
    done = log.follow(end=True)
    assert (done.report.events, done.report.matches) == (5, 6)


def test_a_folder_of_files_that_grow(tmp_path: Path) -> None:
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(a x, b y) WITHIN 100"), growing=True, watermark=1000)
    (stream.events / "below").mkdir()
    logs = [stream.events / "x.csv", stream.events / "below" / "y.csv"]
    for number, path in enumerate(logs):
        path.write_text(f"ts,type\n{number + 1},a\n")
    assert stream.follow().report.events == 2
    logs[1].rename(stream.events / "below" / "y.csv.1")
    for path in logs:
        with path.open("a") as file:
            file.write("" if file.tell() else "ts,type\n")
            file.write("5,b\n")
    (stream.events / "z.csv").write_text("ts,type\n6,b\n")
    (stream.events / "z.parquet").write_bytes(b"PAR1")
    with pytest.warns(DataWarning, match=r"`z\.parquet`; a file that grows is CSV or JSON Lines"):
        done = stream.follow(end=True)
    assert (done.report.events, done.report.matches) == (5, 6)


def test_a_link_to_the_newest_file_is_followed(log: Log) -> None:
    """Some loggers write a file a day, and a link leads to the newest one."""
    link, n_rows = log.path, 0
    for day in ("2026-01-30", "2026-01-31", "2026-02-01"):
        log.path = link.with_name(f"app-{day}{link.suffix}")
        if n_rows:  # into the old file, after the last look
            old = link.resolve()
            with old.open("a") as file:
                log.clock += 1
                row = (log.clock, "a", 0)
                log.rows.append(row)
                file.write(log.line(row))
        log.grow(4)
        link.unlink(missing_ok=True)
        link.symlink_to(log.path.name)
        log.path = link
        done = log.follow()
        n_rows = len(log.rows)
        assert (done.report.events, done.report.late, done.gaps) == (n_rows, 0, ())
    log.follow(end=True)
    assert log.is_exact()


def test_a_file_may_come_later(log: Log) -> None:
    assert log.follow().batches == 0
    log.grow()
    assert log.follow(end=True).report.events == 3


def test_new_lines_after_the_end_are_refused(log: Log) -> None:
    log.grow()
    log.follow(end=True)
    assert log.follow(end=True).ended
    log.grow()
    with pytest.raises(SnapshotError, match=rf"has ended, and `{log.path.name}` has new lines"):
        log.follow()


@pytest.mark.long
def test_plans_that_are_removed_leave_the_position(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.following.journal.EVERY", 5)
    for _ in range(30):
        log.grow(1)
        log.follow()
    assert len(list((log.state / "plans").iterdir())) < 20
    assert log.follow(end=True).report.events == 30
    assert log.is_exact()


def test_a_clause_of_sql_follows_a_log(tmp_path: Path) -> None:
    clause = "ORDER BY ts MEASURES FIRST(ts) AS t PATTERN (A B) DEFINE A AS type = 'a', B AS type = 'b'"
    log = Log(tmp_path, clause)
    log.grow()
    log.follow()
    log.rotate()
    log.grow()
    assert log.follow(end=True).report.events == 6
    assert [row["t"] for row in log.lines()] == [2, 4]


def test_rules_budgets_and_ids_follow_a_log(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "fall.rule").write_text(
        '---\nname = "fall"\nseverity = "low"\n---\nPATTERN SEQ(a x, b y) WHERE [k] WITHIN 8'
    )
    for options in ({"rules": rules}, {"budget": acep.Budget(work=1000)}, {"id": "ts", "duplicates": "drop"}):
        log = Log(tmp_path / min(options), None if "rules" in options else AB, **options)
        log.grow()
        log.follow()
        log.rotate()
        log.grow(9)
        done = log.follow(end=True)
        assert done.report.events == 12
        assert done.report.matches == 4


def test_versions_and_a_row_that_ends_the_stream(tmp_path: Path) -> None:
    newer = tmp_path / "versions"
    newer.mkdir()
    log = Log(tmp_path, acep.parse("PATTERN SEQ(a x, b y) WITHIN 8"), versions=newer, unit="s")
    log.grow()
    log.follow()
    (newer / "0002-other.sase").write_text("PATTERN SEQ(b x, a y) WITHIN 8")
    log.grow()
    log.rotate()
    log.path.write_text(log.header + f"{2**63 - 1},,\n")
    done = log.follow(end_marker=True)
    assert done.ended
    assert done.report.events == 6
    assert [(row["start"], row["end"]) for row in log.lines()] == [(2, 3), (5, 6)]


WRONG = {
    "parquet": ("app.parquet", {}, "is CSV or JSON Lines, uncompressed"),
    "gzip": ("app.csv.gz", {}, "is CSV or JSON Lines, uncompressed"),
    "no form": ("app.log", {}, "not named like a file of events"),
    "a number": ("app.csv", {"growing": 1}, "growing= is True or False"),
    "few bytes": ("app.csv", {"max_bytes": 10}, "less than 1,024 bytes"),
    "no size": ("app.csv", {"max_bytes": "much"}, "max_bytes='much' is no size"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_grow_is_refused(case: str, tmp_path: Path) -> None:
    name, options, complaint = WRONG[case]
    log = Log(tmp_path, name=name)
    log.path.write_text("ts,type,k\n1,a,1\n")
    with pytest.raises(AcepError, match=complaint):
        log.follow(**options)


def test_max_bytes_is_for_files_that_grow(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="max_bytes= is about files that grow"):
        Stream(tmp_path, AB).follow(max_bytes=5000)


def test_text_in_utf_16_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.path.write_text("ts,type,k\n1,a,1\n", encoding="utf-16")
    with pytest.raises(DataError, match="a file that grows is read as UTF-8"):
        log.follow()


def test_a_state_of_whole_files_is_not_one_of_files_that_grow(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.grow()
    Stream(tmp_path, AB).follow()
    with pytest.raises(SnapshotError, match="was made with other options of reading"):
        log.follow()


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path)
    log.grow()
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(log.path))
    monkeypatch.setattr(growing_files, "row_ends_of", mock.Mock(side_effect=denied))
    with pytest.raises(DataError, match=r"/app\.csv` cannot be read: Permission denied"):
        log.follow()


@pytest.mark.parametrize("first", ["file", "folder"])
def test_a_state_of_other_files_is_refused(first: str, tmp_path: Path) -> None:
    log, other = Log(tmp_path), Log(tmp_path, name="b.csv")
    log.grow()
    other.grow(1)
    if first == "file":
        log.follow()
    else:
        Stream.follow(log)
    with pytest.raises(SnapshotError, match=r"is of other files that grow: `app\.csv`"):
        other.follow()
    if first == "folder":
        Stream.follow(log, end=True)
    else:
        log.follow(end=True)
        assert log.is_exact(has_matches=False)


def test_a_log_of_zeek_is_followed_over_a_rotation(tmp_path: Path) -> None:
    head = "#separator \\x09\n#unset_field\t-\n#fields\tts\ttype\tk\n#types\ttime\tstring\tcount\n"
    log = Log(tmp_path, acep.parse("PATTERN SEQ(a x, b y) WHERE [k] WITHIN 8 seconds"), "conn.log", format="zeek")
    log.path.write_text(head + "1700000000.5\ta\t1\n1700000001.5\ta\t-\n")
    assert log.follow().report.events == 2
    with log.path.open("a") as stream:
        stream.write("1700000002.5\ta\t2\n#close\t2023-11-14-22-13-22\n")
    log.path.rename(log.path.with_name("conn.2023-11-14-22-13-22.log"))
    log.path.write_text(head + "1700000003.5\tb\t1\n")
    done = log.follow(end=True)
    assert (done.report.events, done.report.matches, done.gaps) == (4, 1, ())


def test_the_command_line_follows_one_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path, name="app.log")
    log.path.write_text('{"ts": 1, "type": "a"}\n{"ts": 2, "type": "b"}\n')
    words = ["follow", "re:ab", str(log.path), "--within", "5", "--state", str(log.state), "--output", str(log.found)]
    assert main([*words, "--end", "--format", "jsonl", "--max-bytes", "1 MB"]) == 0
    assert "1 match" in capsys.readouterr().err
