"""Know the ids of events that are not final, so that an event that comes again is noticed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import decode
from acep.events.columns import column_of, kind_of, tick_of
from acep.events.decimals import scale_of
from acep.events.fields import null_error
from acep.events.punctuations import BEGINNING, Key
from acep.events.role_hints import id_type_error
from acep.plan.schema import Kind

__all__ = ["SeenIds"]

SPARE = 4096  # ids of final events that are kept beyond as many as there are others

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class _Ids(NamedTuple):
    """Ids as integers, which are hashes of ``texts`` if ids are texts, with their times, and the numbers of the keys
    and types of their events (``sorts``; -1: not known); sorted by these integers."""

    words: Ints
    ticks: Ints
    texts: pa.Array | None
    sorts: Ints

    def take(self, places: npt.NDArray[np.intp]) -> _Ids:
        texts = None if self.texts is None else self.texts.take(pa.array(places))
        return _Ids(self.words[places], self.ticks[places], texts, self.sorts[places])

    def sort(self) -> _Ids:
        """Return them in order; of equal ones those that came first."""
        if (self.words[1:] >= self.words[:-1]).all():
            return self
        return self.take(np.argsort(self.words, kind="stable"))


class SeenIds:
    """The ids of events, integers or texts, with their times. Events before the tick ``final`` are final: their ids
    are forgotten. ``name``: the column of ids. ``final_of`` gives for the key and the type of an event the tick before
    which such events are final, too (``None``: they are not known).

    A call replaces what it changes, so that a copy stays as it is.

    >>> seen, ticks = SeenIds("id"), np.array([3, 3, 4])
    >>> seen.see(pa.chunked_array([["a", "b", "a"]]), ticks).tolist()
    [False, False, True]
    >>> seen.forget(4)
    >>> seen.see(pa.chunked_array([["a", "c", "c"]]), ticks + 2).tolist()
    [False, False, True]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.final: int | None = None
        self.final_of: Callable[[Key], int] | None = None
        self._keys: dict[Key, int] = {}  # the number of each key and type
        self._runs: tuple[_Ids, ...] = ()  # each is less than half as long as the one before
        self._live = 0  # ids that were left when final ones were last taken out

    def __len__(self) -> int:
        return sum(len(run.words) for run in self._runs)

    def see(
        self,
        ids: pa.ChunkedArray,
        ticks: Ints,
        used: Bools | None = None,
        base: int = 0,
        keys: tuple[Ints, Sequence[Key]] | None = None,
    ) -> Bools:
        """Return which events come again, and remember the others. ``used``: the rows that are events (``None``: all);
        ``base``: the rows that came before, as an error counts them; ``keys``: the number of each row among distinct
        keys with their types.

        Raises :class:`DataError` for ids that are null, or neither integers nor texts.
        """
        new_ids = _as_words(self.name, ids, ticks, base)
        if keys is not None:
            numbers = [self._keys.setdefault(key, len(self._keys)) for key in keys[1]]
            new_ids = new_ids._replace(sorts=np.array(numbers, np.int64)[keys[0]])
        places = None if used is None or used.all() else np.flatnonzero(used)
        if places is not None:
            new_ids = new_ids.take(places)
        repeats = self._find_seen(new_ids)
        fresh = new_ids if not repeats.any() else new_ids.take(np.flatnonzero(~repeats))
        if len(fresh.words):
            self._runs = _with_run(self._runs, fresh.sort())
        if places is None:
            return repeats
        row_repeats = np.zeros(len(ticks), bool)
        row_repeats[places] = repeats
        return row_repeats

    def forget(self, final: int | None) -> None:
        """Forget the events before the tick ``final`` (``None``: none of them), which are final now."""
        if final is None or (self.final is not None and final <= self.final):
            return
        self.final = final
        self.tidy()

    def tidy(self) -> None:
        """Take out the ids of final events if they may be many."""
        if len(self) > 2 * self._live + SPARE:
            self._take_out_final()

    @property
    def keys(self) -> list[Key]:
        """Return the keys and types of events, in the order of their numbers."""
        return [*self._keys]

    def dump(self) -> bytes:
        """Return the ids and their times as bytes; none if there are none."""
        self._take_out_final()
        if not self._runs:
            return b""
        (run,) = self._runs
        table = pa.table({"id": pa.array(run.words) if run.texts is None else run.texts, "tick": pa.array(run.ticks)})
        if self._keys:
            table = table.append_column("sort", pa.array(run.sorts))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def load(self, data: bytes, keys: Sequence[Key] = ()) -> None:
        """Read the bytes of :meth:`dump`, with the :attr:`keys`. Raises :class:`ValueError` for others."""
        self._runs, self._live, self.final = (), 0, None
        self._keys = {key: number for number, key in enumerate(keys)}
        if not data:
            return
        try:
            table = pa.ipc.open_stream(data).read_all()
        except (pa.ArrowException, OSError):
            raise ValueError("ids") from None
        names = ["id", "tick", *(["sort"] if self._keys else [])]
        numbers = [column.to_numpy() for column in table.columns[1:]] if table.column_names == names else []
        if not numbers or any(array.dtype != np.int64 for array in numbers):  # with nulls they are floats
            raise ValueError("ids")
        sorts = numbers[1] if self._keys else np.full(table.num_rows, -1)
        if len(sorts) and not -1 <= sorts.min() <= sorts.max() < max(len(self._keys), 1):
            raise ValueError("ids")
        try:
            ids = _as_words(self.name, table.column("id"), numbers[0], 0)
            self._runs = (ids._replace(sorts=sorts).sort(),)
        except DataError:
            raise ValueError("ids") from None
        self._live = len(self)

    def _find_seen(self, new_ids: _Ids) -> Bools:
        repeats = _find_repeats(new_ids)
        for run in self._runs:
            repeats |= _find_in_run(new_ids, run, self._live_in)
        return repeats

    def _live_in(self, run: _Ids, places: Ints) -> Bools:
        """Return which ids at some places of a run are those of events that are not final."""
        ticks, sorts = run.ticks[places], run.sorts[places]
        live = np.ones(len(places), bool) if self.final is None else ticks >= self.final
        if self.final_of is not None and self._keys:
            numbers, rows = np.unique(sorts, return_inverse=True)
            keys = self.keys
            finals = [BEGINNING if number < 0 else self.final_of(keys[number]) for number in numbers.tolist()]
            live &= ticks >= np.array(finals, np.int64)[rows]
        return live

    def _take_out_final(self) -> None:
        if self.final is not None or self._keys:
            live_runs = [run.take(np.flatnonzero(self._live_in(run, np.arange(len(run.words))))) for run in self._runs]
            self._runs = _join_runs([run for run in live_runs if len(run.words)])
        elif len(self._runs) > 1:
            self._runs = _join_runs(self._runs)
        if self._keys:
            numbers = np.unique(np.concatenate([run.sorts for run in self._runs] or [np.empty(0, np.int64)]))
            numbers, keys = numbers[numbers >= 0], self.keys
            self._keys = {keys[number]: place for place, number in enumerate(numbers.tolist())}
            self._runs = tuple(
                run._replace(sorts=np.where(run.sorts < 0, -1, np.searchsorted(numbers, run.sorts)))
                for run in self._runs
            )
        self._live = len(self)


