"""Which files a follower takes: some change, are replaced or come again, some are links or pipes, and some have
attributes of another kind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, DataWarning, QueryError, SnapshotError
from acep.following import folder_files
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.runner.streams import Stream, fast_disk

AB = acep.regex("ab", within=5)
ANOTHER = "is another file than the one whose events were taken"


@pytest.fixture(autouse=True)
def _fast_disk() -> Iterator[None]:
    with fast_disk():
        yield


def replace_bytes(path: Path, text: str, *, in_place: bool, same_time: bool = False) -> None:
    """Give a file other bytes: by writing to it, or by renaming another file to its name."""
    stat = path.stat()
    draft = path if in_place else path.with_name(f".{path.name}")
    draft.write_text(text, encoding="utf-8")
    if same_time:
        os.utime(draft, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    draft.replace(path)


# Files that come again ---------------------------------------------------------------------------


@pytest.mark.parametrize("looks", [True, False], ids=["seen to be gone", "not seen to be gone"])
@pytest.mark.parametrize("same_place", [True, False], ids=["written anew", "renamed"])
def test_a_file_that_is_removed_and_comes_again_with_new_events_is_new(
    looks: bool, same_place: bool, tmp_path: Path
) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("day.csv", "ts,type\n1,a\n")
    stream.follow()
    path.unlink()
    if looks:
        assert stream.follow().batches == 0
    (path if same_place else path.with_name(".day.csv")).write_text("ts,type\n2,b\n3,x\n")
    if not same_place:
        path.with_name(".day.csv").replace(path)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        assert stream.follow().report.matches == 1
    assert [ANOTHER in str(warning.message) for warning in raised] == ([] if looks else [True])
    assert stream.follow().batches == 0


def test_the_same_file_counts_as_new_only_if_it_was_seen_to_be_gone(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    path.rename(tmp_path / "away.csv")
    (tmp_path / "away.csv").rename(path)
    assert stream.follow().batches == 0
    path.rename(tmp_path / "away.csv")
    assert stream.follow().batches == 0
    (tmp_path / "away.csv").rename(path)
    assert stream.follow().report.events == 2


def test_a_running_follower_sees_what_goes_and_comes(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    texts = ["ts,type\n1,a\n", "ts,type\n2,b\n", "ts,type\n9,a\n", "ts,type\n10,b\n11,x\n"]

    def next_day(_: Any) -> None:
        (stream.events / "day.csv").unlink()
        if texts:
            stream.put("day.csv", texts.pop(0))

    stream.put("day.csv", texts.pop(0))
    with pytest.warns(DataWarning, match=ANOTHER):
        assert stream.follow(tell=next_day).report.matches == 2


def test_of_a_file_that_was_gone_its_new_bytes_are_taken_whatever_their_size_and_time(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stat = path.stat()
    stream.follow()
    path.unlink()
    stream.follow()
    path.write_text("ts,type\n2,b\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert stream.follow(end=True).report.matches == 1


def test_other_bytes_of_the_same_size_and_time_in_a_taken_file_are_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    replace_bytes(path, "ts,type\n2,b\n", in_place=True, same_time=True)
    with pytest.raises(DataError, match=r"`1\.csv` was changed after its events had been taken") as error:
        stream.follow()
    assert error.value.code == "file_read"
    path.unlink()
    stream.put("2.csv", "ts,type\n2,b\n3,x\n")
    assert stream.follow().report.matches == 1


def test_a_file_of_the_same_size_and_time_that_replaces_a_taken_one_is_new(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    replace_bytes(path, "ts,type\n2,b\n", in_place=False, same_time=True)
    with pytest.warns(DataWarning, match=ANOTHER):
        assert stream.follow(end=True).report.matches == 1


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "renamed"])
def test_a_file_that_has_grown_is_refused_though_it_is_a_copy(in_place: bool, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    replace_bytes(path, "ts,type\n1,a\n2,b\n", in_place=in_place)
    with pytest.raises(DataError, match=r"`1\.csv` was changed after"):
        stream.follow()


def test_a_file_that_is_emptied_is_not_gone(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    path.write_text("")
    assert stream.follow().batches == 0  # it may be written now
    path.write_text("ts,type\n1,a\n2,b\n")
    with pytest.raises(DataError, match=r"`1\.csv` was changed after"):
        stream.follow()


def test_other_rights_and_times_are_no_change_and_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    compared = []
    digest_of = folder_files.digest_of
    monkeypatch.setattr(folder_files, "digest_of", lambda *given: compared.append(given) or digest_of(*given))
    path.chmod(0o600)
    os.utime(path)

    def look_again(_: Any) -> None:
        if len(list(stream.events.iterdir())) < 5:
            stream.put(f"{len(list(stream.events.iterdir())) + 1}.csv", "ts,type\n2,b\n")

    stream.put("2.csv", "ts,type\n2,b\n")
    assert stream.follow(tell=look_again).batches == 4
    assert [given[0].name for given in compared] == ["1.csv", "2.csv", "3.csv", "4.csv", "5.csv"]


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "renamed"])
def test_a_planned_file_that_is_replaced_with_the_same_size_and_time_is_refused(in_place: bool, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n2,b\n3,x\n")
    die(stream)
    replace_bytes(path, "ts,type\n1,b\n2,a\n3,x\n", in_place=in_place, same_time=True)
    with pytest.raises(DataError, match="was changed while its events were taken"):
        stream.follow()
    replace_bytes(path, "ts,type\n1,a\n2,b\n3,x\n", in_place=False, same_time=True)  # put back as it was
    assert stream.follow().report.matches == 1


def test_what_was_gone_after_the_micro_batch_to_which_a_state_is_put_back_is_forgotten(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    paths = []
    for number in range(3):
        paths.append(stream.put(f"{number}.csv", f"ts,type\n{2 * number},a\n{2 * number + 1},b\n"))
        stream.follow()
    paths[2].rename(tmp_path / "away.csv")
    stream.follow()
    assert json.loads((stream.state / "gone" / "3").read_text()) == ["2.csv"]
    # Back to the beginning of micro-batch 2, as docs/howto/follow.md says.
    for path in (*stream.state.glob("plans/2"), *stream.state.glob("done/2"), stream.found / "000000002.jsonl"):
        path.unlink(missing_ok=True)
    for path in (*stream.state.glob("versions/*/*/2/*"), *stream.state.glob("versions/*/*/2")):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "away.csv").rename(paths[2])
    assert stream.follow().report.events == 6
    assert not (stream.state / "gone" / "3").exists()
    assert stream.follow(end=True).report.events == 6


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_a_damaged_list_of_what_is_gone_is_one_line(text: str, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    (stream.events / "1.csv").unlink()
    stream.follow()
    (stream.state / "gone" / "1").write_text(text)
    with pytest.raises(SnapshotError, match=r"is damaged, or a part of it is missing: .*gone/1"):
        stream.follow()


def test_a_state_of_an_earlier_acep_has_sizes_and_times_alone(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n")
    stream.follow()
    plan = json.loads((stream.state / "plans" / "0").read_text())
    plan["files"] = [fields[:3] for fields in plan["files"]]
    (stream.state / "plans" / "0").write_text(json.dumps(plan))
    path.chmod(0o600)
    assert stream.follow().batches == 0
    replace_bytes(path, "ts,type\n2,b\n3,x\n", in_place=False)
    with pytest.raises(DataError, match=r"`1\.csv` was changed after"):
        stream.follow()


def die(stream: Stream, **options: Any) -> None:
    """Follow, and be killed after the plan of a micro-batch, if there is one."""

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep.following.follower.step_bucket", fail)
        with contextlib.suppress(RuntimeError):
            stream.follow(**options)


def random_steps(rng: random.Random) -> list[dict[str, Any]]:
    """Steps of somebody who moves files, and of a follower that is killed now and then."""
    kinds = ["put", "put", "remove", "follow", "die"]
    return [
        {"do": rng.choice(kinds), "name": f"{rng.randrange(4)}.csv", "number": number}
        for number in range(rng.randint(3, 14))
    ]


def complaint_of_steps(steps: list[dict[str, Any]], folder: Path) -> str:
    """Do the steps, and say how the numbers that are found differ from those of the files that came."""
    stream = Stream(Path(tempfile.mkdtemp(dir=folder)), "PATTERN SEQ(a x) WITHIN 1 RETURN x.n AS n", max_files=2)
    waiting: dict[str, int] = {}
    expected, planned = list[int](), False
    for step in [*steps, {"do": "follow", "name": ""}]:
        path = stream.events / step["name"]
        if step["do"] == "put" and not path.exists():
            path.with_suffix(".tmp").write_text(f"ts,type,n\n{step['number']},a,{step['number']}\n")
            path.with_suffix(".tmp").replace(path)
            waiting[step["name"]] = step["number"]
        elif step["do"] == "remove" and not planned:
            path.unlink(missing_ok=True)
            waiting.pop(step["name"], None)
        elif step["do"] == "die":
            die(stream)
            planned = bool(waiting)
        elif step["do"] == "follow":
            stream.follow()
            expected, waiting, planned = [*expected, *waiting.values()], {}, False
    stream.follow(end=True)
    numbers = sorted(row["values"]["n"] for row in stream.lines())
    return difference(numbers, sorted(expected), ("follow", "files"))


@pytest.mark.long
def test_each_file_that_comes_is_taken_once_whatever_is_removed_and_killed(cases: CaseCounts, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for seed in range(cases(200)):
            steps = random_steps(random.Random(seed))
            fail_if_wrong_on_rows(steps, f"seed {seed}", lambda steps: complaint_of_steps(steps, tmp_path))


# Links, pipes, and folders that lead back --------------------------------------------------------


def test_pipes_and_devices_in_a_folder_are_left_out_with_a_warning(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n1,a\n2,b\n3,x\n")
    os.mkfifo(stream.events / "2.csv")
    (stream.events / "3.csv").symlink_to("/dev/null")
    with pytest.warns(DataWarning, match=r"`2\.csv` is no file, but a pipe or a device; `3\.csv` is no file") as raised:
        assert stream.follow(max_files=1).report.matches == 1
    assert len(raised) == 1


@pytest.mark.parametrize("target", [".", "..", "../events", "deep", "deep/../deep"])
def test_a_link_to_a_folder_that_is_taken_anyway_is_left_out_with_a_warning(target: str, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    (stream.events / "deep").mkdir()
    stream.put("1.csv", "ts,type\n1,a\n").rename(stream.events / "deep" / "1.csv")
    stream.put("2.csv", "ts,type\n2,b\n3,x\n")
    (stream.events / "link").symlink_to(target)
    with pytest.warns(DataWarning, match="`link` is a link to "):
        done = stream.follow()
    assert (done.report.events, done.report.matches) == (3, 1)


def test_a_link_to_a_file_that_is_taken_anyway_is_left_out_with_a_warning(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("2024.csv", "ts,type\n1,a\n2,b\n3,x\n")
    (stream.events / "latest.csv").symlink_to("2024.csv")
    with pytest.warns(DataWarning, match=r"`latest\.csv` is a link to `2024\.csv`, which is in the folder"):
        assert stream.follow().report.events == 3


@pytest.mark.parametrize("is_taken", [False, True], ids=["new", "taken"])
def test_a_file_of_two_names_by_a_hard_link_is_refused(is_taken: bool, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    path = stream.put("1.csv", "ts,type\n1,a\n2,b\n3,x\n")
    if is_taken:
        assert stream.follow().report.events == 3
    (stream.events / "2.csv").hardlink_to(path)
    with pytest.raises(DataError, match=r"1\.csv` and `.*2\.csv` are one file, by a hard link"):
        stream.follow()
    (stream.events / "2.csv").rename(stream.events / "2.csv.tmp")
    assert stream.follow().report.matches == 1


@pytest.mark.parametrize("hidden", ["_data", "../elsewhere"])
def test_a_link_to_what_is_not_taken_otherwise_is_followed(hidden: str, tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    (stream.events / hidden).mkdir()
    (stream.events / hidden / "1.csv").write_text("ts,type\n1,a\n2,b\n3,x\n")
    (stream.events / hidden / "back").symlink_to(stream.events / hidden)
    (stream.events / "day").symlink_to(stream.events / hidden)
    with pytest.warns(DataWarning, match="`day/back` is a link to a folder that it is in"):
        assert stream.follow().report.matches == 1
    (stream.events / "again").symlink_to(stream.events / hidden)
    with pytest.raises(DataError, match=r"`again` and `day` in .* are the same, by a link"):
        stream.follow()


def test_links_that_lead_nowhere_or_in_a_circle_stop_nothing(tmp_path: Path) -> None:
    stream = Stream(tmp_path, AB)
    stream.put("1.csv", "ts,type\n1,a\n2,b\n3,x\n")
    (stream.events / "gone.csv").symlink_to("nowhere")
    (stream.events / "circle.csv").symlink_to("circle.csv")
    with pytest.warns(DataWarning) as said:
        assert stream.follow(end=True, once=False).report.matches == 1
    (warning,) = said
    assert "`circle.csv` is a link that cannot be followed" in str(warning.message)
    assert str(warning.message).endswith("`gone.csv` is a link that leads nowhere")


def test_a_link_that_leads_nowhere_is_warned_of_by_match(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,type\n1,a\n2,b\n")
    (tmp_path / "gone.csv").symlink_to("nowhere.csv")
    (tmp_path / ".hidden.csv").symlink_to("nowhere.csv")
    for paths in (tmp_path, str(tmp_path / "*.csv"), str(tmp_path / "**" / "*.csv")):
        with pytest.warns(DataWarning, match=r"gone\.csv` is a link that leads nowhere$") as said:
            assert len(acep.match(paths, AB)) == 1
        assert len(said) == 1
    with pytest.raises(DataError, match="there is no file"):
        acep.match(tmp_path / "gone.csv", AB)


def test_a_pipe_in_a_folder_does_not_hang_a_match(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,type\n1,a\n2,b\n")
    os.mkfifo(tmp_path / "2.csv")
    for paths in (tmp_path, str(tmp_path / "*.csv")):
        with pytest.warns(DataWarning, match=r"`[^`]*2\.csv` is no file, but a pipe or a device"):
            assert len(acep.match(acep.read_events(paths), AB)) == 1


# Attributes of another kind ----------------------------------------------------------------------

BY_DEVICE = acep.parse("PATTERN SEQ(a x, b y) WHERE [dev.id] WITHIN 9")
OF_ANOTHER_KIND = [7, 7.5, "seven", True, [7], [], [{"id": 7}]]
WITHOUT_THE_FIELD = [None, {}, {"no": 1}, {"id": None}]


def lines_of_kinds(folder: Path, value: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, row in (("1", {"ts": 1, "type": "a", "dev": {"id": 7}}), ("2", {"ts": 2, "type": "b", "dev": value})):
        (folder / f"{name}.jsonl").write_text(json.dumps(row) + "\n")


@pytest.mark.parametrize("value", OF_ANOTHER_KIND, ids=repr)
def test_an_object_that_is_of_another_kind_in_a_later_file_is_refused_as_by_match(value: Any, tmp_path: Path) -> None:
    stream = Stream(tmp_path, BY_DEVICE)
    lines_of_kinds(stream.events, value)
    with pytest.raises(DataError, match=r"2\.jsonl`, line 1: `dev` is .*, but an object in"):
        acep.match(acep.read_events(stream.events), BY_DEVICE)
    with pytest.raises(DataError, match=r"2\.jsonl`, line 1: `dev` is .*, not an object"):
        stream.follow(max_files=1)
    # Nothing of the file was taken, so that it can be mended.
    (stream.events / "2.jsonl").write_text('{"ts": 2, "type": "b", "dev": {"id": 7}}\n')
    assert stream.follow(end=True).report.matches == 1


@pytest.mark.parametrize("value", WITHOUT_THE_FIELD, ids=repr)
def test_an_object_without_the_field_is_null_there(value: Any, tmp_path: Path) -> None:
    stream = Stream(tmp_path, BY_DEVICE)
    lines_of_kinds(stream.events, value)
    assert len(acep.match(acep.read_events(stream.events), BY_DEVICE)) == 0
    done = stream.follow(max_files=1, end=True)
    assert (done.report.events, done.report.matches) == (2, 0)


def test_an_object_deep_in_another_one_is_refused_if_it_is_of_another_kind(tmp_path: Path) -> None:
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(a x, b y) WHERE y.at.host.name = x.at.host.name WITHIN 9"))
    stream.put("1.jsonl", '{"ts": 1, "type": "a", "at": {"host": {"name": "u"}}}\n')
    stream.put("2.jsonl", '{"ts": 2, "type": "b", "at": {}}\n{"ts": 2, "type": "b", "at": {"host": "u"}}\n')
    with pytest.raises(DataError, match=r"2\.jsonl`, line 2: `at\.host` is text, not an object"):
        stream.follow(max_files=1)


@pytest.mark.parametrize(
    ("condition", "casts"),
    [
        ("contains(p.x, 'u')", {"contains(x, 'u')": "bool"}),
        ("contains(p.x, 'u') AND NOT contains(p.x, 'v')", {"contains(x, 'u')": "bool", "contains(x, 'v')": "bool"}),
        ("p.x[1] = 'u'", {"x[1]": "string"}),
        ("CAST(p.x AS text) LIKE '%u%'", {"x": "string"}),
        ("p.y = 'u'", {"y": "string"}),
    ],
)
def test_an_attribute_that_comes_later_is_refused_with_the_cast_that_works(
    condition: str, casts: dict[str, str], tmp_path: Path
) -> None:
    query = acep.parse(f"PATTERN a p WHERE {condition}")
    (tmp_path / "refused").mkdir()
    stream = Stream(tmp_path / "refused", query)
    stream.put("1.jsonl", '{"ts":1,"type":"a"}\n')
    with pytest.raises(QueryError, match="unknown column") as wrong:
        stream.follow()
    assert " row" not in str(wrong.value.hint)
    assert f"cast={json.dumps(casts)}" in str(wrong.value.hint)
    stream = Stream(tmp_path, query, cast=casts)
    stream.put("1.jsonl", '{"ts":1,"type":"a"}\n')
    with pytest.warns(DataWarning, match="which is cast: it is null"):
        stream.follow()
    stream.put("2.jsonl", '{"ts":2,"type":"a","x":["u"],"y":"u"}\n')
    assert stream.follow(end=True).report.matches == 1


def test_a_cast_of_a_list_that_the_query_uses_names_the_parts(tmp_path: Path) -> None:
    stream = Stream(tmp_path, acep.parse("PATTERN a p WHERE contains(p.x, 'u')"), cast={"x": "string"})
    path = stream.put("1.jsonl", '{"ts":1,"type":"a"}\n')
    with pytest.raises(DataError, match="there is no column `x`") as missing:
        stream.follow()
    assert 'cast={"contains(x, \'u\')": "bool"}' in str(missing.value.hint)
    path.write_text('{"ts":1,"type":"a","x":["u"]}\n')
    with pytest.raises(DataError, match=r"`contains\(x, 'u'\)`, a part of it, is used") as wrong:
        stream.follow()
    assert "leave the cast of `x` out" in str(wrong.value.hint)


# Texts that look like times in some files ---------------------------------------------------------

TIME, DAY = "2024-01-01T10:00:00", "2024-01-02"
LATER = acep.parse("PATTERN SEQ(a x, b y) WHERE x.d < y.d WITHIN 9")


def dated(ts: int, kind: str, value: str) -> str:
    return json.dumps({"ts": ts, "type": kind, "d": value}) + "\n"


@pytest.mark.parametrize("odd", ["never", "2024-01-02T00:00:00Z", "0000-01-01"])
def test_an_odd_text_in_another_file_of_a_micro_batch_is_named(odd: str, tmp_path: Path) -> None:
    """It is that of `acep match`: no earlier file is blamed, and the answer is the same."""
    stream = Stream(tmp_path, LATER)
    stream.put("1.jsonl", dated(1, "a", TIME))
    path = stream.put("2.jsonl", dated(2, "b", DAY) + dated(3, "b", TIME) + dated(4, "x", odd))
    with pytest.warns(DataWarning, match=re.escape(f"{path}`, line 3: `d` is {odd!r}, and 3 values of the column")):
        stream.follow()
    stream.put("3.jsonl", dated(5, "a", TIME) + dated(6, "b", DAY))  # all of them look like times
    matches = stream.follow(end=True, once=False).report.matches
    with pytest.warns(DataWarning, match=r"2\.jsonl`, line 3"):
        assert matches == acep.match(stream.events, LATER).count() == 3


@pytest.mark.parametrize(
    ("form", "first", "second", "options", "message"),
    [
        (
            "jsonl",
            dated(1, "a", TIME),
            dated(2, "b", TIME) + dated(3, "b", "never"),
            {},
            "line 2: `d` is string, as 'never'",
        ),
        (
            "csv",
            f"ts,type,d\n1,a,{TIME}\n",
            f"ts,type,d\n2,b,{TIME}\n3,b,never\n",
            {},
            "line 3: `d` is string, as 'never'",
        ),
        (
            "csv",
            "ts;type;d\n1;a;5\n",
            "ts;type;d\n2;b;7\n3;b;1,5\n",
            {"delimiter": ";", "decimal": ","},
            "line 3: `d` is double, as 1,5 is",
        ),
    ],
    ids=["json", "csv", "comma"],
)
def test_an_odd_value_in_a_later_micro_batch_is_refused_with_its_line(
    form: str, first: str, second: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    stream = Stream(tmp_path, LATER, **options)
    stream.put(f"1.{form}", first)
    stream.follow()
    path = stream.put(f"2.{form}", second)
    with pytest.raises(DataError, match=re.escape(f"`{path}`, {message}")):
        stream.follow()


def test_a_far_time_in_a_later_micro_batch_is_refused_with_its_line(tmp_path: Path) -> None:
    """A column of numbers, and then times that are beyond those of Python."""
    stream = Stream(tmp_path, LATER)
    stream.put("1.parquet", pa.table({"ts": [1], "type": ["a"], "d": [7]}))
    stream.follow()
    far = pa.array([0, 253_402_300_800], pa.timestamp("s", "UTC"))
    stream.put("2.parquet", pa.table({"ts": [2, 3], "type": ["b", "b"], "d": far}).slice(1))
    with pytest.raises(DataError, match="as 10000-01-01 00:00:00Z is, and the files before it made it int64"):
        stream.follow()


# Times that are finer than those of earlier files -------------------------------------------------

FINE = "2024-01-01T00:00:01.000000001"


@pytest.mark.parametrize(
    ("name", "first", "second", "cast"),
    [
        ("ts", "ts,type,t\n2024-01-01T00:00:00.000001,a,\n", f"ts,type,t\n{FINE},b,\n", None),
        ("ts", "ts,type,t\n2024-01-01,a,\n", f"ts,type,t\n{FINE}Z,b,\n".replace("Z", ""), None),
        ("t", "ts,type,t\n1,a,2024-01-01\n", f"ts,type,t\n2,b,{FINE}\n", None),
        ("t", "ts,type,t\n1,a,\n", f"ts,type,t\n2,b,{FINE}Z\n", None),
        ("ts", "ts,type,t\n1.5,a,\n", "ts,type,t\n3.000000001,b,\n", "timestamp(s)"),
    ],
    ids=["time", "date", "attribute", "null", "seconds"],
)
def test_what_is_said_of_finer_times_works(
    name: str, first: str, second: str, cast: str | None, tmp_path: Path
) -> None:
    query = acep.parse(f"PATTERN SEQ(a x, b y) WHERE x.{name} < y.{name} OR y.{name} IS NOT NULL WITHIN 9 EVENTS")
    options: dict[str, Any] = {"max_files": 1} | ({} if cast is None else {"cast": {name: cast}})
    stream = Stream(tmp_path / "one", query)
    for i, text in enumerate((first, second)):
        stream.put(f"{i}.csv", text)
    with pytest.raises(DataError, match=f"`{name}` is timestamp\\[ns") as wrong:
        stream.follow(**options)
    again = Stream(tmp_path / "two", query)
    texts = [first, second]
    if (proposed := re.search(r'cast=\{"(\w+)": "(.*?)"\}', str(wrong.value.hint))) is not None:
        assert proposed[2] == "timestamp(ns)"
        options["cast"] = {proposed[1]: proposed[2]}
    else:
        assert "with this file first" in str(wrong.value.hint)
        texts.reverse()
    for i, text in enumerate(texts):
        again.put(f"{i}.csv", text)
        again.follow(**options)
