"""Show matches to a user: a list of records that converts to an Arrow, pandas or polars table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from acep.display import interactive_page
from acep.errors import QueryError, check_installed
from acep.events.tables import ticks_to_input
from acep.events.times import value_of
from acep.matches.answers import Bundle, Bundles, Count, Point, Points
from acep.matches.found_columns import taken_back
from acep.matches.grouping import group_matches, point_changes
from acep.matches.match import Match, error_number
from acep.matches.match_form import MatchForm
from acep.matches.records import Found
from acep.matches.rendering import matches_page, matches_text
from acep.matches.report import Report
from acep.matches.zoned_times import has_far_time
from acep.plan.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.events.user_rows import OwnRows
    from acep.matches.flat import Layout
    from acep.pattern.tree import Query

__all__ = ["Bundle", "Bundles", "Match", "Matches", "Point", "Points", "Report", "error_number"]


class Matches(Sequence[Match]):
    """The matches of one query, in output order.

    A read-only list of :class:`Match`; a slice is again ``Matches``. ``report`` says what the run did, and ``exact``
    whether nothing is missing; ``keys`` and ``returns`` name the partition attributes and the values of RETURN.
    ``form`` is that of the matches of the query. ``report`` may be given as a function, which is called when it is
    first read. ``rows`` are hold of the events of :func:`acep.match`, for :meth:`events`; a pickled copy has neither
    them nor the query.

    >>> from acep.plan.schema import Kind
    >>> record = Found(("AAPL",), 1, 9, 0, (("a", (0, 3)), ("b", (7,))), 9)
    >>> Matches([record], MatchForm(Schema((("symbol", Kind.STRING),)), keys=("symbol",)))[0]
    Match(key={'symbol': 'AAPL'}, start=1, end=9, error=0, bindings={'a': (0, 3), 'b': (7,)}, bundle=9, values={})
    """

    def __init__(
        self,
        found: Sequence[Found],
        form: MatchForm,
        *,
        report: Report | Callable[[], Report] | None = None,
        rows: OwnRows | None = None,
    ) -> None:
        self.found = found
        self.form = form
        self._report = report or Report(matches=len(found))
        self.rows = rows

    @property
    def schema(self) -> Schema:
        """Return the columns of the events."""
        return self.form.schema

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names of the partition attributes."""
        return self.form.keys

    @property
    def returns(self) -> tuple[str, ...]:
        """Return the names of the values of RETURN."""
        return self.form.returns

    @property
    def revised(self) -> bool:
        """Return whether some matches may be taken back later, or take back others."""
        return self.form.revised

    @property
    def ops(self) -> bool:
        """Return whether tables of the matches have the columns ``op`` and ``id``."""
        return self.form.ops or self.form.revised

    @property
    def layout(self) -> Layout | None:
        """Return which variables there are; ``None``: those that are bound."""
        return self.form.layout

    @property
    def query(self) -> Query | None:
        """Return the query, if it is known."""
        return self.form.query

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> Matches: ...
    def __getitem__(self, index: int | slice) -> Match | Matches:
        if isinstance(index, slice):
            return self.with_found(self.found[index])
        return self._match(self.found[index])

    def with_found(self, found: Sequence[Found]) -> Matches:
        """Return other matches of the same query."""
        other = copy(self)
        other.found = found
        return other

    def __copy__(self) -> Matches:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __getstate__(self) -> dict[str, Any]:
        # Events do not travel with their matches, and a query may have functions of the user.
        return vars(self) | {"rows": None, "form": self.form.without_query()}

    @property
    def report(self) -> Report:
        """Return what the run did until these matches were given."""
        if not isinstance(self._report, Report):
            self._report = self._report()
        return self._report

    @property
    def exact(self) -> bool:
        """Return whether no match is missing of those due by then."""
        return self.report.exact

    def __iter__(self) -> Iterator[Match]:
        return map(self._match, self.found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matches) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _match(self, record: Found) -> Match:
        start, end, bundle = record.start, record.end, record.bundle
        if self.schema.instants:
            start, end, bundle = ticks_to_input((start, end, bundle), self.schema)
        key, values = self.form.key_to_input(record.key), self.form.values_to_input(record.values)
        is_far = has_far_time((start, end, *key.values(), *values))
        return Match(
            key=key,
            start=start,
            end=end,
            error=error_number(record.error),
            bindings=dict(record.bindings),
            bundle=None if self.revised else bundle,
            values=dict(zip(self.returns, values, strict=True)),
            op=record.op,
            _record=record,
            _zoned=self.form.zoned_names() if is_far else frozenset(),
        )

    def count(self, value: Any = None) -> Count:  # type: ignore[override]
        """Return the number of matches (of those equal to ``value``, if one is given), with the report. A match that
        is taken back counts as -1."""
        if self.revised and value is None:
            return Count(len(self.found) - 2 * taken_back(self.found), self.report)
        return Count(len(self.found) if value is None else sum(match == value for match in self), self.report)

    def bundles(self, *, counts: bool = True) -> Bundles:
        """Return the match bundles in order of their first match point; ``counts``: with their number of matches.

        >>> ends = [Found((), 1, end, error, (("a", (end,)),), 5) for end, error in ((5, 1), (7, 0))]
        >>> Matches(ends, MatchForm(Schema(()))).bundles()
        1 match bundle
          match points 5..7  2 matches  best=0
        """
        if self.revised:
            raise QueryError(
                "matches that may be taken back have no bundles: a match that comes late may join or split them",
                hint="points() and count() give differences; or leave speculation= out",
            )
        groups = group_matches(self.found, "bundle")
        report = replace(self.report, bundles=len(groups))
        return Bundles.of_groups(groups, self.keys, self.schema, report, counts=counts)

    def points(self) -> Points:
        """Return the distinct match points, in order.

        Where matches may be taken back, return the changes of match points: one for each partition, match point and
        error of which the number of matches is not as before (:attr:`Point.change`).

        >>> ends = [Found((), 1, 5, error, (("a", (i,)),), 5) for i, error in enumerate((2, 1))]
        >>> Matches(ends, MatchForm(Schema(()))).points()
        1 match point
          match point 5  best=1
        >>> Matches(ends, MatchForm(Schema(()), revised=True)).points()
        2 match points
          match point 5  best=2  change=+1
          match point 5  best=1  change=+1
        """
        if self.revised:
            return Points.of_groups(point_changes(self.found), self.keys, self.schema, self.report, counts=True)
        groups = group_matches(self.found, "end")
        return Points.of_groups(groups, self.keys, self.schema, replace(self.report, points=len(groups)))

    def events(
        self, match: Match | None = None, frame: Any = None, *, variable: str = "variable", number: str = "match"
    ) -> Any:
        """Return the rows of your events that a match binds, in stream order, or of all matches, one after another.

        The rows come in the form in which :func:`acep.match` got the events: a pandas frame with its index, a polars
        frame or an Arrow table. Dicts, lists and arrays come as an Arrow table, and so do files, with all of their
        columns; files are read again once for that. A further column ``variable`` names the variable that binds the
        row, and for all matches the column ``match`` has the number of the match, from 0; ``variable`` and ``number``
        give these columns other names.

        ``frame`` are the events themselves, where they were not kept: for the matches of a :class:`acep.Matcher`, of
        a reader, a lazy frame or another Arrow stream, or for matches that were pickled. Without ``id=`` its rows
        are counted from the first event on, so it has all batches. Where events were kept, the matches hold a reference
        to the frame or table, not a copy; of dicts, lists and arrays they hold the Arrow table that was made of them.

        Raises :class:`QueryError` if there are no events, or for a query with FROM, and :class:`DataError` if the
        events have changed since they were matched: their number, their ids, the index of a pandas frame, the times or
        the partition attributes of a match, or a file.

        >>> import acep
        >>> rows = {"ts": [1, 2, 3], "type": ["A", "x", "B"], "price": [9.5, 9.0, 9.1]}
        >>> found = acep.match(rows, "PATTERN SEQ(A a, B b) WITHIN 5")
        >>> found.events(found[0]).select(["price", "variable"]).to_pylist()
        [{'price': 9.5, 'variable': 'a'}, {'price': 9.1, 'variable': 'b'}]
        """
        from acep.matches.bound_events import own_events

        return own_events(self, match, frame, variable, number)

    def page(
        self, path: str | os.PathLike[str] | None = None, *, query: Any = None, events: Any = None, misses: int = 10
    ) -> Any:
        """Return an interactive page of the matches, a :class:`acep.ResultPage`, and write it to a file, if ``path``
        names one.

        As the last line of a cell a notebook shows the page. It is one file of HTML that needs no network: a table to
        sort and filter, the matches over time, and of the match that is chosen the rows with those in between, a series
        and the steps of the automaton (docs/howto/pages.md). Of more than 1,000 matches some are shown, evenly chosen.

        ``query`` and ``events`` are what was matched, where the matches do not hold them: those of a
        :class:`acep.Matcher`, or a pickled copy. Without events there are no rows. ``misses``: how many near misses are
        listed at most (0: none are looked for).

        Raises :class:`EngineError` if bokeh is not installed, :class:`DataError` if the file cannot be written or the
        events are not those that were matched, and :class:`QueryError` if the query is not known.

        >>> import acep
        >>> rows = {"ts": [1, 2, 3], "type": ["A", "x", "B"], "price": [9.5, 9.0, 9.1]}
        >>> acep.match(rows, "PATTERN SEQ(A a, B b) WITHIN 5").page()
        ResultPage(1 match)
        """
        return interactive_page(self, path, query=query, events=events, misses=misses)

    def to_arrow(self, *, flat: bool = False, explode: bool = False) -> pa.Table:
        """Return the matches as an Arrow table, one row per match.

        Columns: ``key`` (struct of the partition attributes), ``start`` and ``end`` (of the type of the input's time
        column), ``error`` (int64, or float64 where one is fractional), ``bindings`` (map of variable to list of event
        ids), ``bundle`` (as ``start``), and ``values`` (struct) if the query has RETURN. With ``lateness`` there are
        also ``op`` (int64: 1, or -1 for a match that is taken back) and ``id`` (text); with ``speculation`` ``bundle``
        is null. The
        metadata entry ``acep`` says in JSON whether the matches are ``exact``, and has the ``report`` in words.

        ``flat``: with plain columns only, which CSV and databases take. They are the same for every result of a query,
        once the columns of the events are known. Each
        partition attribute and each value of RETURN is a column of its name. A variable ``b`` that binds at most one
        event is a column ``b`` with its id, and one that may bind more is two, ``b_first`` and ``b_last``. They are
        null where it binds none. ``error`` is float64 where a weight is fractional. A name that is given already, also
        in other case, gets ``key_``, ``value_`` or ``variable_`` before it.

        ``explode``: one row per bound event instead, in stream order within a match: ``match`` (its number here, from
        0), ``variable``, ``position`` (of the event in the variable, from 0), ``event`` (its id), and the plain columns
        of the match but those of variables.

        Raises :class:`QueryError` if two columns of the flat table would have one name even so.

        >>> import acep
        >>> rows = {"ts": [1, 2, 3], "type": ["A", "A", "B"], "k": ["x"] * 3}
        >>> found = acep.match(rows, "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity(a[], b) { [k] } WITHIN 5")
        >>> found.to_arrow(flat=True).to_pylist()[0]
        {'k': 'x', 'start': 1, 'end': 3, 'error': 0, 'a_first': 0, 'a_last': 1, 'b': 2, 'bundle': 3}
        >>> found[:1].to_arrow(explode=True).select(["match", "variable", "position", "event"]).to_pylist()[1]
        {'match': 0, 'variable': 'a', 'position': 1, 'event': 1}
        """
        from acep.matches.arrow import matches_table

        if explode:
            from acep.matches.bound_events import explode_matches

            table = explode_matches(self)
        elif flat:
            from acep.matches.flat import flat_table, layout_of

            layout = layout_of(self)
            table = flat_table(matches_table(self, fractional=layout.fractional), layout)
        else:
            table = matches_table(self)
        return table.replace_schema_metadata({"acep": json.dumps(self._metadata)})

    def to_pandas(self, *, flat: bool = False, explode: bool = False) -> Any:
        """Return the matches as a pandas frame: the columns of :meth:`to_arrow`, ``bindings`` as in a
        :class:`Match`, and its metadata in ``attrs["acep"]``. With ``flat`` or ``explode`` integers and booleans that
        may be null are of pandas' types ``Int64`` and ``boolean``, so that no id becomes a float.

        Without ``id=`` the ids are positions, for ``iloc``. If :func:`acep.match` got a pandas frame with an index of
        its own, such as one that was filtered or sorted, the labels in that index stand beside the ids, for ``loc``: in
        a column ``labels`` beside ``bindings``; with ``flat`` in a column ``b_label`` beside ``b``, ``b_first_label``
        beside ``b_first``; with ``explode`` in a column ``label`` beside ``event``.

        Raises :class:`EngineError` if pandas is not installed, and :class:`DataError` for a date before the year 1, or
        beyond 9999, which pandas cannot show.

        >>> import acep, pandas
        >>> frame = pandas.DataFrame({"ts": [1, 2, 3], "type": ["x", "A", "B"]}).query("type != 'x'")
        >>> table = acep.match(frame, "PATTERN SEQ(A a, B b) WITHIN 5").to_pandas(flat=True)
        >>> table[["a", "a_label"]].to_dict("records")
        [{'a': 0, 'a_label': 1}]
        """
        check_installed("pandas", "to_pandas()", "pandas")
        from acep.matches.index_labels import event_labels, labels_beside_ids, own_index
        from acep.matches.pandas_frames import frame_of, pandas_of

        index = own_index(self)
        if flat or explode:
            frame = pandas_of(self.to_arrow(flat=flat, explode=explode))
            if index is not None:
                labels_beside_ids(frame, self, index, explode=explode)
        else:
            import pyarrow as pa

            table = self.to_arrow().drop_columns(["bindings"])
            frame = frame_of(table)
            for field in table.schema:
                inside = [*field.type] if pa.types.is_struct(field.type) else []
                if any(getattr(part.type, "unit", "") == "ns" for part in inside):  # they would become integers
                    frame[field.name] = [value_of(value) for value in table.column(field.name)]
            frame.insert(4, "bindings", [dict(record.bindings) for record in self.found])
            if index is not None:
                frame.insert(5, "labels", event_labels(self, index))
        frame.attrs["acep"] = self._metadata
        return frame

    @property
    def _metadata(self) -> dict[str, Any]:
        return {"exact": self.exact, "report": self.report.missing()}

    def to_polars(self, *, flat: bool = False, explode: bool = False) -> Any:
        """Return the matches as a polars frame: the columns of :meth:`to_arrow`, without ``key`` where there is
        none; ``bindings`` is a list of structs (``key``: the variable, ``value``: its ids). ``flat`` and ``explode``
        are those of :meth:`to_arrow`.

        Raises :class:`EngineError` if polars is not installed."""
        check_installed("polars", "to_polars()", "polars")
        import polars as pl

        from acep.matches.arrow import without_maps

        if flat or explode:
            return pl.from_arrow(self.to_arrow(flat=flat, explode=explode))
        table = without_maps(self.to_arrow())
        return pl.from_arrow(table if self.keys else table.drop_columns(["key"]))

    def __repr__(self) -> str:
        return matches_text(self)

    def _repr_html_(self) -> str:
        return matches_page(self)
