"""Make sure that only the newest run of a streaming query continues with the state of a call of match."""

from __future__ import annotations

import re

from acep.bucket_state.file_names import NUMBER
from acep.bucket_state.folders import Folder
from acep.errors import SnapshotError

__all__ = ["UUID", "Runs"]

KEPT_RUNS = 100
"""The number of runs of a call whose files are kept in its folder."""
REMEMBERED_RUNS = 64
"""The number of begun runs that a process remembers."""

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RUN = re.compile(rf"{NUMBER}-({UUID.pattern})")

# (folder, run id) of the runs that this process has begun.
_begun: set[tuple[str, str]] = set()


class Runs:
    """The runs of a streaming query that have begun with the state of one call, each a file named ``order-run id``.

    The newest is the one with the greatest order, and of two with the same order the one with the greater id.
    """

    def __init__(self, folder: Folder, call: str, run: str) -> None:
        """Open the runs in ``call``, a folder below ``folder``, on behalf of the run with this id."""
        self.run = run
        self._folder = folder
        self._path = f"{call}/runs"
        self._shown = f"`{folder.shown}/{call}`"
        self._key = (self._shown, run)

    @property
    def has_begun(self) -> bool:
        """Whether this process has begun this run."""
        return self._key in _begun

    def find_order(self) -> int | None:
        """Return the order of this run, ``None`` if it has none yet.

        Raises :class:`SnapshotError` if another run is the newest.
        """
        runs = self._list_runs()
        if not self.has_begun and all(run != self.run for _, run in runs):
            return None
        return self._order_if_newest(runs)

    def require_newest(self) -> int:
        """Return the order of this run. Raises :class:`SnapshotError` if another run is the newest."""
        return self._order_if_newest(self._list_runs())

    def begin(self) -> int:
        """Make this run the newest, unless it has an order already, and return its order.

        Tasks of one run may call this at the same time: if they take different orders, the greatest is that of the run.
        If two runs call this at the same time, one of them is refused.

        Raises :class:`SnapshotError` if another run is the newest.
        """
        if (order := self.find_order()) is None:
            runs = self._list_runs()
            order = runs[-1][0] + 1 if runs else 1
            # If runs are listed, the first of them has made all folders above durable.
            self._folder.write(f"{self._path}/{order}-{self.run}", b"", parents=0 if runs else 100)
            for old, run in runs[:-KEPT_RUNS]:
                self._folder.remove_file(f"{self._path}/{old}-{run}")
            order = self.require_newest()
        if len(_begun) >= REMEMBERED_RUNS:
            _begun.clear()  # only costs another look at the folder
        _begun.add(self._key)
        return order

    def _list_runs(self) -> list[tuple[int, str]]:
        """Return (order, run id) of all runs, the newest last."""
        names = (_RUN.fullmatch(name) for name in self._folder.names(self._path))
        return sorted((int(match[1]), match[2]) for match in names if match)

    def _order_if_newest(self, runs: list[tuple[int, str]]) -> int:
        if not runs:
            raise SnapshotError(
                f"the state in {self._shown} was removed while the stream ran",
                hint="stop the query; put the state back, or begin a new checkpoint",
                code="state_used",
            )
        if runs[-1][1] != self.run:
            raise SnapshotError(
                f"another run of this streaming query has taken over the state in {self._shown}",
                hint="a copy of a checkpoint needs a state= folder of its own; otherwise start the query again",
                code="state_used",
            )
        return runs[-1][0]
