"""Followed streams whose queries are replaced: what is found is what each version accepts in its time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import acep
from acep.cli import main
from acep.errors import DataError, QueryError, SnapshotError
from acep.runner import follower
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


@pytest.mark.parametrize("part", range(PARTS))
def test_each_version_holds_in_its_time(part: int, tmp_path: Path, cases: Callable[[int], int]) -> None:
    """A call sometimes ends after the plan of a micro-batch, and the folder of versions changes before the next."""
    replaced = 0
    for seed in range(part * 10_000, part * 10_000 + max(20, cases(40))):
        rng, root = Random(seed), tmp_path / str(seed)
        within, chain = rng.choice((2, 4, 8)), random_chain(rng)
        rows = [row | {"x": row.get("x"), "id": n} for n, row in enumerate(random_rows(rng, 25))]
        versions: list[tuple[int, Chain]] = [(-100, chain)]
        (root / "versions").mkdir(parents=True)
        (root / "in").mkdir()
        options: dict[str, Any] = {"state": root / "state", "into": root / "out", "id": "id", "once": True}
        options |= {
            "versions": root / "versions",
            "watermark": 3,
            "cast": {"x": "int"},
            "speculation": rng.choice((0, 1, "inf")),
        }
        query, greatest = chain.text(within), None
        rows.sort(key=lambda row: row["ts"] + rng.randrange(4))
        waiting = rows
        while waiting:
            some, waiting = waiting[: (size := rng.randrange(1, 12))], waiting[size:]
            put(root / "in", f"{len(waiting):04}.jsonl", lines(some))
            if rng.random() < 0.5:
                chain = random_chain(rng, like=chain)
                now = max(versions[-1][0], -100 if greatest is None else greatest + 1)
                later = now + rng.randrange(4) if rng.random() < 0.4 else None
                versions.append((now if later is None else later, chain))
                text = chain.text(within) if later is None else f"-- since: {later}\n{chain.text(within)}"
                (root / "versions" / f"{len(versions)}-next.sase").write_text(text)
            with fast_disk():
                if rng.random() < 0.3:
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(follower, "step_bucket", killed)
                        with pytest.raises(KeyboardInterrupt):
                            acep.follow(root / "in", query, **options)
                    (root / "versions" / f"{len(versions) + 1000}.sase").write_text("no query")  # it is not read now
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(follower, "versions_in_folder", lambda *_: [])
                        acep.follow(root / "in", query, **options)
                    (root / "versions" / f"{len(versions) + 1000}.sase").unlink()
                acep.follow(root / "in", query, **options)
            greatest = max([row["ts"] for row in some] + ([] if greatest is None else [greatest]))
        with fast_disk():
            acep.follow(root / "in", query, **{**options, "end": True})
        want = accepted(versions, sorted(rows, key=lambda row: row["ts"]), within)
        assert given(found_in(root / "out")) == want, f"seed {seed}"
        replaced += len(want) > 0 and len(versions) > 1
    assert replaced > 0


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
