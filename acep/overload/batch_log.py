"""Storage of the driver's decisions and counts of each micro-batch, beside the versions of the buckets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from acep.bucket_state.folders import Folder
from acep.errors import SnapshotError
from acep.learning.estimation.recall import Tally
from acep.overload.event_choice import EventChoice, Explored
from acep.overload.key_utility import CellUtility, share_of, threshold_of
from acep.overload.load import Load
from acep.overload.time_bound import CoreTime
from acep.overload.unit_admission import ALL, UnitAdmission
from acep.streaming.query_versions import NewVersion

__all__ = ["BatchLog", "Decision", "RunningTotals", "decide"]

FORMAT = 2
OLD_FORMAT = 1
"""The format of logs in which another hash chose units and cells; it is read where no unit is cut short."""


@dataclass(frozen=True)
class RunningTotals:
    """Totals since the stream began: ``rows`` read, ``events`` of all passes, events that no query can need (``idle``;
    ``late`` ones are counted separately and not as events), those too far ``ahead``, and those that were ``shed``.
    ``seen`` is the greatest time in ticks. ``points`` has the recall statistics of match points, valid if
    it ``has_points_by_key``;
    ``explored`` those of micro-batches in which single events were shed. ``uncounted``: micro-batches whose rows are in
    no total, because the driver was killed before it counted them."""

    rows: int = 0
    events: int = 0
    idle: int = 0
    shed: int = 0
    seen: int | None = None
    points: Tally = field(default_factory=Tally)
    has_points_by_key: bool = True
    late: int = 0
    ahead: int = 0
    explored: Explored = field(default_factory=Explored)
    uncounted: int = 0

    def dump(self) -> dict[str, Any]:
        """Return JSON-like data."""
        counts = {name: getattr(self, name) for name in ("rows", "events", "idle", "shed", "seen")}
        counts |= {"known": self.has_points_by_key, "late": self.late, "ahead": self.ahead}
        counts |= {"uncounted": self.uncounted} if self.uncounted else {}
        return counts | {"points": self.points.to_arrays(), "explored": self.explored.dump()}

    @classmethod
    def load(cls, data: Any) -> RunningTotals:
        """Read the data of ``dump``. Raise :class:`KeyError`, :class:`TypeError` or :class:`ValueError` if invalid."""
        rows, events, idle, shed = (int(data[name]) for name in ("rows", "events", "idle", "shed"))
        # The first versions did not count these.
        late, ahead, uncounted = (int(data.get(name, 0)) for name in ("late", "ahead", "uncounted"))
        if min(rows, events, idle, shed, late, ahead, uncounted) < 0:
            raise ValueError("counts")
        seen = None if data["seen"] is None else int(data["seen"])
        points, has_points_by_key = Tally.from_arrays(data["points"]), data["known"] is True
        explored = Explored.load(data.get("explored"))
        return cls(rows, events, idle, shed, seen, points, has_points_by_key, late, ahead, explored, uncounted)


@dataclass(frozen=True)
class Decision:
    """The decision at the beginning of a micro-batch: the ``admission``, if events can be shed, and the ``latest``
    time allowed for an event, in ticks. From earlier micro-batches it has the load, the counts, the utility of keys
    and the core time that is left (``core_time``). ``events`` are the single events that are kept. ``versions`` of
    queries come with this micro-batch; the last one so far has the number ``version``."""

    admission: UnitAdmission | None = None
    load: Load = field(default_factory=Load)
    carried: RunningTotals = field(default_factory=RunningTotals)
    utility: CellUtility = field(default_factory=CellUtility.empty)
    latest: int | None = None
    core_time: CoreTime = field(default_factory=CoreTime)
    events: EventChoice = field(default_factory=EventChoice)
    versions: tuple[NewVersion, ...] = ()
    version: int = 0

    def dump(self) -> dict[str, Any]:
        """Return JSON-like data."""
        admission = None if self.admission is None else self.admission.dump()
        parts = {name: getattr(self, name).dump() for name in ("load", "carried", "utility")}
        parts |= {"left": self.core_time.dump(), "events": self.events.dump()}
        if self.version:
            parts |= {"version": self.version, "versions": [version.data() for version in self.versions]}
        return {"admission": admission, "latest": self.latest} | parts

    @classmethod
    def load_from(cls, data: Any) -> Decision:
        """Read the data of ``dump``. Raise :class:`KeyError`, :class:`TypeError` or :class:`ValueError` if invalid."""
        admission = None if data["admission"] is None else UnitAdmission.load(data["admission"])
        load, carried = Load.load(data["load"]), RunningTotals.load(data["carried"])
        latest = None if data.get("latest") is None else int(data["latest"])
        core_time, events = CoreTime.load(data.get("left")), EventChoice.load(data.get("events"))
        utility, version = CellUtility.load(data.get("utility")), int(data.get("version", 0))
        versions = tuple(map(NewVersion.from_data, data.get("versions", ())))
        return cls(admission, load, carried, utility, latest, core_time, events, versions, version)


def decide(decision: Decision, initial: UnitAdmission | None, share: float, delay: int) -> Decision:
    """Decide what a micro-batch admits: from now on this ``share`` of the events, preferring keys of high utility.

    ``initial`` is the first admission of a call that can shed, or ``None`` for a call without a budget. Sampling units
    that were cut short stay so even if the budget grows: a gap that ends too early could create a false match.
    ``delay`` is that of the watermark, in ticks.

    Raise :class:`SnapshotError` if units are being shed under another seed or delay.
    """
    admission = decision.admission
    if admission is None or admission.admits_all:
        admission = initial
    elif admission.delay != delay or (initial is not None and admission.seed != initial.seed):
        raise SnapshotError(
            "events are being shed by whole units, under another seed= or watermark=",
            hint="go on with those; they may be changed when nothing has been shed for eight windows",
        )
    if admission is None:
        return replace(decision, admission=None)
    seen, utility, favoured, threshold = decision.carried.seen, decision.utility, None, ALL
    if initial is not None and share < 1:
        if not admission.changing:
            utility, favoured = utility.choose(share, admission.favoured[-1], seen, admission.length)
        cells = admission.favoured[-1] if favoured is None else favoured
        same = favoured is None and share == share_of(admission.newest, cells, decision.utility.events)
        threshold = admission.newest if same else threshold_of(share, cells, utility.events)
    next_admission = admission.with_threshold(seen, threshold, favoured)
    return replace(
        decision, admission=None if initial is None and next_admission.admits_all else next_admission, utility=utility
    )


class BatchLog:
    """A log with two files for each micro-batch: ``begun`` has its decision, ``done`` the start of the next one.
    Files are never overwritten, so that a retry does the same."""

    def __init__(self, folder: Folder, query: str, call: str) -> None:
        """Open the log of a call in a streaming query."""
        self._folder = folder
        self._path = f"{query}/{call}"

    def read_begin(self, batch: int) -> Decision | None:
        """Return the decision of a micro-batch, ``None`` if not begun. Raise :class:`SnapshotError` if damaged."""
        return self._read(f"{self._path}/{batch}/begun")

    def read_end(self, batch: int) -> Decision | None:
        """Return the start of the micro-batch after this one, ``None`` if this one is not done."""
        return self._read(f"{self._path}/{batch}/done")

    def begin(self, batch: int, decision: Decision) -> Decision:
        """Write the decision of a micro-batch, and return the decision that was written first."""
        return self._write_first(f"{self._path}/{batch}/begun", decision)

    def end(self, batch: int, decision: Decision) -> Decision:
        """Write the start of the next micro-batch, and return the one that was written first."""
        return self._write_first(f"{self._path}/{batch}/done", decision)

    def _write_first(self, path: str, decision: Decision) -> Decision:
        data = json.dumps({"format": FORMAT} | decision.dump()).encode()
        self._folder.write(path, data, parents=1)
        return self._read(path) or decision

    def _read(self, path: str) -> Decision | None:
        data = self._folder.read(path)
        if data is None:
            return None
        shown_path = f"{self._folder.shown}/{path}"
        try:
            record = json.loads(data)
            if record["format"] not in (FORMAT, OLD_FORMAT):
                raise SnapshotError(
                    f"state has format version {record['format']}, which this acep does not read: {shown_path}",
                    hint="go on with the acep that wrote it, or begin a new checkpoint",
                    code="state_version",
                )
            decision = Decision.load_from(record)
            return decision if record["format"] == FORMAT else _renew(decision, shown_path)
        except (KeyError, TypeError, ValueError):
            hint = "go back to the beginning of the micro-batch that wrote it (docs/internals/spark_state.md)"
            raise SnapshotError(f"state is damaged: {shown_path}", hint=hint, code="state_damaged") from None


def _renew(decision: Decision, shown_path: str) -> Decision:
    """Return a decision of :data:`OLD_FORMAT` without what depends on its hash. Raise :class:`SnapshotError` if units
    are cut short: by another hash their gaps would end too early."""
    if decision.admission is not None and not decision.admission.admits_all:
        raise SnapshotError(
            f"events of this stream are being shed by whole units, as an earlier acep chose them: {shown_path}",
            hint="go on with the acep that wrote it until nothing has been shed for eight windows, or begin a new"
            " checkpoint",
            code="state_version",
        )
    return replace(decision, utility=CellUtility.empty())
