"""A file, a line, a folder and a schema may take so much and no more: one line refuses the rest."""

from __future__ import annotations

import gzip
import io
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import DataError, DataWarning
from acep.events.files import folders, text_bytes
from acep.events.files.parquet import parquet_bounds
from acep.shedding.history_file import read_history

PAIR = "PATTERN SEQ(a x, b y) WITHIN 5"
ROWS = "ts,type\n1,a\n2,b\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*paths: Any, **how: Any) -> DataError:
    with pytest.raises(DataError) as raised:
        acep.read_events(list(paths), **how)
    assert "\n" not in raised.value.message
    assert raised.value.hint is not None
    return raised.value


# Bytes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize("packing", ["zst", "gz"])
def test_a_small_file_that_expands_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, packing: str) -> None:
    monkeypatch.setattr(text_bytes, "SMALL", 1 << 16)
    line = b"1,a\n" if name == "x.csv" else b'{"ts": 1, "type": "a"}\n'
    data = (b"ts,type\n" if name == "x.csv" else b"") + line * 200_000
    packed = gzip.compress(data) if packing == "gz" else pa.compress(data, "zstd", asbytes=True)
    path = Path(f"{name}.{packing}")
    path.write_bytes(packed)
    wrong = refused(path, max_expansion=20)
    assert f"has {len(packed):,} bytes, and more than 0 MB when it is expanded" in wrong.message
    assert acep.read_events(path, max_expansion=10_000).num_rows == 200_000
    with pytest.raises(DataError, match=r"max_expansion=0 is no number from 1 to"):
        acep.read_events(path, max_expansion=0)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["x.csv.gz", *(pytest.param(name, marks=pytest.mark.long) for name in ("x.csv.zst", "x.jsonl.zst"))]
)
def test_one_line_that_expands_takes_little_memory(name: str) -> None:
    """The 16 KB of the report: one line of 512 MB, in a process that may take 600 MB in all."""
    line = bytes(64 << 20)
    with pa.output_stream(name, compression="gzip" if name.endswith("gz") else "zstd") as file:
        for _ in range(8 if name.endswith("zst") else 2):
            file.write(line.replace(b"\0", b"a"))
    assert Path(name).stat().st_size < 200_000
    program = (
        "import sys; from acep.cli import main; status = main(['match', sys.argv[1], sys.argv[2]])\n"
        # getrusage would begin with the memory of the process that started this one.
        "peak = next(int(line.split()[1]) >> 10 for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(status, peak)"
    )
    done = subprocess.run([sys.executable, "-c", program, PAIR, name], capture_output=True, text=True, check=True)
    status, peak = map(int, done.stdout.split())
    assert status == 2
    assert "line 1 is longer than 16 MB" in done.stderr
    assert peak < 400


def test_a_long_line_of_json_is_a_bad_line() -> None:
    Path("x.jsonl").write_text('{"ts": 1}\n{"ts": 2, "x": "%s"}\n{"ts": 3}\n' % ("y" * 5000))
    assert "`x.jsonl`, line 2 is longer than 4,096 bytes" in refused("x.jsonl", max_line=4096).message
    table = acep.read_events("x.jsonl", max_line=4096, skip_bad_lines=True, max_skipped=0.5)
    assert table.column("ts").to_pylist() == [1, 3]
    Path("x.jsonl").write_text('{"ts": 1}\n{"ts": 2, "x": "%s"}' % ("y" * 5000))
    table = acep.read_events("x.jsonl", max_line=4096, skip_bad_lines=True, max_skipped=0.5)
    assert table.column("ts").to_pylist() == [1]


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may become larger than 64 MB, so that a copy without end fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
@pytest.mark.usefixtures("small_files")
def test_a_device_without_end_is_refused(form: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"x.{form}").symlink_to(device)
    for options in ({}, {"skip_bad_lines": True}):
        assert refused(f"x.{form}", **options).message == f"`x.{form}` is a device, which may have no end"
        with Path(device).open() as source:
            monkeypatch.setattr("sys.stdin", source)
            assert "is a device" in refused("-", format=form, **options).message
    assert acep.read_events("/dev/null", format=form).num_rows == 0


class Letters(io.RawIOBase):
    """A pipe that gives some bytes and then the letter `a` without end; whoever reads more than 64 MB fails."""

    def __init__(self, head: bytes) -> None:
        self.head, self.size = head, 0

    def read1(self, size: int) -> bytes:
        self.size += size
        assert self.size < 64 << 20, "it is read without end"
        head, self.head = self.head[:size], self.head[size:]
        return head + b"a" * (size - len(head))


