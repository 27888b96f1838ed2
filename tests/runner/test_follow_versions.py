"""Followed streams whose queries are replaced: what is found is what each version accepts in its time."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import acep
from acep.cli import main
from acep.errors import DataError, QueryError, SnapshotError
from acep.following import follower
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.random_automata import random_rows
from tests.random_versions import Chain, accepted, random_chain, told_of
from tests.runner.streams import fast_disk, put

ABC, ABD = (f"PATTERN SEQ(A a, B b, {last} c) WITHIN 9" for last in "CD")
PARTS = 4

Row = dict[str, Any]


def found_in(folder: Path) -> list[Row]:
    files = sorted(folder.iterdir(), key=lambda one: int(one.name.split(".")[0])) if folder.exists() else []
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def given(rows: list[Row]) -> Counter[str]:
    """How often each match was given and not taken back, by its bindings and its error."""
    found: Counter[str] = Counter()
    for row in rows:
        found[told_of(row["bindings"], row["error"])] += row.get("op", 1)
    return +found


def lines(rows: list[Row]) -> str:
    return "".join(json.dumps({name: row.get(name) for name in ("ts", "type", "x", "id")}) + "\n" for row in rows)


class Followed:
    """A folder of files and one of versions that are followed step by step, the versions, and the rows so far.

    A step is a row, or ``{"do": "version", "draw": seed}``, ``{"do": "follow"}`` or ``{"do": "die"}``, which follow the
    rows before them. To die is to do so after the plan of a micro-batch; the versions change before the next call.
    """

    def __init__(self, root: Path, chain: Chain, within: int, options: dict[str, Any], seen: Counter[str]) -> None:
        self.root, self.within, self.seen = root, within, seen
        self.versions: list[tuple[int, Chain]] = [(-100, chain)]
        self.rows, self.pending, self.files = list[Row](), list[Row](), 0
        for name in ("in", "versions"):
            (root / name).mkdir(parents=True)
        self.options = options | {"state": root / "state", "into": root / "out", "versions": root / "versions"}

    def take(self, step: Row) -> None:
        """Do a step."""
        what = step.get("do")
        if what is None:
            self.pending.append(step)
        elif what == "version":
            self.add_version(Random(step["draw"]))
        else:
            if self.pending:
                self.files += 1
                put(self.root / "in", f"{self.files:04}.jsonl", lines(self.pending))
            if what == "die":
                self.die()
            self.follow()
            self.rows += self.pending
            self.pending = []

    def add_version(self, rng: Random) -> None:
        """Put a version into the folder, which holds from the next time or from a later one on."""
        chain = random_chain(rng, like=self.versions[-1][1])
        greatest = max((row["ts"] for row in self.rows), default=-101)
        since = max(self.versions[-1][0], greatest + 1)
        text = chain.text(self.within)
        if rng.random() < 0.4:
            since += rng.randrange(4)
            text = f"-- since: {since}\n{text}"
        self.versions.append((since, chain))
        (self.root / "versions" / f"{len(self.versions)}-next.sase").write_text(text)

    def follow(self, **more: Any) -> None:
        """Follow the files that are there."""
        with fast_disk():
            acep.follow(self.root / "in", self.versions[0][1].text(self.within), **self.options | more)

    def die(self) -> None:
        """Die in a micro-batch, which is done again without looking at the versions, of which one is no query."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(follower, "step_bucket", killed)
            try:
                self.follow()
            except KeyboardInterrupt:
                self.seen["died"] += 1
        unread = self.root / "versions" / f"{len(self.versions) + 1000}.sase"
        unread.write_text("no query")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(follower, "versions_in_folder", lambda *_: [])
            self.follow()
        unread.unlink()


def complaint_of(
    folder: Path, chain: Chain, within: int, options: dict[str, Any], seen: Counter[str], steps: list[Row]
) -> str:
    """Follow step by step, and say how the matches differ from those that the versions accept."""
    run = Followed(Path(tempfile.mkdtemp(dir=folder)), chain, within, options, seen)
    for step in [*steps, {"do": "follow"}]:
        run.take(step)
    run.follow(end=True)
    wanted = accepted(run.versions, sorted(run.rows, key=lambda row: row["ts"]), within)
    seen["has matches and versions"] += len(wanted) > 0 and len(run.versions) > 1
    differing = difference(given(found_in(run.root / "out")), wanted, ("follow", "versions"))
    texts = [f"from {since}: {version.text(within)}" for since, version in run.versions]
    return differing and "\n".join([*texts, differing])


