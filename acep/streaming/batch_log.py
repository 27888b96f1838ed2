"""Keep what the driver decides of a micro-batch and what it counted in it, beside the versions of the buckets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from acep.errors import SnapshotError
from acep.learning.estimation.recall import Tally
from acep.streaming.admission import ALL, Admission
from acep.streaming.folders import Folder
from acep.streaming.load import Load
from acep.streaming.time_bound import CoreTime
from acep.streaming.utility import CellUtility, share_of, threshold_of

__all__ = ["BatchLog", "Carried", "Decision", "decide"]

FORMAT = 1


@dataclass(frozen=True)
class Carried:
    """Since the stream began: ``rows`` read, events in all passes, those of them that no query can need (``idle``; the
    ``late`` ones of these, which are no events any more, are counted apart), those too far ``ahead``, and those that
    were ``shed``; the greatest time ``seen`` in ticks; and what is known of the recall of match ``points``, if it is
    ``known``."""

    rows: int = 0
    events: int = 0
    idle: int = 0
    shed: int = 0
    seen: int | None = None
    points: Tally = field(default_factory=Tally)
    known: bool = True
    late: int = 0
    ahead: int = 0

    def dump(self) -> dict[str, Any]:
        """As JSON-like data."""
        names = ("rows", "events", "idle", "shed", "seen", "known", "late", "ahead")
        return {name: getattr(self, name) for name in names} | {"points": self.points.to_arrays()}

    @classmethod
    def load(cls, data: Any) -> Carried:
        """Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for what is none."""
        rows, events, idle, shed = (int(data[name]) for name in ("rows", "events", "idle", "shed"))
        late, ahead = (int(data.get(name, 0)) for name in ("late", "ahead"))  # were not counted by the first versions
        if min(rows, events, idle, shed, late, ahead) < 0:
            raise ValueError("counts")
        seen = None if data["seen"] is None else int(data["seen"])
        points, known = Tally.from_arrays(data["points"]), data["known"] is True
        return cls(rows, events, idle, shed, seen, points, known, late, ahead)


@dataclass(frozen=True)
class Decision:
    """The beginning of a micro-batch: the admission, if something can be shed, the ``latest`` time that an event may
    have, in ticks, and of earlier micro-batches their load, their counts, the utility of keys and what is left of the
    time of the cores."""

    admission: Admission | None = None
    load: Load = field(default_factory=Load)
    carried: Carried = field(default_factory=Carried)
    utility: CellUtility = field(default_factory=CellUtility.none)
    latest: int | None = None
    left: CoreTime = field(default_factory=CoreTime)

    def dump(self) -> dict[str, Any]:
        """As JSON-like data."""
        admission = None if self.admission is None else self.admission.dump()
        parts = {name: getattr(self, name).dump() for name in ("load", "carried", "utility", "left")}
        return {"admission": admission, "latest": self.latest} | parts

    @classmethod
    def load_from(cls, data: Any) -> Decision:
        """Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for what is none."""
        admission = None if data["admission"] is None else Admission.load(data["admission"])
        load, carried = Load.load(data["load"]), Carried.load(data["carried"])
        latest = None if data.get("latest") is None else int(data["latest"])
        left = CoreTime.load(data.get("left"))
        return cls(admission, load, carried, CellUtility.load(data.get("utility")), latest, left)


def decide(decision: Decision, own: Admission | None, share: float, delay: int) -> Decision:
    """Decide what a micro-batch admits: from now on this ``share`` of the events, first of keys of most utility.

    ``own``: what a call that can shed begins with, ``None`` for one that has no budget for it. Units that were cut
    short stay so, whatever the budget is by now: a gap that ends before its time could make a match of events that are
    none. ``delay`` is that of the watermark, in ticks.

    Raises :class:`SnapshotError` if the seed or the delay are not those by which units are being shed.
    """
    before = decision.admission
    if before is None or before.whole:
        before = own
    elif before.delay != delay or (own is not None and before.seed != own.seed):
        raise SnapshotError(
            "events are being shed by whole units, under another seed= or watermark=",
            hint="go on with those; they may be changed when nothing has been shed for eight windows",
        )
    if before is None:
        return replace(decision, admission=None)
    seen, utility, favoured, threshold = decision.carried.seen, decision.utility, None, ALL
    if own is not None and share < 1:
        if not before.changing:
            utility, favoured = utility.choose(share, before.favoured[-1], seen, before.length)
        cells = before.favoured[-1] if favoured is None else favoured
        same = favoured is None and share == share_of(before.now, cells, decision.utility.events)
        threshold = before.now if same else threshold_of(share, cells, utility.events)
    after = before.after(seen, threshold, favoured)
    return replace(decision, admission=None if own is None and after.whole else after, utility=utility)


class BatchLog:
    """Two files for each micro-batch: ``begun``, what was decided, and ``done``, what the next one begins with.
    The first one that is written stays, so that a retry does the same."""

    def __init__(self, folder: Folder, query: str, call: str) -> None:
        """Name the log of a call in a streaming query."""
        self._folder = folder
        self._path = f"{query}/{call}"

    def begun(self, batch: int) -> Decision | None:
        """Return what a micro-batch began with, ``None`` if it has not begun. Raises :class:`SnapshotError`."""
        return self._read(f"{self._path}/{batch}/begun")

    def done(self, batch: int) -> Decision | None:
        """Return what the micro-batch after this one begins with, ``None`` if it is not done."""
        return self._read(f"{self._path}/{batch}/done")

    def begin(self, batch: int, decision: Decision) -> Decision:
        """Write what a micro-batch begins with, and return what it has begun with."""
        return self._first(f"{self._path}/{batch}/begun", decision)

    def end(self, batch: int, decision: Decision) -> Decision:
        """Write what the next micro-batch begins with, and return what was written first."""
        return self._first(f"{self._path}/{batch}/done", decision)

    def _first(self, path: str, decision: Decision) -> Decision:
        data = json.dumps({"format": FORMAT} | decision.dump()).encode()
        self._folder.write(path, data, parents=1)
        return self._read(path) or decision

    def _read(self, path: str) -> Decision | None:
        data = self._folder.read(path)
        if data is None:
            return None
        shown = f"{self._folder.shown}/{path}"
        try:
            told = json.loads(data)
            if told["format"] != FORMAT:
                raise SnapshotError(
                    f"state has format version {told['format']}, which this acep does not read: {shown}",
                    hint="go on with the acep that wrote it, or begin a new checkpoint",
                )
            return Decision.load_from(told)
        except (KeyError, TypeError, ValueError):
            hint = "go back to the beginning of the micro-batch that wrote it (docs/internals/spark_state.md)"
            raise SnapshotError(f"state is damaged: {shown}", hint=hint) from None
