"""The routes through Spark that are compared, as data: a name, a few words, how a result is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import acep.spark
from acep.spark.metrics import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Tell = Callable[[Progress], None]
Each = Callable[[Any, int], None]

__all__ = ["QUERIES", "ROUTES", "Route", "Setting", "choose_routes", "explain_missing"]

SEQUENCE = "PATTERN SEQ(A a, B b, C c) WHERE partition_contiguity(a, b, c) { [k] } WITHIN 100 seconds"
RISING = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] AND a[i].x > a[i-1].x } WITHIN 140 seconds"
QUERIES: Mapping[str, str] = MappingProxyType({"seq": SEQUENCE, "rise": RISING})
"""The two queries, by the ending of a route's name."""
DELAY = "100 milliseconds"


@dataclass(frozen=True)
class Setting:
    """The setting of a route: ``partitions`` of the shuffles that are not ours, ``buckets`` of acep (``None``: its
    default), and a new ``folder`` for the state of one run."""

    partitions: int
    buckets: int | None
    folder: str


@dataclass(frozen=True)
class Route:
    """``build`` makes the result from a DataFrame with the columns of the stream. ``query`` is a key of
    :data:`QUERIES`, or "" where nothing is matched. ``against`` names the route that this one is compared with; of a
    ``static`` DataFrame the whole is timed, of a stream its micro-batches. ``keywords``: arguments that
    :func:`acep.spark.match` must know for this route. ``each``: what foreachBatch calls with the micro-batches of that
    result, made with a function that is told of each. A ``plain`` route keeps Spark's bound of
    the bytes of a batch for Python, which acep lifts in sessions of its own."""

    name: str
    about: str
    build: Callable[[DataFrame, Setting], DataFrame]
    query: str = ""
    against: str = ""
    static: bool = False
    plain: bool = False
    each: Callable[[Setting, Tell], Each] | None = None
    keywords: frozenset[str] = field(default_factory=frozenset)


def explain_missing(route: Route) -> str:
    """Say why a route cannot run with this version of acep; "" if it can.

    >>> explain_missing(ROUTES["store-seq"])
    ''
    >>> explain_missing(Route("x", "", build=lambda rows, _: rows, keywords=frozenset({"y"})))
    'x: acep.spark.match has no keyword y= yet'
    """
    parameters = inspect.signature(acep.spark.match).parameters
    lacking = sorted(route.keywords - set(parameters))
    return f"{route.name}: acep.spark.match has no keyword {lacking[0]}= yet" if lacking else ""


def choose_routes(names: Sequence[str]) -> list[Route]:
    """Return the routes of these names or beginnings of names (all, if none is given), and those that they are compared
    with.

    Raises :class:`ValueError` for a name that is of no route.

    >>> [route.name for route in choose_routes(["store"])]
    ['yardstick', 'store-seq', 'store-rise']
    """
    wanted_names: set[str] = set()
    for name in names:
        matching = {route_name for route_name in ROUTES if route_name == name or route_name.startswith(f"{name}-")}
        if not matching:
            raise ValueError(f"no route {name!r}: there are {', '.join(ROUTES)}")
        wanted_names |= matching
    if not names:
        wanted_names = set(ROUTES)
    wanted_names |= {ROUTES[name].against for name in wanted_names}
    return [route for name, route in ROUTES.items() if name in wanted_names]


def _identity(rows: DataFrame) -> DataFrame:
    # A lambda goes to the workers as it is: they need not be able to import this module.
    return rows.mapInArrow(lambda batches: batches, rows.schema)


def _shuffle(rows: DataFrame, context: Setting) -> DataFrame:
    return rows.repartition(context.partitions, "k")


def _carry(rows: DataFrame, context: Setting) -> DataFrame:
    return _identity(_shuffle(rows, context))


def _sort(rows: DataFrame, context: Setting) -> DataFrame:
    return _identity(_shuffle(rows, context).sortWithinPartitions("ts"))


def _match_with(query: str, state: str | None = None) -> Callable[[DataFrame, Setting], DataFrame]:
    """Match with the state in the folder of the run (``"folder"``), in Spark's own store (``"spark"``), or where acep
    puts it."""

    def build(rows: DataFrame, context: Setting) -> DataFrame:
        arguments: dict[str, Any] = {}
        if state is not None:
            arguments["state"] = context.folder if state == "folder" else state
        if context.buckets is not None:
            arguments["buckets"] = context.buckets
        if rows.isStreaming:
            arguments["watermark"] = DELAY
        return acep.spark.match(rows, acep.parse(QUERIES[query]), seq="n", id="n", **arguments)

    return build


def _match_each(query: str, *, on_driver: bool) -> Callable[[Setting, Tell], Each]:
    def build(context: Setting, tell: Tell) -> Each:
        arguments: dict[str, Any] = {} if context.buckets is None else {"buckets": context.buckets}
        arguments |= {"seq": "n", "id": "n", "watermark": DELAY, "state": context.folder, "progress": tell}
        sink = _drop_table if on_driver else _write_noop
        return acep.spark.for_each_batch(acep.parse(QUERIES[query]), sink, on_driver=on_driver, **arguments)

    return build


def _drop_table(_: Any, __: int) -> None:
    """Drop a table."""


def _write_noop(matches: Any, _: int) -> None:
    matches.write.format("noop").mode("overwrite").save()


YARDSTICK, STATIC = "yardstick", "batch-yardstick"
UNBOUND = "no bound of bytes (`maxBytesPerBatch`)"
LISTED = (
    Route("pass", "pass-through, no Python", lambda rows, _: rows, against=YARDSTICK, plain=True),
    Route("identity", "`mapInArrow` identity", lambda rows, _: _identity(rows), against=YARDSTICK, plain=True),
    Route("shuffle", "shuffle by key, no Python", _shuffle, against=YARDSTICK, plain=True),
    Route(YARDSTICK, "shuffle by key, then `mapInArrow` identity", _carry, against=YARDSTICK, plain=True),
    Route(f"{YARDSTICK}-unbounded", f"the yardstick, {UNBOUND}", _carry, against=YARDSTICK),
    *(
        Route(
            f"{place}-{name}",
            f"acep, {about}",
            _match_with(name, state),
            query=name,
            against=YARDSTICK,
            plain=True,
            keywords=frozenset({"state"}),
        )
        for place, state, about in (
            ("default", None, "as it comes: state in the checkpoint"),
            ("store", "spark", 'state in Spark\'s own store (`state="spark"`)'),
            ("state", "folder", "state in files of a folder (`state=`)"),
        )
        for name in QUERIES
    ),
    *(
        Route(
            f"{side}-{name}",
            f"acep in foreachBatch, {about}",
            lambda rows, _: rows,
            query=name,
            against=YARDSTICK,
            each=_match_each(name, on_driver=side == "driver"),
        )
        for side, about in (("each", "on the workers"), ("driver", "on the driver (`on_driver=`)"))
        for name in QUERIES
    ),
    Route(
        STATIC, "shuffle by key, sort by time, `mapInArrow` identity", _sort, against=STATIC, static=True, plain=True
    ),
    Route(f"{STATIC}-unbounded", f"the yardstick, {UNBOUND}", _sort, against=STATIC, static=True),
    *(
        Route(f"batch-{name}", "acep over a DataFrame", _match_with(name), query=name, against=STATIC, static=True)
        for name in QUERIES
    ),
)
ROUTES: Mapping[str, Route] = MappingProxyType({route.name: route for route in LISTED})
"""All routes by name, in the order of the page."""