@pytest.mark.parametrize("part", range(PARTS))
def test_each_version_holds_in_its_time(part: int, tmp_path: Path, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(part * 10_000, part * 10_000 + cases(40)):
        rng = Random(seed)
        within, chain = rng.choice((2, 4, 8)), random_chain(rng)
        rows = [row | {"id": number} for number, row in enumerate(random_rows(rng, 25))]
        rows.sort(key=lambda row: row["ts"] + rng.randrange(4))
        options = {"id": "id", "once": True, "watermark": 3, "cast": {"x": "int"}}
        options["speculation"] = rng.choice((0, 1, "inf"))
        steps, at = list[Row](), 0
        while at < len(rows):
            steps += rows[at : (at := at + rng.randrange(1, 12))]
            steps += [{"do": "version", "draw": rng.randrange(10**6)}] * (rng.random() < 0.5)
            steps.append({"do": rng.choices(("follow", "die"), (7, 3))[0]})
        title = f"seed {seed}, {options}\n{chain.text(within)}"
        fail_if_wrong_on_rows(steps, title, partial(complaint_of, tmp_path, chain, within, options, seen))
    cases.expect(seen, "has matches and versions", "died")


def killed(*_: Any) -> Any:
    raise KeyboardInterrupt


def test_an_automaton_is_replaced_by_a_file_of_toml(tmp_path: Path) -> None:
    def text(least: int, since: str = "") -> str:
        return f'{since}final = "end"\nwindow = 100\n[[arc]]\nfrom = "begin"\nto = "end"\nfence = "e.x > {least}"\n'

    for name in ("in", "versions"):
        (tmp_path / name).mkdir()
    (tmp_path / "low.toml").write_text(text(1))
    (tmp_path / "versions" / "1.toml").write_text(text(5, "# since: 4\n"))
    put(tmp_path / "in", "1.csv", "ts,x\n1,2\n2,9\n")
    put(tmp_path / "in", "2.csv", "ts,x\n4,2\n5,9\n")
    folders = ["--state", str(tmp_path / "state"), "--output", str(tmp_path / "out")]
    asked = ["--versions", str(tmp_path / "versions"), "--type", "none", "--end", "--max-files", "1"]
    assert main(["follow", str(tmp_path / "low.toml"), str(tmp_path / "in"), *folders, *asked]) == 0
    assert [row["start"] for row in found_in(tmp_path / "out")] == [1, 2, 5]


@pytest.mark.parametrize("killed_between", [False, True])
def test_an_automaton_waits_for_a_version_that_comes_later(killed_between: bool, tmp_path: Path) -> None:
    """A version without a time holds when the one before it does, which it then replaces."""

    def text(least: int, since: str = "") -> str:
        return f'{since}final = "end"\nwindow = 100\n[[arc]]\nfrom = "begin"\nto = "end"\nfence = "e.x > {least}"\n'

    for name in ("in", "versions"):
        (tmp_path / name).mkdir()
    (tmp_path / "versions" / "1.toml").write_text(text(5, "# since: 10\n"))
    put(tmp_path / "in", "1.csv", "ts,x\n1,2\n")
    options: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "versions": tmp_path / "versions"}
    first = acep.Automaton.from_toml(text(1))
    acep.follow(tmp_path / "in", first, type=None, once=True, **options)
    (tmp_path / "versions" / "2.toml").write_text(text(3).replace(">", "<"))
    put(tmp_path / "in", "2.csv", "ts,x\n3,0\n9,2\n")
    if not killed_between:
        acep.follow(tmp_path / "in", first, type=None, once=True, **options)
    put(tmp_path / "in", "3.csv", "ts,x\n9,0\n11,2\n12,4\n13,0\n")
    acep.follow(tmp_path / "in", first, type=None, end=True, **options)
    assert [row["start"] for row in found_in(tmp_path / "out")] == [1, 9, 11, 13]


@pytest.mark.parametrize("name", ["2.acep", "2-lower.txt", "002.SQL", "2.sase"])
def test_a_version_has_any_ending_that_a_query_has(name: str, tmp_path: Path) -> None:
    for folder in ("in", "versions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "versions" / name).write_text(ABD)
    (tmp_path / "versions" / "3.sase.tmp").write_text("half a query")
    (tmp_path / "versions" / ".4.sase").write_text("hidden")
    put(tmp_path / "in", "1.csv", "ts,type\n1,A\n2,B\n3,C\n4,D\n")
    options: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "versions": tmp_path / "versions"}
    acep.follow(tmp_path / "in", ABC, end=True, **options)
    assert [row["end"] for row in found_in(tmp_path / "out")] == [4]


def test_progress_tells_the_version_and_how_many_partial_matches_went_on(tmp_path: Path) -> None:
    for name in ("in", "versions"):
        (tmp_path / name).mkdir()
    told: list[Any] = []
    options: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "versions": tmp_path / "versions"}
    put(tmp_path / "in", "1.csv", "ts,type\n1,A\n2,B\n3,A\n4,A\n")
    acep.follow(tmp_path / "in", ABC, once=True, tell=told.append, **options)
    (tmp_path / "versions" / "3.sase").write_text(ABD)
    put(tmp_path / "in", "2.csv", "ts,type\n5,D\n")
    acep.follow(tmp_path / "in", ABC, end=True, tell=told.append, **options)
    assert [(one.version, one.went_on) for one in told] == [(0, 0), (3, 3)]
    assert "version 3, 3 went on" in told[1].line