def _as_words(name: str, ids: pa.ChunkedArray, ticks: Ints, base: int) -> _Ids:
    """Return ids as words, in the order of the rows."""
    kind = kind_of(ids.type)
    is_other = kind not in (Kind.INT, Kind.STRING) or scale_of(ids.type) is not None or tick_of(ids.type) is not None
    if is_other and not pa.types.is_null(ids.type):
        raise id_type_error(name, ids.type)
    if ids.null_count:
        raise null_error(name, base + ids.is_null().index(True).as_py())
    unknown = np.full(len(ids), -1)
    if kind is not Kind.STRING:
        return _Ids(np.ascontiguousarray(column_of(name, ids, Kind.INT, 1).values, np.int64), ticks, None, unknown)
    texts = decode(ids)
    if texts.type != pa.large_string():
        texts = texts.cast(pa.large_string())
    array = texts.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # as older versions of Arrow return
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.large_string())
    try:
        values = array.to_pylist()
    except UnicodeDecodeError:
        raise DataError(f"column `{name}` is not UTF-8 text", code="data_value") from None
    # Python's own hashes differ from process to process, so that nobody can choose texts with equal ones.
    return _Ids(np.fromiter(map(hash, values), np.int64, len(values)), ticks, array, unknown)


def _find_repeats(new_ids: _Ids) -> Bools:
    """Return which ids are those of an earlier row."""
    words = new_ids.words
    repeats = np.zeros(len(words), bool)
    if (words[1:] > words[:-1]).all():
        return repeats
    order = np.argsort(words, kind="stable")
    is_same = words[order[1:]] == words[order[:-1]]
    if not is_same.any():
        return repeats
    if new_ids.texts is None or _equal(new_ids.texts, order[1:][is_same], new_ids.texts, order[:-1][is_same]).all():
        repeats[order[1:][is_same]] = True
        return repeats
    texts = set[str]()  # texts of one hash differ
    has_twin = np.zeros(len(order), bool)
    has_twin[1:] = is_same
    has_twin[:-1] |= is_same
    for place in np.sort(order[has_twin]).tolist():
        text = new_ids.texts[place].as_py()
        repeats[place] = text in texts
        texts.add(text)
    return repeats


