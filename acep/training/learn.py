"""Learn ahead: run a query exactly over past events, and keep the outcomes of its partial matches as a history."""

from __future__ import annotations

from typing import Any, Unpack

from acep.budget import Budget, tolerant
from acep.budget.policies import policy_of
from acep.errors import QueryError
from acep.events.duplicates import settle_duplicates
from acep.events.input_tables import input_table
from acep.events.tables import batch_of, schema_of
from acep.learning.history.graph import History
from acep.native.compiled import choose_engine
from acep.pattern.query_arguments import query_of, read_queries
from acep.pattern.tree import Query
from acep.plan.compile import compile_query
from acep.runtime.executors import bounded_engine
from acep.runtime.options import LearnKeywords, StreamOptions, lists_options
from acep.shedding.event_utility import SECTION as EVENTS
from acep.shedding.history_file import LearnedState, read_history
from acep.shedding.limits import checked_seed
from acep.storage.sections import read_sections

__all__ = ["learn"]


@lists_options(LearnKeywords)
def learn(events: Any, query: Query | str, **options: Unpack[LearnKeywords]) -> bytes:
    """Learn a policy's state for a query from past events, and return the bytes of a file ``history.acep``.

    The query runs over all events without shedding, and the policy learns what becomes of its partial matches (of a
    sample, where there are very many). A policy with several scoring configurations tries each of them on the last
    two fifths of the events, with allowances of several sizes, after learning from the others, and keeps the one that
    finds the most. If single events may be shed, the file also says which are the most useful ones by type and values
    (:mod:`acep.shedding.event_utility`), for :func:`acep.spark.for_each_batch`.

    The file holds the history graph that ``acep history`` prints, and the policy's state. A run under
    a budget begins with that state if :func:`acep.match` or :class:`acep.Matcher` gets the file as ``history=``. It
    serves only the query it was learned from, with the same errors, weights and columns.

    ``history``: bytes or the name of a file; learning continues from it. ``budget`` may set errors and weights only;
    the other arguments are those of :func:`acep.match`.

    Raises :class:`QueryError`, :class:`DataError`, :class:`EngineError` where the native core is missing or cannot
    run the query, and :class:`SnapshotError` for a history that is damaged, or of another query or policy.

    >>> import acep
    >>> events = {"ts": list(range(2000)), "type": list("abxx" * 500)}
    >>> query = acep.regex("ab", within=5)
    >>> learned = acep.learn(events, query)
    >>> found = acep.match(events, query, budget=acep.Budget(work=2), history=learned, output="count")
    """
    settings = StreamOptions.from_keywords("learn", options, LearnKeywords)
    if isinstance(settings.budget, Budget) and settings.budget.limited:
        raise QueryError(
            "learning ahead gives up nothing",
            hint="leave all but errors and weights out of the Budget",
            code="option_invalid",
        )
    seed, history = checked_seed(settings.seed), settings.history
    target = tolerant(query_of(query), settings.budget)
    if target.sources:
        raise QueryError("a query over the matches of others has no history of its own", hint="learn of each of them")
    table, _ = input_table(events, read_queries(query), **settings.columns, duplicates=settings.duplicates)
    table = settle_duplicates(table, settings.id, settings.duplicates)
    schema = schema_of(table.schema, **settings.columns)
    plan = compile_query(target, schema)
    plan = plan.finer or plan
    engine = bounded_engine(choose_engine(plan, "native"))
    from acep.training.events import learn_event_utility
    from acep.training.offline import Student, learn_offline

    policy = policy_of(settings.policy)()
    sections = None if history is None else read_sections(read_history(history))
    student = Student(policy, None if sections is None else History.from_sections(sections, plan.fingerprint))
    learned = None if sections is None else LearnedState.from_sections(sections).serve(policy)
    learn_offline(plan, engine, [batch_of(table, schema, plan.columns, base=0)], student, seed=seed, learned=learned)
    single = learn_event_utility(plan, engine, table)
    return student.to_bytes({} if single is None else {EVENTS: single.to_bytes()})
