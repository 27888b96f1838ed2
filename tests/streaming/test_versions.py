"""The state of buckets in files: what a micro-batch begins with, what is refused, and what a kill leaves behind."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyarrow import fs

from acep.bucket_state import folders, run_orders
from acep.bucket_state.file_names import FORMAT, HEADER, MAGIC
from acep.bucket_state.folders import LocalFolder, RemoteFolder, state_folder
from acep.bucket_state.state_files import StateFile, StateFiles
from acep.errors import DataError, SnapshotError

pytestmark = pytest.mark.usefixtures("new_process")

QUERY = str(UUID(int=7))
CALL = "c0ffee"
BUCKETS = 3
KEEP = 4


def run_id(number: int) -> str:
    return str(UUID(int=number))


def task(folder: Path | str, run: int = 1, *, buckets: int = BUCKETS, keep: int = KEEP, call: str = CALL) -> StateFiles:
    """The versions as one task sees them."""
    return StateFiles(str(folder), query=QUERY, call=call, run=run_id(run), buckets=buckets, keep=keep)


def digest(number: int) -> str:
    return f"{number:032x}"


def data(batch: int, bucket: int) -> bytes:
    return f"state of {bucket} after {batch}".encode()


def micro_batch(folder: Path | str, batch: int, run: int = 1, *, buckets: int = BUCKETS, keep: int = KEEP) -> None:
    """All tasks of a micro-batch, each of which reads what the one before wrote."""
    for bucket in range(buckets):
        versions = task(folder, run, buckets=buckets, keep=keep)
        before = versions.begin_batch(batch)
        if before:
            assert versions.read(before[bucket]) == data(before[bucket].batch, bucket)
        versions.write(batch, bucket, batch * 10 + bucket, digest(batch), data(batch, bucket))
    task(folder, run, buckets=buckets, keep=keep).clean(batch)


def call_folder(folder: Path, call: str = CALL) -> Path:
    return folder / QUERY / call


def batches(folder: Path) -> list[int]:
    return sorted(int(each.name) for each in call_folder(folder).iterdir() if each.name != "runs")


def files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


# The versions before a micro-batch ------------------------------------------------------------------


def test_a_stream_begins_without_versions_and_goes_on_with_those_of_the_micro_batch_before(tmp_path: Path) -> None:
    assert task(tmp_path).begin_batch(0) == {}
    micro_batch(tmp_path, 0)
    micro_batch(tmp_path, 1)
    found = task(tmp_path).begin_batch(2)
    assert found == {b: StateFile(1, b, 1, 10 + b, digest(1)) for b in range(BUCKETS)}
    assert [task(tmp_path).read(found[b]) for b in range(BUCKETS)] == [data(1, b) for b in range(BUCKETS)]


@pytest.mark.parametrize("greatest", [None, 0, -1, -(2**63), 2**63 - 1])
def test_any_greatest_time_comes_back(tmp_path: Path, greatest: int | None) -> None:
    versions = task(tmp_path, buckets=1)
    versions.begin_batch(0)
    written = versions.write(0, 0, greatest, digest(1), b"")
    assert task(tmp_path, buckets=1).begin_batch(1) == {0: written}
    assert written.greatest == greatest
    assert versions.read(written) == b""


def test_each_of_the_micro_batches_kept_can_be_begun_again(tmp_path: Path) -> None:
    last = 20
    for batch in range(last + 1):
        micro_batch(tmp_path, batch)
    for batch in range(last, last - KEEP - 1, -1):
        for later in range(batch, last + 1):
            shutil.rmtree(call_folder(tmp_path) / str(later), ignore_errors=True)
        micro_batch(tmp_path, batch, run=100 - batch)
    with pytest.raises(SnapshotError, match=f"after micro-batch {last - KEEP - 2}"):
        task(tmp_path, run=200).begin_batch(last - KEEP - 1)


# Retries and runs -----------------------------------------------------------------------------------


def test_the_first_of_two_tasks_writes_the_version(tmp_path: Path) -> None:
    versions = task(tmp_path)
    versions.begin_batch(0)
    first = versions.write(0, 0, 5, digest(1), b"first")
    again = task(tmp_path)
    again.begin_batch(0)
    assert again.write(0, 0, 5, digest(1), b"second") == first
    assert again.read(first) == b"first"
    assert len(files(call_folder(tmp_path) / "0")) == 1


def test_other_rows_for_one_version_are_refused(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    versions = task(tmp_path, run=2)
    versions.begin_batch(0)
    for greatest, rows in ((0, digest(1)), (1, digest(0))):
        with pytest.raises(SnapshotError, match="other rows") as error:
            versions.write(0, 0, greatest, rows, b"")
        assert "a state= folder of its own" in (error.value.hint or "")


def test_a_run_that_begins_a_micro_batch_again_goes_on_with_its_own_versions(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    late = task(tmp_path, run=1)  # of the driver that is killed
    late.begin_batch(1)
    for run, text in ((1, b"old"), (2, b"new")):
        for bucket in range(BUCKETS - (run == 1)):
            versions = task(tmp_path, run)
            versions.begin_batch(1)
            versions.write(1, bucket, 7, digest(9), text)
    assert len(files(call_folder(tmp_path) / "1")) == 2 * BUCKETS - 1
    with pytest.raises(SnapshotError, match="another run"):
        late.write(1, BUCKETS - 1, 7, digest(9), b"late")
    for run in (2, 3):
        found = task(tmp_path, run).begin_batch(2)
        assert {task(tmp_path, run).read(found[b]) for b in range(BUCKETS)} == {b"new"}


def test_an_older_run_is_refused_also_in_a_new_process(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    task(tmp_path, run=2).begin_batch(1)
    for _ in range(2):
        with pytest.raises(SnapshotError, match="another run"):
            task(tmp_path).begin_batch(1)
        run_orders._begun.clear()
    task(tmp_path, run=2).begin_batch(1)
    assert sorted(each.name for each in (call_folder(tmp_path) / "runs").iterdir()) == [
        f"1-{run_id(1)}",
        f"2-{run_id(2)}",
    ]


def test_of_two_runs_that_take_one_order_one_goes_on(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    folder = call_folder(tmp_path) / "runs"
    for run in (2, 3):
        (folder / f"2-{run_id(run)}").touch()
    run_orders._begun.clear()
    task(tmp_path, run=3).begin_batch(1)
    with pytest.raises(SnapshotError, match="another run"):
        task(tmp_path, run=2).begin_batch(1)


def test_of_two_runs_that_begin_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    micro_batch(tmp_path, 0)
    write = LocalFolder.write

    def slowly(self: LocalFolder, path: str, content: bytes, **given: Any) -> None:
        if path.endswith(run_id(2)):
            task(tmp_path, run=3).begin_batch(1)
        write(self, path, content, **given)

    monkeypatch.setattr(LocalFolder, "write", slowly)
    with pytest.raises(SnapshotError, match="another run"):
        task(tmp_path, run=2).begin_batch(1)
    task(tmp_path, run=3).begin_batch(1)


def test_a_run_may_have_two_orders(tmp_path: Path) -> None:
    """Two of its tasks looked before and after another run began."""
    micro_batch(tmp_path, 0, run=1)
    folder = call_folder(tmp_path) / "runs"
    (folder / f"1-{run_id(2)}").touch()
    with pytest.raises(SnapshotError, match="another run"):
        task(tmp_path, run=1).begin_batch(1)
    (folder / f"2-{run_id(1)}").touch()
    micro_batch(tmp_path, 1, run=1)
    assert {v.run for v in task(tmp_path, run=1).begin_batch(2).values()} == {2}


def test_only_so_many_runs_keep_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_orders, "KEPT_RUNS", 5)
    for run in range(1, 20):
        micro_batch(tmp_path, 0, run=run)
        run_orders._begun.clear()
    assert len(files(call_folder(tmp_path) / "runs")) == 6


# Refusals --------------------------------------------------------------------------------------------


def test_a_checkpoint_that_was_rolled_back_is_refused_until_the_later_versions_are_gone(tmp_path: Path) -> None:
    for batch in range(6):
        micro_batch(tmp_path, batch)
    with pytest.raises(SnapshotError, match=r"goes on to micro-batch 5: .*rolled back or copied") as error:
        task(tmp_path, run=2).begin_batch(4)
    assert "remove the folders 4 and later" in (error.value.hint or "")
    task(tmp_path, run=1).begin_batch(6)  # the run that was there is not fenced off
    for batch in (4, 5):
        shutil.rmtree(call_folder(tmp_path) / str(batch))
    micro_batch(tmp_path, 4, run=2)


def test_folders_without_versions_are_not_later_versions(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    (call_folder(tmp_path) / "9").mkdir()
    (call_folder(tmp_path) / "9" / "tmp-0").touch()
    micro_batch(tmp_path, 1, run=2)


@pytest.mark.parametrize("change", ["another call", "another folder", "one lost", "all lost", "more buckets"])
def test_missing_versions_are_refused(tmp_path: Path, change: str) -> None:
    micro_batch(tmp_path, 0)
    versions = task(tmp_path)
    if change == "another call":
        versions = task(tmp_path, call="ab")
    elif change == "another folder":
        versions = task(tmp_path / "new")
    elif change == "one lost":
        next((call_folder(tmp_path) / "0").glob("1-*")).unlink()
    elif change == "all lost":
        shutil.rmtree(call_folder(tmp_path))
    else:
        versions = task(tmp_path, buckets=BUCKETS + 1)
    with pytest.raises(SnapshotError, match=r"micro-batch 0|was removed") as error:
        versions.begin_batch(1)
    assert len(error.value.render().splitlines()) == 2
    assert ("that of another query" in error.value.message) is (change == "another call")


def test_a_user_may_name_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    folder = state_folder(tmp_path / "a" / "b")
    assert folder == str(tmp_path / "a" / "b")
    micro_batch(folder, 0)
    assert state_folder(folder) == folder
    assert len(files(Path(folder))) == BUCKETS + 1


@pytest.mark.parametrize(
    "parts", [{"query": "../x"}, {"run": "a/b"}, {"call": "xyz"}, {"call": ""}, {"query": "A" * 36}]
)
def test_parts_that_are_no_file_names_are_refused(tmp_path: Path, parts: dict[str, str]) -> None:
    given = {"query": QUERY, "call": CALL, "run": run_id(1), **parts}
    with pytest.raises(DataError, match="cannot be part of a file name"):
        StateFiles(str(tmp_path), **given, buckets=1, keep=1)


@pytest.mark.parametrize("given", ["relative", "foo://a/b", "s3a://a:secret@b/c", "a\0b"])
def test_what_names_no_folder_is_refused(given: str) -> None:
    with pytest.raises(DataError) as error:
        task(given)
    assert "secret" not in error.value.render()
    assert len(error.value.render().splitlines()) <= 2


def test_of_an_error_of_many_lines_the_first_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_: str) -> None:
        raise OSError("Unable to load libjvm\ntried one\ntried another")

    monkeypatch.setattr(folders, "_filesystem", lacking)
    with pytest.raises(DataError) as error:
        task("hdfs://h/x")
    assert error.value.message == "the state folder `hdfs://h/x` cannot be used: Unable to load libjvm"


@pytest.mark.parametrize("where", ["a file", "below a file", "/proc/acep"])
def test_folders_that_cannot_be_used_are_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("mine")
    folder = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "x"}.get(where, Path(where))
    for use in (lambda: state_folder(folder), lambda: task(folder).begin_batch(0)):
        with pytest.raises(DataError, match="cannot be used") as error:
            use()
        assert len(error.value.render().splitlines()) == 2
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("given", [None, 3, b"bytes", ""])
def test_state_takes_a_path(given: Any) -> None:
    with pytest.raises(DataError, match="state= takes a folder"):
        state_folder(given)


# Files that are not whole ---------------------------------------------------------------------------


def test_every_damage_is_found(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    version = task(tmp_path).begin_batch(1)[0]
    path = call_folder(tmp_path) / "0" / version.name
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(SnapshotError, match="state is damaged"):
            task(tmp_path).read(version)
    for place in range(len(whole)):
        for bit in (1, 128):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
            with pytest.raises(SnapshotError, match=r"state (is damaged|has format version)"):
                task(tmp_path).read(version)
    path.write_bytes(whole + b"\0")
    with pytest.raises(SnapshotError, match="state is damaged"):
        task(tmp_path).read(version)
    path.unlink()
    with pytest.raises(SnapshotError, match="state is missing") as error:
        task(tmp_path).read(version)
    assert "roll it back to the beginning of micro-batch 0" in (error.value.hint or "")


def test_a_file_under_the_name_of_another_is_damaged(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    versions = task(tmp_path).begin_batch(1)
    folder = call_folder(tmp_path) / "0"
    shutil.copy(folder / versions[0].name, folder / versions[1].name)
    with pytest.raises(SnapshotError, match="state is damaged"):
        task(tmp_path).read(versions[1])


def test_a_later_format_is_told_apart_from_damage(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    version = task(tmp_path).begin_batch(1)[0]
    path = call_folder(tmp_path) / "0" / version.name
    path.write_bytes(HEADER.pack(MAGIC, FORMAT + 1, bytes(16), 0))
    with pytest.raises(SnapshotError, match=f"format version {FORMAT + 1}"):
        task(tmp_path).read(version)


def test_a_retry_writes_a_damaged_version_again(tmp_path: Path) -> None:
    micro_batch(tmp_path, 0)
    version = task(tmp_path).begin_batch(1)[0]
    (call_folder(tmp_path) / "0" / version.name).write_bytes(b"")
    micro_batch(tmp_path, 0)
    assert task(tmp_path).read(version) == data(0, 0)


@pytest.mark.parametrize(
    "name",
    [
        "0-1-5",
        f"0-1--0-{digest(0)}",
        f"00-1-5-{digest(0)}",
        f"0-1-5-{digest(0)}x",
        ".DS_Store",
        f"{9:0999}",
    ],
)
def test_foreign_files_are_left_alone(tmp_path: Path, name: str) -> None:
    micro_batch(tmp_path, 0)
    for folder in ("0", "runs", ""):
        with contextlib.suppress(OSError):  # a name that is too long
            (call_folder(tmp_path) / folder / name).write_text("foreign")
    for batch in range(1, 10):
        micro_batch(tmp_path, batch)


# Disks ----------------------------------------------------------------------------------------------


def test_a_version_is_durable_before_it_can_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    micro_batch(tmp_path, 0)
    done: list[str] = []
    sync, link = os.fsync, Path.hardlink_to

    def synced(descriptor: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name.partition('-')[0]}")
        sync(descriptor)

    def linked(self: Path, target: Path) -> None:
        done.append("link")
        link(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "hardlink_to", linked)
    versions = task(tmp_path)
    versions.begin_batch(1)
    versions.write(1, 0, None, digest(0), b"state")
    assert done == [f"sync {CALL}", "sync tmp", "link", "sync 1"]
    done.clear()
    versions.write(1, 1, None, digest(0), b"state")
    assert done == ["sync tmp", "link", "sync 1"]
    done.clear()
    task(tmp_path / "new").begin_batch(0)
    above = [CALL, QUERY.partition("-")[0], "new", tmp_path.name.partition("-")[0]]
    assert done[:4] == [f"sync {name}" for name in above]


def test_a_disk_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    for batch in range(8):
        micro_batch(tmp_path, batch)
    micro_batch(tmp_path, 7, run=2)
    assert task(tmp_path, run=2).write(7, 0, 70, digest(7), b"other").run == 2
    assert task(tmp_path, run=2).read(task(tmp_path, run=2).begin_batch(8)[0]) == data(7, 0)
    assert not [each for each in files(tmp_path) if each.name.startswith("tmp")]


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    micro_batch(tmp_path, 0)
    versions = task(tmp_path)
    versions.begin_batch(1)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        versions.write(1, 0, 0, digest(0), b"state")
    assert files(call_folder(tmp_path) / "1") == []


# Stores ---------------------------------------------------------------------------------------------


class Store(fs.FileSystemHandler):  # type: ignore[misc]
    """Objects by their path, like those of S3: no folders, no links, no moves. ``done`` is what was asked for.

    With ``folders`` it is like HDFS: folders are made, and a move refuses to replace a file.
    """

    def __init__(self, *, folders: bool = False) -> None:
        self.objects: dict[str, bytes] = {}
        self.folders = folders
        self.made: set[str] = set()
        self.done: list[str] = []
        self.fail = ""

    def get_type_name(self) -> str:
        return "store"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        kinds = [fs.FileType.File if path in self.objects else fs.FileType.NotFound for path in paths]
        return [fs.FileInfo(path, kind) for path, kind in zip(paths, kinds, strict=True)]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self.done.append("list")
        start = selector.base_dir + "/"
        rest = {path.removeprefix(start).partition("/")[::2] for path in self.objects if path.startswith(start)}
        kinds = {name: fs.FileType.Directory if below else fs.FileType.File for name, below in rest}
        return [fs.FileInfo(start + name, kind) for name, kind in kinds.items()]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        if path not in self.objects:
            raise FileNotFoundError(path)
        self.done.append("get")
        return pa.PythonFile(io.BytesIO(self.objects[path]), mode="r")

    def open_output_stream(self, path: str, _: object) -> pa.NativeFile:
        if self.folders and path.rpartition("/")[0] not in self.made:
            raise FileNotFoundError(path)
        return pa.PythonFile(Put(self, path), mode="w")

    def create_dir(self, path: str, _: bool) -> None:
        if not self.folders:
            raise NotImplementedError("no folders")
        self.made.add(path)

    def move(self, src: str, dest: str) -> None:
        if not self.folders:
            raise NotImplementedError("no moves")
        if dest in self.objects:
            raise FileExistsError(dest)
        self.objects[dest] = self.objects.pop(src)

    def delete_dir(self, path: str) -> None:
        self.done.append("delete")
        for each in [each for each in self.objects if each.startswith(path + "/")]:
            del self.objects[each]

    def delete_file(self, path: str) -> None:
        if path not in self.objects:
            raise FileNotFoundError(path)
        del self.objects[path]

    def _never(self, *_: object) -> None:
        raise NotImplementedError

    copy_file = open_append_stream = open_input_file = delete_dir_contents = delete_root_dir_contents = _never


class Put(io.BytesIO):
    """An object that is there when it is closed."""

    def __init__(self, store: Store, path: str) -> None:
        super().__init__()
        self.store, self.path = store, path

    def write(self, data: Any) -> int:
        if self.store.fail:
            raise OSError(self.store.fail)
        return super().write(data)

    def close(self) -> None:
        if not self.closed and not self.store.fail:
            self.store.done.append("put")
            self.store.objects[self.path] = self.getvalue()
        super().close()


@pytest.fixture(params=[False, True], ids=["objects", "moves"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store(folders=request.param)
    monkeypatch.setattr(folders, "_MOVES", ("py::store",) if request.param else ())
    monkeypatch.setattr(folders, "_filesystem", lambda _: (fs.PyFileSystem(made), "bucket/state"))
    return made


URI = "store://key:secret@bucket/state?region=x"


def test_a_store_keeps_versions_like_a_disk(store: Store) -> None:
    assert state_folder(URI) == URI
    assert not store.objects
    for batch in range(12):
        micro_batch(URI, batch)
    assert len(store.objects) == BUCKETS * (KEEP + 2) + 1
    # A killed driver, a run that begins again, and what is refused.
    versions = task(URI, run=2)
    versions.begin_batch(12)
    versions.write(12, 0, 120, digest(12), data(12, 0))
    micro_batch(URI, 12, run=3)
    assert {v.run for v in task(URI, run=3).begin_batch(13).values()} == {3}
    with pytest.raises(SnapshotError, match="another run"):
        task(URI, run=2).begin_batch(13)
    with pytest.raises(SnapshotError, match="rolled back") as error:
        task(URI, run=4).begin_batch(8)
    assert "secret" not in error.value.render()
    with pytest.raises(SnapshotError, match="other rows"):
        task(URI, run=3).write(12, 0, 120, digest(13), b"")
    assert not [path for path in store.objects if "tmp" in path]


def test_a_version_is_one_put(store: Store) -> None:
    for batch in range(20):
        micro_batch(URI, batch)
    for bucket in range(BUCKETS):
        store.done.clear()
        versions = task(URI)
        versions.read(versions.begin_batch(20)[bucket])
        versions.write(20, bucket, 0, digest(0), b"state")
        # Runs, the micro-batch before and this one are listed; the first task looks at the runs again.
        assert store.done == ["list", "list", "get", "list", *["list"] * (bucket == 0), "put"]
    store.done.clear()
    task(URI).clean(20)
    assert store.done == ["list", "list", "delete"]


def test_a_version_stays_where_two_tasks_come_at_once(store: Store) -> None:
    versions = task(URI)
    versions.begin_batch(0)
    first = versions.write(0, 0, 0, digest(0), b"first")
    assert versions.write(0, 0, 0, digest(0), b"other") == first
    assert versions.read(first) == b"first"
    path = next(path for path in store.objects if path.endswith(first.name))
    store.objects[path] = b"damaged"
    versions.write(0, 0, 0, digest(0), b"again")
    assert versions.read(first) == b"again"
    if store.folders:  # the other task was between its listing and its move
        folder = RemoteFolder(fs.PyFileSystem(store), "bucket/state", URI, moves=True)
        folder.write(path.removeprefix("bucket/state/"), b"late")
        assert versions.read(first) == b"again"
        assert not [path for path in store.objects if "tmp" in path]


def test_a_failed_put_leaves_nothing(store: Store) -> None:
    versions = task(URI)
    versions.begin_batch(0)
    before = dict(store.objects)
    store.fail = "no connection"
    with pytest.raises(DataError, match="no connection") as error:
        versions.write(0, 0, 0, digest(0), b"state")
    assert "secret" not in error.value.render()
    gc.collect()
    assert store.objects == before
    store.fail = ""
    assert versions.read(versions.write(0, 0, 0, digest(0), b"state")) == b"state"


@pytest.mark.parametrize("form", ["file://{}", "file:{}"])
def test_the_uri_of_a_disk_is_its_path(tmp_path: Path, form: str) -> None:
    micro_batch(form.format(tmp_path), 0)
    micro_batch(tmp_path, 1)