@pytest.mark.parametrize(
    ("form", "head", "message"),
    [
        ("csv", b"", "line 1 is longer than 16 MB"),
        ("tsv", b"ts\ttype\n1\ta\n", "line 3 is longer than 16 MB"),
        ("jsonl", b'{"ts": 1}\n' * 10**6, "line 1000001 is longer than 16 MB"),
        ("csv", "ts,x\n".encode("utf-16"), "line 2 is longer than 2 MB"),
        ("parquet", b"PAR", "Parquet"),
    ],
    ids=["csv", "tsv", "jsonl", "utf-16", "parquet"],
)
def test_a_line_of_a_pipe_without_end_is_refused(
    form: str, head: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Letters(head)))
    options = {"max_line": 2 << 20} if "2 MB" in message else {}
    assert message in refused("-", format=form, **options).message


def test_a_history_or_an_automaton_is_no_device() -> None:
    for read in (lambda: read_history("/dev/zero"), lambda: acep.Automaton.from_toml(Path("/dev/zero"))):
        with pytest.raises(DataError, match="`/dev/zero` is a device, which may have no end"):
            read()
    assert read_history("/dev/null") == b""


def test_a_parquet_file_of_many_rows_in_few_bytes_is_refused() -> None:
    rows = pa.table({"ts": np.ones(1_000_000, np.int64), "type": pa.DictionaryArray.from_arrays(zeros(10**6), ["a"])})
    with pq.ParquetWriter("x.parquet", rows.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(12):
            writer.write_table(rows)
    assert "when it is read" in refused("x.parquet").message
    assert acep.read_events("x.parquet", ["ts"], max_expansion=1e6).num_rows == 12_000_000


def zeros(number: int) -> pa.Array:
    return pa.array(np.zeros(number, np.int8))


def test_a_text_that_a_parquet_file_repeats_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_bounds, "BATCH", 1 << 20)
    text, number = "x" * 100_000, 2_000
    held = pa.DictionaryArray.from_arrays(zeros(number), [text])
    dev = pa.StructArray.from_arrays([held], ["name"])
    pq.write_table(pa.table({"ts": range(number), "note": held, "dev": dev}), "x.parquet", store_schema=False)
    for column in ("note", "dev.name"):
        assert "when it is read" in refused("x.parquet", columns=["ts", column]).message
        assert "has a text of 100,000 bytes" in refused("x.parquet", columns=["ts", column], max_line=999).message
    assert acep.read_events("x.parquet", ["ts"]).num_rows == number


# Folders -----------------------------------------------------------------------------------------


def tangled() -> None:
    """A folder with links that lead to itself, above it, to a file in it and out of it, and with a pipe."""
    Path("logs/inner").mkdir(parents=True)
    Path("elsewhere").mkdir()
    Path("logs/1.csv").write_text(ROWS)
    Path("logs/inner/2.csv").write_text("ts,type\n3,a\n")
    Path("elsewhere/3.csv").write_text("ts,type\n4,b\n")
    for name, target in (("self", "."), ("up", ".."), ("again", "inner"), ("out", "../elsewhere")):
        Path("logs", name).symlink_to(target)
    Path("logs/latest.csv").symlink_to("1.csv")
    Path("elsewhere/back").symlink_to("../logs")
    Path("elsewhere/circle").symlink_to("circle")
    os.mkfifo("logs/pipe.csv")


@pytest.mark.parametrize("path", ["logs", "logs/**/*.csv", "log?/**"])
def test_links_and_pipes_in_a_folder_stop_nothing(path: str) -> None:
    tangled()
    with pytest.warns(DataWarning, match=r"`(logs/)?pipe\.csv` is no file, but a pipe or a device"):
        table = acep.read_events(path)
    assert sorted(table.column("ts").to_pylist()) == ([1, 2, 3, 4] if path == "logs" else [1, 2, 3])


def test_a_followed_folder_may_have_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    tangled()
    done = acep.follow("logs", PAIR, state="state", into="found", end=True)
    assert (done.report.events, done.report.matches) == (4, 3)
    assert main(["match", PAIR, "logs", "--count"]) == 0
    assert capsys.readouterr().out == "3\n"