def test_the_only_bucket_is_not_called_the_fullest(tmp_path: Path) -> None:
    told: list[Any] = []
    put(tmp_path / "in", "1.csv", "ts,type\n" + "".join(f"{n},A\n" for n in range(1_200)))
    acep.follow(tmp_path / "in", ABC, state=tmp_path / "state", into=tmp_path / "out", once=True, tell=told.append)
    assert told[0].rows == 1_200
    assert "one bucket" not in told[0].line


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("lower.sase", ABD, "is no name of a version"),
        ("README.md", "about", "is no name of a version"),
        ("2.sase", f"-- since 1\n{ABD}", "it would hold for events that have come"),
        ("2.sase", "PATTERN SEQ(A a", "version 2 of the query: the query ends"),
        ("2.sase", ABD.replace("9", "8"), "has another value of `WITHIN`"),
        ("2.sase", f"-- since: 1\n{ABD}", "it would hold for events that have come"),
        ("2.sase", f"-- since: soon\n{ABD}", "`soon`"),
        ("2.sase", f"-- since: 2026-01-31\n{ABD}", "the times of this stream are integers"),
        ("2.toml", 'final = "end"', "version 2 of the query"),
    ],
)
def test_a_version_that_does_not_fit_is_refused_and_nothing_is_lost(
    name: str, text: str, told: str, tmp_path: Path
) -> None:
    for folder in ("in", "versions"):
        (tmp_path / folder).mkdir()
    options: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "versions": tmp_path / "versions"}
    put(tmp_path / "in", "1.csv", "ts,type\n1,A\n2,B\n")
    acep.follow(tmp_path / "in", ABC, once=True, **options)
    put(tmp_path / "in", "2.csv", "ts,type\n4,C\n5,D\n")
    (tmp_path / "versions" / name).write_text(text)
    with pytest.raises((DataError, QueryError), match=told):
        acep.follow(tmp_path / "in", ABC, once=True, **options)
    (tmp_path / "versions" / name).unlink()
    (tmp_path / "versions" / "2.sase").write_text(ABD)
    acep.follow(tmp_path / "in", ABC, end=True, **options)
    assert [row["end"] for row in found_in(tmp_path / "out")] == [5]


def test_what_is_refused(tmp_path: Path) -> None:
    for folder in ("in", "versions"):
        (tmp_path / folder).mkdir()
    put(tmp_path / "in", "1.csv", "ts,type\n1,A\n2,B\n")
    options: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "once": True}
    with pytest.raises(DataError, match="there is none at"):
        acep.follow(tmp_path / "in", ABC, versions=tmp_path / "elsewhere", **options)
    with pytest.raises(QueryError, match="keep to no budget"):
        acep.follow(tmp_path / "in", ABC, versions=tmp_path / "versions", budget=acep.Budget(work=9), **options)
    acep.follow(tmp_path / "in", ABC, versions=tmp_path / "versions", **options)
    with pytest.raises(SnapshotError, match="other options"):
        acep.follow(tmp_path / "in", ABC, **options)
    for number in ("02", "2"):
        (tmp_path / "versions" / f"{number}.sase").write_text(ABD + " " * len(number))
    put(tmp_path / "in", "2.csv", "ts,type\n3,A\n")
    with pytest.raises(DataError, match="two versions of a query have the number 2"):
        acep.follow(tmp_path / "in", ABC, versions=tmp_path / "versions", **options)


def test_several_queries_are_replaced_by_their_names(tmp_path: Path) -> None:
    for folder in ("in", "versions"):
        (tmp_path / folder).mkdir()
    queries = {"one": ABC, "two": ABC}
    options: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "out", "versions": tmp_path / "versions"}
    put(tmp_path / "in", "1.csv", "ts,type\n1,A\n2,B\n3,C\n4,D\n")
    (tmp_path / "versions" / "1-three.sase").write_text(ABD)
    with pytest.raises(DataError, match="there is no query `three`"):
        acep.follow(tmp_path / "in", queries, end=True, **options)
    (tmp_path / "versions" / "1-three.sase").rename(tmp_path / "versions" / "1-two.sase")
    done = acep.follow(tmp_path / "in", queries, end=True, **options)
    assert [(row["query"], row["end"]) for row in found_in(tmp_path / "out")] == [("one", 3), ("two", 4)]
    assert {name: report.matches for name, report in done.reports.items()} == {"one": 1, "two": 1}
