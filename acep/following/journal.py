"""Keep the journal of a follower on disk: the files that each micro-batch takes, and the totals after it.

    plans/<batch>    the files of a micro-batch, written before it is processed
    done/<batch>     rows and totals, written after its results
    taken/<batch>    all files that micro-batches up to this one have taken and that were still in the folder
    gone/<batch>     names of taken files that were no longer in the folder before this micro-batch was planned
    settings         the query and options of the state, and the columns of the events

All are JSON. Plans up to the newest ``taken`` are removed, but for the last of them where files grow. So is what is
``gone`` before a micro-batch later than the next one, as that was before the state was put back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from acep.bucket_state.file_names import NUMBER
from acep.bucket_state.folders import LocalFolder
from acep.errors import SnapshotError
from acep.following.folder_files import FolderFile
from acep.following.selection import Selection
from acep.growing.stretches import Position, Stretch
from acep.streaming.query_versions import NewVersion

__all__ = ["BACK", "EVERY", "KEEP", "Journal", "Planned"]

KEEP = 10
"""The number of micro-batches that can be repeated."""
EVERY = 100
"""The number of micro-batches after which plans are removed."""
BACK = "put a copy of the whole folder back, or begin a new state and output"
"""The hint where the state is damaged."""
_BATCH = re.compile(NUMBER)


@dataclass(frozen=True)
class Planned:
    """A micro-batch: its files, whether the stream ends with it, when it began, in milliseconds since 1970, new
    versions of queries, and whether a row may end the stream, as it always could before there was the option. Of files
    that grow it has the ``stretches``, the ``positions`` after it, and the ``gaps`` (:class:`Selection`)."""

    batch: int
    files: tuple[FolderFile, ...]
    end: bool
    began: int
    versions: tuple[NewVersion, ...] = ()
    end_marker: bool = True
    stretches: tuple[Stretch, ...] = ()
    positions: tuple[Position, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def selection(self) -> Selection:
        """The files, or parts of files, that the micro-batch takes."""
        return Selection(self.files, self.stretches, self.positions, self.gaps)

    def data(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        parts = {"files": [*map(astuple, self.files)], "versions": [version.data() for version in self.versions]}
        growth = {"stretches": [*map(astuple, self.stretches)], "positions": [*map(astuple, self.positions)]}
        return asdict(self) | parts | growth


class Journal:
    """The journal in a folder. ``taken`` has by name each file that was taken, and the number of its micro-batch."""

    def __init__(self, folder: LocalFolder) -> None:
        """Read the journal. Raises :class:`SnapshotError` if it is damaged, :class:`DataError` if it cannot be read."""
        self._folder = folder
        self.taken: dict[str, tuple[FolderFile, int]] = {}
        self._base = max(self._numbers("taken"), default=-1)
        if self._base >= 0:
            self.taken = self._read_taken(self._base)
        plans = [number for number in self._numbers("plans") if number > self._base]
        self._last = plans[-1] if plans else self._base
        if plans != list(range(self._base + 1, self._last + 1)):
            raise self._damage_error("plans")
        self.pending: Planned | None = None
        self.ended = False
        self.positions: tuple[Position, ...] = ()
        if self._folder.read(f"plans/{self._base}") is not None:  # files grow
            self.positions = self._plan(self._base).positions
        for number in plans:
            self._note(self._plan(number))
        self._leave_out(self._read_gone(self._last + 1))
        for number in self._numbers("gone"):
            if number > self._last + 1:
                self._folder.remove_file(f"gone/{number}")
        done_numbers = self._numbers("done")
        if self._last >= 0 and (not done_numbers or done_numbers[-1] < self._last):
            self.pending = self._plan(self._last)
        if (done_numbers and done_numbers[-1] > self._last) or (
            self.pending and self._last and self._last - 1 not in done_numbers
        ):
            raise self._damage_error("done")

    @property
    def next(self) -> int:
        """The number of the next micro-batch: the one that was planned but is not done, or a new one."""
        return self._last if self.pending is not None else self._last + 1

    @property
    def shown(self) -> str:
        """The name of the folder for messages."""
        return self._folder.shown

    def settings(self) -> Any:
        """Return the settings of the state, ``None`` for a new one."""
        return None if self._folder.read("settings") is None else self._read("settings")

    def settle(self, settings: Any) -> Any:
        """Write the settings, unless another follower has done so at the same time, and return the stored ones."""
        self._folder.write("settings", json.dumps(settings).encode(), parents=100)
        return self._read("settings")

    def plan(self, planned: Planned) -> Planned:
        """Write the plan of a micro-batch, and return the stored one, which another follower may have written first."""
        self._folder.write(f"plans/{planned.batch}", json.dumps(planned.data()).encode(), parents=1)
        self._last, self.pending = planned.batch, self._plan(planned.batch)
        self._note(self.pending)
        return self.pending

    def finish(self, totals: dict[str, Any]) -> None:
        """Mark the pending micro-batch as done, once its results are durable, and remove old files."""
        self._folder.write(f"done/{self._last}", json.dumps(totals).encode(), replace=True, parents=1)
        self.pending = None
        if (self._last + 1) % EVERY == 0:
            self._tidy()

    def totals_after(self, batch: int) -> dict[str, Any] | None:
        """Return the totals after a micro-batch, ``None`` if they are not stored."""
        if self._folder.read(f"done/{batch}") is None:
            return None
        totals = self._read(f"done/{batch}")
        types = {"rows": int, "told": str, "names": str, "results": int}
        if isinstance(totals, dict) and all(type(({"results": 0} | totals).get(name)) is types[name] for name in types):
            return totals
        raise self._damage_error(f"done/{batch}")

    def forget(self, names: set[str]) -> None:
        """Forget files that were taken and are not among the ``names`` in the folder any more. If one comes again, it
        is new, also after a restart."""
        missing_names = sorted(self.taken.keys() - names)
        if missing_names:
            number = self._last + 1
            before = self._read_gone(number)
            self._folder.write(
                f"gone/{number}", json.dumps([*before, *missing_names]).encode(), replace=True, parents=1
            )
            self._leave_out(missing_names)

    def update(self, same: Mapping[str, FolderFile]) -> None:
        """Replace what is known of taken files that have the same bytes, so that they are not compared again."""
        self.taken |= {name: (file, self.taken[name][1]) for name, file in same.items()}

    def way_out(self, batch: int, versions: str) -> str:
        """Return the hint how to continue without the missing files of a micro-batch."""
        return (
            f"put it back as it was; or, to go on without it, remove `{self.shown}/plans/{batch}` and, if it is there,"
            f" `{versions}/{batch}`"
        )

    def _note(self, planned: Planned) -> None:
        self._leave_out(self._read_gone(planned.batch))
        self.taken |= {file.name: (file, planned.batch) for file in planned.files}
        self.ended = self.ended or planned.end
        self.positions = planned.positions

    def _leave_out(self, names: Iterable[str]) -> None:
        for name in names:
            self.taken.pop(name, None)

    def _read_gone(self, batch: int) -> list[str]:
        if self._folder.read(f"gone/{batch}") is None:
            return []
        names = self._read(f"gone/{batch}")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        raise self._damage_error(f"gone/{batch}")

    def _read_taken(self, base: int) -> dict[str, tuple[FolderFile, int]]:
        try:
            files = [(_file(fields), int(batch)) for batch, *fields in self._read(f"taken/{base}")]
        except (TypeError, ValueError):
            raise self._damage_error(f"taken/{base}") from None
        return {file.name: (file, batch) for file, batch in files}

    def _plan(self, batch: int) -> Planned:
        data = self._read(f"plans/{batch}")
        try:
            files = tuple(map(_file, data["files"]))
            versions = tuple(map(NewVersion.from_data, data.get("versions", ())))
            marker = data.get("end_marker", True) is True
            stretches = tuple(map(Stretch.from_data, data.get("stretches", ())))
            positions = tuple(map(Position.from_data, data.get("positions", ())))
            gaps = tuple(map(str, data.get("gaps", ())))
            began = int(data["began"])
            batch, is_end = int(data["batch"]), data["end"] is True
            return Planned(batch, files, is_end, began, versions, marker, stretches, positions, gaps)
        except (KeyError, TypeError, ValueError):
            raise self._damage_error(f"plans/{batch}") from None

    def _tidy(self) -> None:
        base = self._last - KEEP
        if base <= self._base:
            return
        records = [(batch, *astuple(file)) for file, batch in self.taken.values() if batch <= base]
        self._folder.write(f"taken/{base}", json.dumps(records).encode(), replace=True, parents=1)
        for kind in ("taken", "plans", "done", "gone"):
            for number in self._numbers(kind):
                is_used_up = kind == "gone" or (kind == "plans" and not self.positions)  # it says how far files grew
                if number < base or (number == base and is_used_up):
                    self._folder.remove_file(f"{kind}/{number}")
        self._base = base

    def _numbers(self, kind: str) -> list[int]:
        return sorted(int(name) for name in self._folder.names(kind) if _BATCH.fullmatch(name))

    def _read(self, path: str) -> Any:
        try:
            return json.loads(self._folder.read(path) or b"")
        except ValueError:
            raise self._damage_error(path) from None

    def _damage_error(self, path: str) -> SnapshotError:
        return SnapshotError(
            f"the state is damaged, or a part of it is missing: `{self.shown}/{path}`", hint=BACK, code="state_damaged"
        )


def _file(fields: Sequence[Any]) -> FolderFile:
    """Return a file from its fields, of which earlier versions of acep wrote the first three. Raises
    :class:`TypeError` or :class:`ValueError` for other data."""
    name, size, mtime_ns, *identity = fields
    ctime_ns, inode, born_ns, digest = identity or (0, 0, 0, "")
    return FolderFile(str(name), int(size), int(mtime_ns), int(ctime_ns), int(inode), int(born_ns), str(digest))
