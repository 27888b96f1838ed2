"""Random command lines over random files: exit status 0 to 2, never a traceback, and one message on standard error.

Files are whole, cut off, damaged, of other encodings and formats, unsorted, empty or folders; queries and options are
right, wrong or mutilated. What needs Spark is tried only where it fails before a session starts.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.native.compiled import why_not
from tests.case_counts import CaseCounts
from tests.test_wrong_arguments import in_time

ROWS = [(n, "abcab"[n % 5], f"u{n % 2}", n * 0.5) for n in range(14)]
CSV = "ts,type,k,v\n" + "".join(f"{ts},{kind},{key},{value}\n" for ts, kind, key, value in ROWS)
JSONL = "".join(json.dumps({"ts": ts, "type": kind, "k": key, "v": v}) + "\n" for ts, kind, key, v in ROWS)

QUERIES = (
    "PATTERN SEQ(a x, b y) WITHIN 5",
    "PATTERN SEQ(a x, b+ y[], c z) WHERE [k] AND z.v > x.v WITHIN 9 RETURN sum(y[].v) AS total",
    "PATTERN SEQ(a x, ~c n, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 5 EVENTS OUTPUT NON OVERLAP",
    "PATTERN {a x, b y} WHERE x.v <> y.v",
    "PATTERN SEQ(a x, b y) WHERE y.v > :least WITHIN 5",
    "FROM (PATTERN SEQ(a x, b y) WITHIN 3) AS T PATTERN SEQ(T t, T u) WITHIN 9",
    *("re:ab", "re:a(b|c)", "re:.", "re:(", "re:", "ab", "PATTERN", "", " ", "query.acep", "broken.acep", "events.csv"),
    *(
        "PATTERN A a WITHIN 1 hour",
        "PATTERN a x WHERE x.nothing = 1",
        "PATTERN SEQ(a x, b y) WITHIN 5 AFTER MATCH SKIP",
    ),
    *("PATTERN a x WHERE x.v = 'text'", "PATTERN \ud800", "\0", "(" * 3_000, "no/such.sase", ".", "-", "--", "-x"),
)
FILES = (
    *("events.csv", "events.csv", "events.csv", "events.jsonl", "events.parquet", "events.csv.gz", "events.ndjson"),
    *(
        "unsorted.csv",
        "empty.csv",
        "head.csv",
        "short.csv",
        "latin.csv",
        "utf16.csv",
        "bytes.csv",
        "nul.csv",
        "huge.csv",
    ),
    *("mixed.csv", "twice.csv", "quotes.csv", "bom.csv", "crlf.csv", "cut.parquet", "cut.csv.gz", "not.gz", "not.zst"),
    *("mixed.jsonl", "array.jsonl", "deep.jsonl", "cut.jsonl", "json.json", "nested.parquet", "folder", "empty folder"),
    *("folder/*.csv", "*.csv", "no*such", "nowhere.csv", "-", "/dev/null", "link", "events", "events.xyz", "ä.csv"),
    *("times.csv", "zones.csv", "nulls.csv", "wide.csv", "", "a\0b", "x" * 5_000, "secret.csv"),
)
# The values of each option, right ones first.
OPTIONS: dict[str, tuple[str | None, ...]] = {
    "--errors": ("1", "0.5", "-1", "x", "1e9", "nan", ""),
    "--surplus": ("1", "0.5", "1/2", "inf", "0", "-1", "x", ""),
    "--weights": ("x=2", "a=2", "x=inf", "x=-1", "x", "=", "nothing=1", "x=1,x=2"),
    "--set": ("least=3", "x=(1, 'a')", "least=5 min", "x", "=", "=1", "x=", "least=()"),
    "--within": ("5", "1 hour", "5 events", "none", "-5", "x", "", "1e400"),
    "--by": ("k", "k,type", "nothing", ",", ""),
    "--strategy": ("skip_till_next_match", "nonsense", ""),
    "--ts": ("ts", "v", "k", "nothing", ""),
    "--type": ("type", "k", "v", "none", "nothing", ""),
    "--seq": ("ts", "k", "nothing"),
    "--id": ("ts", "k", "v", "nothing"),
    "--unit": ("s", "ns", "fortnight", ""),
    "--cast": (
        "v=int",
        "ts=timestamp(100ns)",
        "v=decimal(9,1)",
        "ts=timestamp(s)",
        "k=int",
        "nothing=int",
        "v=x",
        "v",
        "=",
        "v=decimal(99,1)",
    ),
    "--format": ("csv", "jsonl", "parquet", "xml", ""),
    "--skip-bad-lines": (None,),
    "--max-skipped": ("0.5", "100%", "0", "2", "x"),
    "--delimiter": (";", "tab", ",", "ab", ""),
    "--quote": ("none", '"', "x"),
    "--decimal": (",", ".", "x"),
    "--null": ("NA", "-", ""),
    "--multiline-cells": (None,),
    "--max-line": ("1 MB", "20", "0", "x"),
    "--max-expansion": ("1", "1e9", "0", "nan", "x"),
    "--max-columns": ("9", "2", "0", "x"),
    "--output": (
        "out.jsonl",
        "out.csv",
        "out.parquet",
        "out",
        "out.txt",
        "no/out.csv",
        ".",
        "/dev/null",
        "/dev/full",
        "",
    ),
    "--limit": ("2", "0", "99999999999999999999", "-1", "x"),
    "--bundles": (None,),
    "--points": (None,),
    "--count": (None,),
    "--exists": (None,),
    "--no-counts": (None,),
    "--engine": ("reference", "native", "auto", "x"),
    "--work": ("2", "0.01", "0", "-1", "nan", "inf", "1e400", "x"),
    "--cpu": ("0.5", "0", "x"),
    "--speed": ("10", "0", "nan"),
    "--latency": ("1", "0", "1e-30"),
    "--memory": ("64 MB", "1M", "1", "x", "1e30 GB", "-5"),
    "--recover": (None, "0.5", "2", "x"),
    "--history": ("learned.acep", "cut.acep", "events.csv", "nowhere", "folder", "/dev/null"),
    "--policy": ("random", "newest", "nonsense", ""),
    "--seed": ("3", "-3", "x", "99999999999999999999"),
    "--rows": ("0", "0,1,2", "3, 1", "999", "-1", "u0", ",", ""),
    "--key": ("u0", "k=u0", "k=", "nothing=1", "k=u0,x=1", ""),
    "--events": ("events.csv", "events.parquet", "nowhere.csv", "bytes.csv", "folder"),
    "--svg": ("out.svg", "no/out.svg", ".", "/dev/full"),
    "--strict": (None,),
    "--no-progress": (None,),
    "--log-level": ("debug", "info", "warning", "error", "loud", ""),
    "--many": (None,),
    "--json": ("out.json", "no/out.json", ".", "/dev/full"),
    "--sample": ("0.5", "5", "0", "x", "-1"),
    "--target-recall": ("0.9", "0", "2", "nan", "x"),
    "--of": ("bundles", "points", "x"),
    "--effort": ("1000", "0", "x"),
    "--from": ("learned.acep", "cut.acep", "nowhere"),
    "--chunk": ("5", "0", "x"),
    "--watermark": ("5", "x"),
    "--plot": ("out.html", "out.svg", "out.png", "out.pdf", "no/out.html", ".", "a\0b.html", ""),
    "--plot-value": ("v", "k", "ts", "nothing", ""),
    "--watch": (None,),
    "--spark": (None,),
    "--metrics": ("0", "x", "nowhere.invalid:0", "99999"),
    "--nonsense": (None, "1"),
}
QUERY = (
    "--errors",
    "--weights",
    "--surplus",
    "--set",
    "--within",
    "--by",
    "--strategy",
    "--log-level",
    "--no-progress",
)
COLUMNS = ("--ts", "--type", "--seq", "--id", "--unit", "--cast", "--format", "--skip-bad-lines", "--max-skipped")
COLUMNS += (
    "--delimiter",
    "--quote",
    "--decimal",
    "--null",
    "--multiline-cells",
    "--max-line",
    "--max-expansion",
    "--max-columns",
)
BUDGET = ("--work", "--cpu", "--speed", "--latency", "--memory", "--recover", "--history", "--policy", "--seed")
OUTPUT = ("--output", "--limit", "--bundles", "--points", "--count", "--exists", "--no-counts", "--engine")
PLOT = ("--plot", "--plot", "--plot-value")
COMMANDS: dict[str, tuple[str, ...]] = {
    "match": (*QUERY, *COLUMNS, *BUDGET, *OUTPUT, *PLOT),
    "explain": (*QUERY, *COLUMNS, "--events", "--svg"),
    "lint": (*QUERY, *COLUMNS, "--strict", "--json"),
    "why": (*QUERY, *COLUMNS, "--key", "--key", "--rows", "--rows", "--many"),
    "tune": (*QUERY, *COLUMNS, "--sample", "--target-recall", "--of", "--effort", "--json", "--policy", "--seed"),
    "learn": (*QUERY, *COLUMNS, "--output", "--output", "--from", "--policy", "--seed"),
    "history": ("--svg", "--limit"),
    "replay": (*QUERY, *COLUMNS, *BUDGET, "--chunk", "--watermark", "--watch", "--count", "--spark", "--metrics"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every kind."""
    here = tmp_path_factory.mktemp("files")
    texts = {
        "events.csv": CSV,
        "events.jsonl": JSONL,
        "events.ndjson": JSONL,
        "unsorted.csv": "ts,type,k,v\n3,a,x,1\n1,b,x,2\n2,c,x,3\n",
        "empty.csv": "",
        "head.csv": "ts,type,k,v\n",
        "short.csv": CSV + "99\n100,a,b,c,d,e\n",
        "nul.csv": CSV.replace("u1", "u\0"),
        "huge.csv": "ts,type,k,v\n1,a,x,1e400\n99999999999999999999,b,x,-1\n",
        "mixed.csv": CSV + "x,a,1,text\n",
        "twice.csv": "ts,ts,type\n1,2,a\n",
        "quotes.csv": 'ts,type,k,v\n1,"a,k,1\n',
        "bom.csv": "\ufeff" + CSV,
        "crlf.csv": CSV.replace("\n", "\r\n"),
        "ä.csv": CSV,
        "times.csv": "ts,type,k,v\n2024-05-01T10:00:00,a,x,1\n2024-05-01T10:00:05,b,x,2\n",
        "zones.csv": "ts,type,k,v\n2024-05-01T10:00:00,a,x,1\n2024-05-01T10:00:05+02:00,b,x,2\n",
        "nulls.csv": "ts,type,k,v\n,,,\n1,a,,\n",
        "wide.csv": ",".join(f"c{n}" for n in range(200)) + "\n" + ",".join("1" * 200) + "\n",
        "mixed.jsonl": JSONL + '{"ts": "x", "type": 5}\n{"ts": 1.5}\n',
        "array.jsonl": '[{"ts": 1, "type": "a"}]\n',
        "deep.jsonl": '{"ts": 1, "type": "a", "k": ' + "[" * 2_000 + "]" * 2_000 + "}\n",
        "cut.jsonl": JSONL[:-20],
        "json.json": JSONL,
        "not.gz": CSV,
        "not.zst": CSV,
        "events": CSV,
        "events.xyz": CSV,
        "secret.csv": CSV,
        "query.acep": QUERIES[0],
        "broken.acep": "PATTERN SEQ(",
    }
    for name, text in texts.items():
        (here / name).write_bytes(text.encode())
    (here / "latin.csv").write_bytes(CSV.replace("u1", "ü").encode("latin-1"))
    (here / "utf16.csv").write_bytes(CSV.encode("utf-16"))
    (here / "utf16le.csv").write_bytes(CSV.encode("utf-16-le"))
    (here / "bytes.csv").write_bytes(random.Random(1).randbytes(3_000))
    packed = gzip.compress(CSV.encode())
    (here / "events.csv.gz").write_bytes(packed)
    (here / "cut.csv.gz").write_bytes(packed[:-9])
    pq.write_table(pa.Table.from_pylist([json.loads(line) for line in JSONL.splitlines()]), here / "events.parquet")
    (here / "cut.parquet").write_bytes((here / "events.parquet").read_bytes()[:-30])
    pq.write_table(pa.table({"ts": [1], "type": ["a"], "k": [{"id": 1}], "v": [[1]]}), here / "nested.parquet")
    for folder in ("folder", "empty folder"):
        (here / folder).mkdir()
    (here / "folder" / "one.csv").write_text(CSV)
    (here / "folder" / "two.csv").write_text("other,columns\n1,2\n")
    (here / "link").symlink_to("nowhere at all")
    learned = b"ACEP"
    if why_not() is None:
        learned = acep.learn({"ts": list(range(60)), "type": list("abcab" * 12)}, QUERIES[0])
    (here / "learned.acep").write_bytes(learned)
    (here / "cut.acep").write_bytes(learned[: len(learned) // 2])
    return here


def drawn(chance: random.Random) -> list[str]:
    """A command line."""
    command = chance.choice(("match", "match", "match", *COMMANDS))
    args = [command]
    if command == "history":
        args.append(chance.choice(("learned.acep", "learned.acep", "cut.acep", "events.csv", "nowhere", "folder", "")))
    else:
        query = chance.choice(QUERIES[:6] if chance.random() < 0.6 else QUERIES)
        if chance.random() < 0.1 and query:
            place = chance.randrange(len(query))
            query = query[:place] + chance.choice(("", "x", "(", "'", "1", ",", "\n", "é")) + query[place + 1 :]
        args.append(query)
        if query.startswith("re:") and chance.random() < 0.8:
            args += ["--within", "5"]
    if command in ("match", "lint", "why", "tune", "learn"):
        some = FILES[:7] if chance.random() < 0.5 else FILES
        args += [chance.choice(some) for _ in range(chance.choice((1, 1, 1, 1, 1, 1, 2, 0)))]
    elif command == "replay":  # no session starts for a file that is not there
        args.append("nowhere.csv")
    if command == "learn" and chance.random() < 0.9:
        args += ["--output", "out.acep"]
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
        name = chance.choice(COMMANDS[command]) if chance.random() < 0.97 else "--nonsense"
        value = OPTIONS[name][0] if chance.random() < 0.5 else chance.choice(OPTIONS[name])
        args += [name] if value is None else [name, value]
    if chance.random() < 0.02:
        chance.shuffle(args)
    return args


SAID = re.compile(r"acep(\.\w+)*( \w+)*: ")
# Warnings, and what is said besides a message: of sorting on disk, and of lines that were left out.
NOTE = re.compile(r"acep: (warning|info|debug|row [\d,]+ is older|--\w+ \S+ never bound)|[\d,]+ bad lines? w")


def wrong(status: object, err: str) -> str | None:
    """What is wrong with the outcome of a command; ``None``: nothing."""
    if status not in (0, 1, 2):  # 1: what acep lint --strict found
        return f"exit status {status}"
    if "Traceback" in err:
        return "a traceback"
    lines = err.splitlines()
    if lines and lines[0].startswith("usage: "):
        said = lines[-2] if lines[-1].startswith("hint: ") else lines[-1]
        return None if re.match(r"acep.*: error: ", said) else "usage without an error"
    messages = [line for line in lines if SAID.match(line) and not NOTE.match(line)]
    if status == 2 and len(messages) != 1:
        return f"{len(messages)} messages"
    rest = [line for line in lines if not NOTE.match(line)]
    if status == 2 and (len(rest) > 4 or rest[0] != messages[0]):
        return "more than a message"
    if status == 0 and messages:
        return "a message of success"
    return None


def ran(args: list[str]) -> tuple[object, str]:
    """Exit status and standard error of a command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.StringIO()
    status: object
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), in_time():
        warnings.simplefilter("default")
        try:
            status = main(args)
        except SystemExit as ended:
            status = ended.code
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            status = f"{error!r}"
    return status, err.getvalue()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nested.parquet events.csv", "column `v` is double in `events.csv`, list<element: int64> in `nested.parquet`"),
        ("times.csv events.parquet", "column `ts` is int64 in `events.parquet`, timestamp[s] in `times.csv`"),
        ("times.csv events.jsonl", "column `ts` is int64 in `events.jsonl`, timestamp[s] in `times.csv`"),
        ("latin.csv --ts k", "`latin.csv`, line 3: `k` is not UTF-8 text"),
        ("bytes.csv", "`bytes.csv`: the header is not UTF-8 text"),
        ("utf16le.csv --skip-bad-lines", "`utf16le.csv` is in UTF-16 or UTF-32, without the mark at its beginning"),
    ],
)
def test_files_that_do_not_fit(files: Path, line: str, message: str) -> None:
    with standing_in(files):
        status, err = ran(
            ["match", "PATTERN SEQ(a x, b y) WHERE x.v = y.v OR x.k = y.k WITHIN 5 EVENTS", *line.split()]
        )
    assert (status, err.startswith(f"acep: {message}")) == (2, True), err
    assert wrong(status, err) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["match", "learn"])
def test_a_device_that_is_full(files: Path, command: str) -> None:
    if command == "learn" and why_not() is not None:
        pytest.skip("learning needs the native core")
    with standing_in(files):
        status, err = ran([command, QUERIES[0], "events.csv", "--output", "/dev/full"])
    assert status == 2
    assert err == "acep: `/dev/full` cannot be written: No space left on device [file_write]\n"


@contextlib.contextmanager
def standing_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def test_random_command_lines(files: Path, cases: CaseCounts) -> None:
    chance = random.Random(2026)
    seen = Counter[str]()
    with standing_in(files):
        for _ in range(cases(500)):
            args = drawn(chance)
            status, err = ran(args)
            problem = wrong(status, err)
            assert problem is None, f"{problem}: acep {shlex.join(args)[:500]}\n{err[-2000:]}"
            seen[f"status {status}"] += 1
    cases.expect(seen, "status 0", "status 2")


def test_random_command_lines_as_programs(files: Path, cases: Callable[[int], int]) -> None:
    chance = random.Random(7)
    for _ in range(cases(5)):
        args = [arg for arg in drawn(chance) if "\0" not in arg and arg.isprintable()]
        done = subprocess.run(
            [sys.executable, "-m", "acep", *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=files,
            timeout=120,
        )
        problem = wrong(done.returncode, done.stderr)
        assert problem is None, f"{problem}: acep {shlex.join(args)[:500]}\n{done.stderr[-2000:]}"