def test_links_do_not_multiply() -> None:
    """Each link to the folder itself would double the paths of a glob that follows them."""
    Path("d").mkdir()
    Path("d/1.csv").write_text(ROWS)
    for i in range(8):
        Path("d", f"link{i}").symlink_to(".")
    assert [*folders.files_of_glob("d/**/*.csv")] == [Path("d/1.csv")]
    walk = folders.walk_folder(Path("d"))
    assert [*walk.files] == ["1.csv"]
    assert walk.refused == {f"link{i}": "a link to a folder that it is in" for i in range(8)}
    assert acep.read_events("d").num_rows == 2


@pytest.mark.parametrize("target", ["../far", "../far/3.csv"])
def test_two_ways_to_one_file_are_refused(target: str) -> None:
    """A link leads to a file that another link, or the folder it leads to, has already."""
    Path("far").mkdir()
    Path("far/3.csv").write_text(ROWS)
    Path("d").mkdir()
    Path("d/out").symlink_to("../far")
    Path("d/again.csv" if target.endswith(".csv") else "d/again").symlink_to(target)
    with pytest.raises(DataError, match=r"`again[^`]*` and `out[^`]*` in .* are the same, by a link"):
        acep.read_events("d")
    with pytest.raises(DataError, match="are the same, by a link"):
        acep.follow("d", PAIR, state="state", into="found", once=True)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("d/*.csv", ["1"]),
        ("d/**/*.csv", ["1", "2", "3"]),
        ("**/e/*.csv", ["2"]),
        ("d/e/**/*.csv", ["2", "3"]),
        ("d/**/f/**/*.csv", ["3"]),
        ("d/[e]/**/?.csv", ["2", "3"]),
        ("d/**/.hidden/*.csv", []),
        ("d/**/x/*.csv", []),
    ],
)
def test_globs(pattern: str, wanted: list[str]) -> None:
    for name in ("d/1.csv", "d/e/2.csv", "d/e/f/3.csv", "d/.hidden/4.csv"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(ROWS)
    assert [path.stem for path in folders.files_of_glob(pattern)] == wanted


# Bad lines ---------------------------------------------------------------------------------------


def write_bad(good: int, bad: int) -> None:
    Path("x.jsonl").write_text('{"ts": 1, "u": 7}\n' * good + '{"ts": 2, "u": "bob"}\n' * bad)


def test_the_share_of_lines_that_are_skipped_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line says that `u` is a number; the others are no bad lines."""
    write_bad(1, 999)
    wrong = refused("x.jsonl", skip_bad_lines=True)
    assert wrong.message == (
        "999 of 1,000 lines cannot be read, and a share of 0.01 may be skipped; the first: `x.jsonl`, line 2: `u` is"
        " text, but a number in line 1"
    )
    assert main(["match", "PATTERN SEQ(ANY a, ANY b) WHERE [u] WITHIN 5", "x.jsonl", "--skip-bad-lines"]) == 2
    assert "--max-skipped 1.0" in capsys.readouterr().err
    write_bad(99, 1)
    assert acep.read_events("x.jsonl", skip_bad_lines=True).num_rows == 99
    write_bad(98, 1)
    assert "max_skipped=0.011" in str(refused("x.jsonl", skip_bad_lines=True).hint)
    assert acep.read_events("x.jsonl", skip_bad_lines=True, max_skipped=0.011).num_rows == 98
    for share in (-0.1, 1.5, "much", True):
        with pytest.raises(DataError, match="is no number from 0 to 1"):
            acep.read_events("x.jsonl", max_skipped=share)


@pytest.mark.parametrize("share", [0.29, 0.07, 0.57, 1.0])
def test_the_share_is_exact(share: float) -> None:
    bad = round(100 * share)
    Path("x.csv").write_text("ts,type\n" + "1,a\n" * (100 - bad) + "2\n" * bad)
    assert acep.read_events("x.csv", skip_bad_lines=True, max_skipped=share).num_rows == 100 - bad


def test_the_share_of_each_micro_batch_is_bounded() -> None:
    """Files that are followed: a line among many may be bad, also where its own file is short."""
    Path("in").mkdir()
    Path("in/1.csv").write_text("ts,type\n" + "1,a\n" * 200)
    Path("in/2.csv").write_text("ts,type\n2\n3,b\n")
    how: dict[str, Any] = {"state": "state", "into": "out", "skip_bad_lines": True, "once": True}
    assert acep.follow("in", PAIR, **how).bad.count == 1
    Path("in/3.csv").write_text("ts,type\n4\n5,b\n")
    with pytest.raises(DataError, match="1 of 2 lines cannot be read"):
        acep.follow("in", PAIR, **how)
    assert acep.follow("in", PAIR, **how, max_skipped=0.5).bad.count == 1
