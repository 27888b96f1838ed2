"""Define the options that all entry points share: names, types, defaults and checks, in one place.

An entry point takes them as ``**options: Unpack[StreamKeywords]``, so that editors and type checkers know them, and
makes a :class:`StreamOptions` of them. :func:`lists_options` shows them in its signature, and so in ``help()``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from numbers import Integral, Number
from typing import Any, TypedDict, TypeVar

from acep.budget import Budget
from acep.budget.policies import policy_of
from acep.errors import EngineError, QueryError
from acep.events.duplicates import check_duplicates
from acep.events.fields import check_names
from acep.shedding.history_file import read_learned
from acep.shedding.limits import Limits, want_a_bound

__all__ = [
    "ENGINES",
    "ClauseKeywords",
    "LearnKeywords",
    "MatchKeywords",
    "MatcherKeywords",
    "RevisedKeywords",
    "StreamKeywords",
    "StreamOptions",
    "ThreadKeywords",
    "check_engine",
    "lists_options",
    "thread_count",
]

ENGINES = ("auto", "native", "reference")
COLUMNS = ("ts", "type", "seq", "id", "unit")
KEYWORD = inspect.Parameter.KEYWORD_ONLY

Function = TypeVar("Function", bound=Callable[..., Any])
Keywords = type
"""A class of keywords. (In a class with an option ``type`` that name is another one.)"""


def check_engine(engine: object) -> None:
    """Raise :class:`EngineError` for what names no engine."""
    if not isinstance(engine, str) or engine not in ENGINES:
        raise EngineError(f"there is no engine {engine!r}", hint=f"one of {', '.join(ENGINES)}", code="option_invalid")


class LearnKeywords(TypedDict, total=False):
    """The options of :func:`acep.learn`: the limits on what may be spent, the columns of the events, and what
    becomes of events that come twice."""

    budget: Budget | None
    policy: Any
    seed: int
    history: Any
    ts: str
    type: str | None
    seq: str | None
    id: str | None
    unit: str | None
    duplicates: str


class StreamKeywords(LearnKeywords, total=False):
    """The options of :func:`acep.match` and of all that match a stream: also the engine."""

    engine: str


class ThreadKeywords(StreamKeywords, total=False):
    """The options of what may match in several threads."""

    threads: int | str


class MatchKeywords(ThreadKeywords, total=False):
    """The options of :func:`acep.match` other than ``output``."""

    counts: bool
    limit: int | None


class RevisedKeywords(StreamKeywords, total=False):
    """The options of streams with a watermark, which says how late events may come: also how long before they are final
    events are matched, and the column that takes events back."""

    speculation: Any
    op: str | None


class MatcherKeywords(RevisedKeywords, total=False):
    """The options of :class:`acep.Matcher`: also the types of columns, how late events may come, whether automata may
    change, whether ``seq`` counts all events, and how many threads may match."""

    cast: Mapping[str, str] | None
    lateness: Any
    dynamic: bool
    seq_gaps: bool | int
    threads: int | str


class ClauseKeywords(TypedDict, total=False):
    """The options of a clause over a stream: how late rows may come, where the state is, and what :class:`acep.Matcher`
    takes."""

    watermark: Any
    state: str | os.PathLike[str] | None
    buckets: int | None
    latest: Any
    budget: Budget | None
    policy: Any
    seed: int
    ts: str
    seq: str | None
    id: str | None
    unit: str | None
    op: str | None
    speculation: Any
    duplicates: str


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The options of a stream, as :func:`acep.match` and :class:`acep.Matcher` describe them. Raises
    :class:`DataError` for the name of a column that is no text, :class:`EngineError` for an unknown ``engine``,
    :class:`QueryError` for a ``lateness`` or a ``speculation`` of another type than spans of time have, for ``op`` or
    ``duplicates`` without what it needs, a ``dynamic`` that is no truth value, ``seq_gaps`` with options that it
    excludes, or ``threads`` that are no number of threads."""

    budget: Budget | None = None
    policy: Any = "history"
    seed: int = 0
    history: Any = None
    ts: str = "ts"
    type: str | None = "type"
    seq: str | None = None
    id: str | None = None
    unit: str | None = None
    duplicates: str = "refuse"
    engine: str = "auto"
    cast: Mapping[str, str] | None = None
    lateness: Any = None
    speculation: Any = 0
    op: str | None = None
    dynamic: bool = False
    seq_gaps: bool | int = False
    threads: int | str = 1

    def __post_init__(self) -> None:
        check_names(ts=self.ts, type=self.type, seq=self.seq, id=self.id, op=self.op, unit=self.unit)
        for name, span in (("lateness", self.lateness), ("speculation", self.speculation)):
            if span is not None and not isinstance(span, Number | str | timedelta):
                raise QueryError(
                    f"{name}= takes a span of time, not {span.__class__.__name__}",
                    hint=f'write {name}="10 s"',
                    code="option_invalid",
                )
        thread_count(self.threads)
        if self.seq_gaps is not False:
            self._check_gaps()
        if self.op is not None and (self.lateness is None or self.id is None):
            raise QueryError(
                "op= takes back events by id until they are final",
                hint="name id=, and give lateness=" if self.lateness is None else "name id=",
                code="option_invalid",
            )
        if self.speculation != 0 and self.lateness is None:
            raise QueryError(
                "speculation= is for events that may come late", hint="give lateness=", code="option_invalid"
            )
        check_duplicates(self.duplicates, self.id if self.seq_gaps is False else self.seq)
        if not isinstance(self.dynamic, bool):
            raise QueryError(
                f"dynamic={self.dynamic!r} is not true or false", hint="dynamic=True", code="option_invalid"
            )
        check_engine(self.engine)

    def _check_gaps(self) -> None:
        first: Any = self.seq_gaps
        if first is not True and (isinstance(first, bool) or not isinstance(first, Integral) or int(first) < 0):
            raise QueryError(
                f"seq_gaps={first!r} is no number of a first event",
                hint="True, or a whole number from 0",
                code="option_invalid",
            )
        if self.seq is None:
            raise QueryError(
                "seq_gaps= says that a column counts all events", hint="name it: seq=", code="option_invalid"
            )
        if self.op is not None:
            raise QueryError(
                "with seq_gaps= events are final by their numbers, and op= could take them back after that",
                hint="leave one of them out",
                code="option_invalid",
            )
        if self.speculation != 0:
            raise QueryError(
                "seq_gaps= gives nothing early across a gap",
                hint="leave speculation= out, or seq_gaps=",
                code="option_invalid",
            )

    @property
    def first_number(self) -> int | None:
        """Return the number of the first event where ``seq`` counts all events; ``None`` where it does not.

        >>> [StreamOptions(seq="n", seq_gaps=gaps).first_number for gaps in (False, True, 0, 1)]
        [None, 0, 0, 1]
        """
        if self.seq_gaps is False:
            return None
        return 0 if self.seq_gaps is True else int(self.seq_gaps)

    @classmethod
    def from_keywords(
        cls, function: str, options: Mapping[str, Any], keywords: Keywords = StreamKeywords
    ) -> StreamOptions:
        """Return the options that ``function`` was given. Raises :class:`TypeError` for any but ``keywords``, as Python
        does.

        >>> StreamOptions.from_keywords("match", {"ts": "at"}).columns
        {'ts': 'at', 'type': 'type', 'seq': None, 'id': None, 'unit': None}
        """
        for name in options:
            if name not in keywords.__annotations__:
                hint = next((f"; {where} takes it" for where, names in ELSEWHERE.items() if name in names), "")
                shown = hint.format(name=name)
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{shown}")
        bounded = {"lateness": "inf"} if keywords is RevisedKeywords else {}  # by the watermark
        return cls(**{**options, **bounded})

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns with a role, and the unit of the time, as :func:`acep.events.tables.schema_of` takes
        them."""
        return {name: getattr(self, name) for name in COLUMNS}

    def limits(self) -> Limits | None:
        """Return the limits that the budget sets; ``None`` without a bound. Raises :class:`QueryError` for a policy
        that is none, and for a policy or a history without a bound, :class:`SnapshotError` for a damaged history."""
        maker = policy_of(self.policy)
        if self.budget is not None and self.budget.limited:
            return Limits(maker, self.budget, self.seed, {} if self.history is None else read_learned(self.history))
        want_a_bound(self.policy, self.history)
        return None


def thread_count(threads: Any) -> int:
    """Return how many threads an option ``threads`` means. Raises :class:`QueryError` if it means none.

    >>> thread_count(4), thread_count("all") >= 1
    (4, True)
    """
    if threads == "all":
        # Those that this process may use: a container or `taskset` may leave it fewer than there are.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, Integral) or int(threads) < 1:
        raise QueryError(
            f"threads={threads!r} is no number of threads",
            hint='a whole number from 1, or "all" for as many as there are cores',
            code="option_invalid",
        )
    return int(threads)


ELSEWHERE = {
    "acep.parse(text, {name}=...)": ("errors", "weights", "surplus", "parameters", "functions"),
    "acep.read_events(path, {name}=...)": (
        *("cast", "format", "skip_bad_lines", "max_skipped", "max_line", "max_expansion", "max_columns"),
        *("delimiter", "quote", "decimal", "nulls", "multiline_cells"),
    ),
    "acep.match and acep.Matcher(query, {name}=...)": ("threads",),
    "acep.Matcher(query, {name}=...)": ("lateness", "speculation", "op", "dynamic", "seq_gaps"),
}
"""The calls that take an option, with their options, to be named where a function does not take it."""


def lists_options(keywords: Keywords) -> Callable[[Function], Function]:
    """Return a decorator that lists the options of ``keywords``, with their defaults, in the signature of a function.

    >>> @lists_options(LearnKeywords)
    ... def run(query: str, **options: object) -> None: ...
    >>> list(inspect.signature(run).parameters)
    ['query', 'budget', 'policy', 'seed', 'history', 'ts', 'type', 'seq', 'id', 'unit', 'duplicates']
    """
    fields = [
        option for option in StreamOptions.__dataclass_fields__.values() if option.name in keywords.__annotations__
    ]

    def list_options(function: Function) -> Function:
        signature = inspect.signature(function)
        parameters = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        parameters += [
            inspect.Parameter(option.name, KEYWORD, default=option.default, annotation=option.type) for option in fields
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return list_options