def _find_in_run(new_ids: _Ids, run: _Ids, live_in: Callable[[_Ids, Ints], Bools]) -> Bools:
    """Return which ids are those of events in a run that are not final, as ``live_in`` says of some places."""
    words = new_ids.words
    repeats = np.zeros(len(words), bool)
    if not len(words) or words.min() > run.words[-1] or words.max() < run.words[0]:
        return repeats
    last = np.searchsorted(run.words, words, side="right") - 1
    rows = np.flatnonzero((last >= 0) & (run.words[last] == words))
    if not len(rows):
        return repeats
    # Of equal ids the last one is that of the only event that may not be final.
    places = last[rows]
    live = live_in(run, places)
    if new_ids.texts is None or run.texts is None:
        repeats[rows] = live
        return repeats
    equal = _equal(new_ids.texts, rows, run.texts, places)
    repeats[rows] = live & equal
    for row in rows[~equal].tolist():  # texts of one hash differ
        begin, end = (int(np.searchsorted(run.words, words[row], side)) for side in ("left", "right"))
        text, texts = new_ids.texts[row].as_py(), run.texts.slice(begin, end - begin).to_pylist()
        same_places = np.array([begin + place for place, other in enumerate(texts) if other == text], np.int64)
        repeats[row] = bool(live_in(run, same_places).any())
    return repeats


def _equal(texts: pa.Array, rows: npt.NDArray[np.intp], earlier_texts: pa.Array, places: npt.NDArray[np.intp]) -> Bools:
    import pyarrow.compute as pc  # here, since its import is slow

    is_equal: Bools = pc.equal(texts.take(pa.array(rows)), earlier_texts.take(pa.array(places))).to_numpy(False)
    return is_equal


def _with_run(runs: tuple[_Ids, ...], run: _Ids) -> tuple[_Ids, ...]:
    """Return runs with one more: short ones are joined, so that there are few, and each id is joined few times."""
    parts = [*runs, run]
    while len(parts) > 1 and len(parts[-2].words) < 2 * len(parts[-1].words):
        parts[-2:] = _join_runs(parts[-2:])
    return tuple(parts)


def _join_runs(runs: Sequence[_Ids]) -> tuple[_Ids, ...]:
    if len(runs) < 2:
        return tuple(runs)
    texts = None if runs[0].texts is None else pa.concat_arrays([run.texts for run in runs])
    words, ticks, sorts = (np.concatenate([getattr(run, name) for run in runs]) for name in ("words", "ticks", "sorts"))
    return (_Ids(words, ticks, texts, sorts).sort(),)
