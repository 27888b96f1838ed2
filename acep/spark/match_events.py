"""Go back from matches to the rows of the events that they bind (``acep.spark.events``): a join by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acep.errors import DataError, QueryError
from acep.spark.columns.fields import field_column, path_of
from acep.spark.columns.letter_case import ignores_case, resolve_name
from acep.spark.columns.types import BINDINGS, COMPOSED, NUMBERED
from acep.spark.matching import frame_of
from acep.spark.session import needs_pyspark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["events"]

MATCH, QUERY, OP, VARIABLE, POSITION = "match", "query", "op", "variable", "position"
PREFIX = "match_"
BOUND, ROW_ID = "__acep_bound", "__acep_row"  # the ids by which matches and rows are joined
INTEGERS = ("byte", "short", "integer", "long")
TEXTS = ("string", "char", "varchar")
DIGITS = 16  # of a hash of 64 bits, in hexadecimal
SEEDS = (1, 2)  # of the halves of an id


def events(matches: DataFrame, df: Any, *, id: str | None = None, ts: str = "ts") -> DataFrame:
    """Return the rows of the events that matches bind: each row of ``df`` once for each match that binds it.

    ``matches``: as :func:`acep.spark.match` gives them with ``id``, without ``flat``. They may be a batch, a
    micro-batch of foreachBatch, or a stream. ``df``: the events, a batch DataFrame or a table that :func:`acep.match`
    takes. ``id`` names the column of their ids, the same as for the match, and ``ts`` the column of their times.

    The result has the columns

    * ``match``: the id of the match, 32 hexadecimal digits. It is a hash of the query, the key, the times, the bindings
      and the values of RETURN, the same in each run. If ``matches`` has a column ``id``, as with ``speculation``, it is
      that one;
    * ``query``, if there are several, and ``op``, if matches are taken back: those of the match;
    * ``variable``: the name of the variable that binds the event;
    * ``position``: the place of the event in the bindings of the match, from 0: those of its first variable in their
      order, then those of the next one;
    * all columns of ``df``. A name that ``df`` has, also in other case, gets ``match_`` before it: ``match_op``.

    In a batch the rows of a match stand together, in the order of ``ts``, then of ``position``. A stream has no order.
    If several rows have one id, each of them comes; an event that ``df`` has not is left out. Matches that bind no
    events, as rows of late events, give no rows.

    Raises :class:`QueryError` if ``id`` is not given, if ``matches`` has no bindings (``flat``, another output), or if
    its ids are no ids of rows: of events numbered in their partition, or of matches of inner queries. Raises
    :class:`DataError` if ``df`` is a stream, has no such column, or has ids of another type.
    """
    needs_pyspark()
    from pyspark.sql import functions as sf

    frame = frame_of(df)
    _check_matches(matches, id)
    assert id is not None
    if frame.isStreaming:
        raise DataError(
            "the events are a stream, and matches are joined with a batch DataFrame",
            hint="read what the stream has read: spark.read in place of spark.readStream",
            code="option_invalid",
        )
    if ignores_case(frame.sparkSession):
        id, ts = resolve_name(frame.schema, id), resolve_name(frame.schema, ts)
    _, id_field = path_of(frame.schema, id)
    time = field_column(frame.schema, ts, "ts")
    _check_types(matches, id, id_field.dataType)
    names = _names_beside(matches.columns, frame.columns)
    bound = _bound_ids(matches, names)
    row_id = field_column(frame.schema, id)
    rows = frame.withColumn(ROW_ID, row_id if id_field.dataType.typeName() in TEXTS else row_id.cast("long"))
    joined = bound.join(rows, sf.col(BOUND) == sf.col(ROW_ID)).drop(BOUND, ROW_ID)
    if matches.isStreaming:
        return joined
    order = [names[name] for name in (MATCH, QUERY, OP) if name in names]
    return joined.repartition(names[MATCH]).sortWithinPartitions(*order, time, names[POSITION])


def _check_matches(matches: DataFrame, id_name: str | None) -> None:
    """Raise :class:`QueryError` if matches do not have ids of rows, or if no column of ids is named."""
    bindings = next((field for field in matches.schema.fields if field.name == BINDINGS), None)
    if bindings is None or bindings.dataType.typeName() != "map":
        raise QueryError(
            f"events() takes matches with the column `{BINDINGS}`, which these have not",
            hint='acep.spark.match(..., output="matches") without flat=True',
            code="option_invalid",
        )
    metadata = bindings.metadata or {}
    if metadata.get(COMPOSED):
        raise QueryError(
            "a query with FROM binds matches of its inner queries, which are no rows", hint="match an inner query alone"
        )
    if metadata.get(NUMBERED):
        raise QueryError(
            "the matches were made without id=, so their ids are numbers in a partition, which no DataFrame has",
            hint="name a column of ids in both: acep.spark.match(..., id=) and acep.spark.events(..., id=)",
            code="option_invalid",
        )
    if id_name is None:
        raise QueryError(
            "events() needs id=, the column of ids of the events",
            hint="the one that acep.spark.match(..., id=) had",
            code="option_invalid",
        )


def _check_types(matches: DataFrame, name: str, own_type: DataType) -> None:
    """Raise :class:`DataError` if a column is no ids, or of another kind than those that matches bind."""
    bound_type: Any = matches.schema[BINDINGS].dataType
    item_type = bound_type.valueType.elementType
    kinds = (INTEGERS, TEXTS)
    if not any(own_type.typeName() in kind and item_type.typeName() in kind for kind in kinds):
        raise DataError(
            f"the ids in `{name}` are {own_type.simpleString()}, and those of the matches {item_type.simpleString()}",
            hint="name the column that acep.spark.match(..., id=) had",
            code="data_type",
        )


def _names_beside(match_columns: list[str], event_columns: list[str]) -> dict[str, str]:
    """Return the names of the columns that come before those of the events, by what they hold.

    Raises :class:`DataError` if one is there already, also with :data:`PREFIX` before it.

    >>> _names_beside(["op", "bindings"], ["ts", "OP"])
    {'match': 'match', 'op': 'match_op', 'variable': 'variable', 'position': 'position'}
    """
    names_in_use = {name.lower() for name in event_columns}
    names = {}
    for name in (MATCH, QUERY, OP, VARIABLE, POSITION):
        if name in (QUERY, OP) and name not in match_columns:
            continue
        names[name] = PREFIX + name if name in names_in_use else name
        if names[name] in names_in_use:
            raise DataError(
                f"the events have columns `{name}` and `{names[name]}` already", hint="rename one of them",
                code="data_column",
            )  # fmt: skip
    return names


def _bound_ids(matches: DataFrame, names: dict[str, str]) -> DataFrame:
    """Return a row for each event that a match binds, with its id in the column :data:`BOUND`."""
    from pyspark.sql import functions as sf

    match_id = sf.col("id") if "id" in matches.columns else _hash_match(matches.columns)
    head = [match_id.alias(names[MATCH]), *(sf.col(name).alias(names[name]) for name in (QUERY, OP) if name in names)]
    by_variable = sf.transform(
        sf.map_entries(BINDINGS),
        lambda entry: sf.transform(
            entry["value"], lambda bound_id: sf.struct(entry["key"].alias(VARIABLE), bound_id.alias(BOUND))
        ),
    )
    # Spark allows one generator in a select, and nothing else made of it.
    exploded = matches.select(*head, sf.posexplode(sf.flatten(by_variable)).alias(names[POSITION], BOUND))
    bound = sf.col(BOUND)
    return exploded.select(
        *(names[name] for name in (MATCH, QUERY, OP) if name in names),
        bound[VARIABLE].alias(names[VARIABLE]),
        names[POSITION],
        bound[BOUND].alias(BOUND),
    )


def _hash_match(columns: list[str]) -> Column:
    """Return the id of a match: two hashes of 64 bits of what tells matches apart."""
    from pyspark.sql import functions as sf

    # Spark hashes no maps. The sizes tell where the ids of a variable end, as a text id may be the name of another one.
    entries = sf.transform(
        sf.array_sort(sf.map_entries(BINDINGS)),
        lambda entry: sf.struct(entry["key"], sf.size(entry["value"]), entry["value"]),
    )
    parts = [sf.col(name) for name in (QUERY, "key", "start", "end", "values") if name in columns]
    halves = (sf.hex(sf.xxhash64(sf.lit(seed), *parts, entries)) for seed in SEEDS)
    return sf.lower(sf.concat(*(sf.lpad(half, DIGITS, "0") for half in halves)))
