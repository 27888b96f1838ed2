"""Choose the engine that runs a plan, by its pattern and the requested output. The choice never changes the result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from acep.pattern.printing import output_text
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.plan.dominance import reason_against
from acep.plan.lower.stream_tables import StreamTables
from acep.plan.lower.tables import NotNativeError, PlanTables
from acep.plan.prefilter import prefilter_gain

__all__ = [
    "BY_POINTS",
    "COUNTED",
    "TALLIED",
    "UNITS",
    "WINDOWS",
    "EngineChoice",
    "base_engine",
    "choose",
    "decides_at_once",
    "tables_for",
    "waits_from",
    "with_allowance",
    "with_partial_matches",
]

ALWAYS = -(2**63)  # before all times

COUNTED = ("count", "points", "bundles")
"""Outputs that do not need the matches themselves."""

TALLIED = "tallied"
"""An output of a stream: the match points, with the work that the matches take, which the native core does not make."""

BY_POINTS = ("dominance", "search")
"""Engines that give match points, with the least error of each, and no matches."""

_POINTS = ("points", "exists")
"""Outputs that only need the match points, with the least error of each."""

WINDOWS = "windows+"
"""Prefix of the name of an engine whose events are filtered by match windows."""

UNITS = "units+"
"""Prefix of the name of an engine that keeps to a budget of transition evaluations by skipping sampling units."""


@dataclass(frozen=True)
class EngineChoice:
    """An engine and the reason for its choice (``why``). ``engine`` is ``"reference"`` or an engine of the native
    core (docs/internals/native.md): ``"nodes"``, ``"dominance"``, ``"search"``, ``"merged"``, ``"compressed"``, or an
    output of :data:`COUNTED`, with prefix :data:`WINDOWS` if match windows filter its events. ``lowered``: the tables
    of the plan after those of the plans before it, or ``None`` for the reference engine."""

    engine: str
    why: str
    lowered: StreamTables | None = field(default=None, repr=False, compare=False)

    @property
    def base(self) -> str:
        """Return the name of the engine without prefixes."""
        return base_engine(self.engine)


def choose(plan: Plan, output: str = "matches", before: StreamTables | None = None) -> EngineChoice:
    """Choose the engine for a plan, assuming that the native core is available. ``output`` is that of
    :func:`acep.match`, or :data:`TALLIED`. Bundles without counts are made from ``"points"``. ``before``: the tables of
    the plans before it in a stream.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> choose(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9")))
    EngineChoice(engine='windows+nodes', why='predicates tie its events together, so that each run keeps registers')
    >>> choose(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9")), "points").engine
    'search'
    >>> choose(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE a.x > 5 WITHIN 9")), "count").engine
    'count'
    >>> choose(assumed_plan(acep.parse("PATTERN {A a, B b, C c, D d, E e} WITHIN 9"))).engine
    'windows+merged'
    """
    if plan.engines.get(output, ("", ""))[0] == "reference":
        return EngineChoice(*plan.engines[output])
    try:
        lowered = (before or StreamTables()).add(plan)
    except NotNativeError as reason:
        plan.engines[output] = "reference", str(reason)
        return EngineChoice(*plan.engines[output])
    if output not in plan.engines:
        choice = _choose_base(plan, output, lowered.plans[-1])
        windows = WINDOWS if prefilter_gain(plan, choice.engine).is_useful else ""
        plan.engines[output] = windows + choice.engine, choice.why
    return EngineChoice(*plan.engines[output], lowered)


def _choose_base(plan: Plan, output: str, tables: PlanTables) -> EngineChoice:
    if why := _not_merged(plan, tables):
        if output in _POINTS and _can_search(plan):
            return EngineChoice("search", f"{why}, but those of a match can be looked for from its last one back")
        if output in _POINTS and reason_against(plan) is None:
            return EngineChoice("dominance", f"{why}, but those go that another one dominates")
        return EngineChoice("nodes", why)
    if output in (*COUNTED, "exists", TALLIED):
        engine = "points" if output in ("exists", TALLIED) else output
        return EngineChoice(engine, "no predicate ties its events together, so that matches are counted and not made")
    if output == "compressed":
        return EngineChoice(output, "no predicate ties its events together, so that matches share their pasts")
    return EngineChoice("merged", "no predicate ties its events together, so that runs in one state are one")


def _can_search(plan: Plan) -> bool:
    from acep.plan import searching  # only plans whose events are tied together need it

    return searching.reason_against(plan) is None


def _not_merged(plan: Plan, tables: PlanTables) -> str | None:
    """Return why runs in one state cannot be merged, or ``None`` if they can."""
    if plan.query.strategy.contiguous and plan.automaton.costs.budget:
        return "under contiguity what is missing depends on each run's gaps"
    if tables.mergeable:
        return None
    if plan.dynamic and plan.query.graph is None:
        return "it may change, so that its runs are kept apart"
    if plan.query.output is not Output.ALL:
        return f"matches are chosen ({output_text(plan.query, keywords=str.lower)}), so that each run is kept apart"
    if plan.query.graph is not None:
        return "its runs are told apart by registers and final states"
    if plan.automaton.negations:
        return "negations look at the events of each run"
    if plan.having is not None or plan.returns:
        return "HAVING and RETURN look at the events of each match"
    return "predicates tie its events together, so that each run keeps registers"


def base_engine(engine: str) -> str:
    """Return the name of an engine without its prefixes.

    >>> base_engine("windows+units+merged")
    'merged'
    """
    return engine.removeprefix(WINDOWS).removeprefix(UNITS)


def with_allowance(choice: EngineChoice) -> str:
    """Return the engine that replaces a chosen one under a budget of transition evaluations.

    >>> with_allowance(EngineChoice("windows+merged", "")), with_allowance(EngineChoice("dominance", ""))
    ('windows+units+merged', 'dominance')
    """
    if choice.base in ("nodes", "dominance"):
        return choice.engine
    return (WINDOWS if choice.engine.startswith(WINDOWS) else "") + UNITS + choice.base


def with_partial_matches(plan: Plan, choice: EngineChoice) -> EngineChoice:
    """Return the engine that follows partial matches in place of one that searches, as under a budget.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> plan = assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9"))
    >>> with_partial_matches(plan, choose(plan, "points")).engine
    'windows+dominance'
    """
    if choice.base != "search":
        return choice
    windows = WINDOWS if prefilter_gain(plan, "dominance").is_useful else ""
    return replace(choice, engine=windows + "dominance", why="a budget decides about partial matches")


def tables_for(engine: str, lowered: StreamTables) -> StreamTables:
    """Return the tables of plans as an engine needs those of the last one."""
    return lowered.with_demands() if base_engine(engine) in BY_POINTS else lowered


def decides_at_once(plan: Plan) -> bool:
    """Return whether a match is final at its last event, so that it can be output at once."""
    return plan.query.output is Output.ALL and not any(n.trailing for n in plan.automaton.negations)


def waits_from(plan: Plan) -> int | None:
    """Return the tick of the first version whose matches wait until a window after their first event, so that they end
    at that tick or later; ``None``: no match waits."""
    if plan.query.output is Output.EARLIEST_MAXIMAL:
        return ALWAYS
    return min((ALWAYS if n.since is None else n.since for n in plan.automaton.negations if n.trailing), default=None)
