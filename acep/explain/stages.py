"""Explain the compilation of a query stage by stage as a text, and list its costly parts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from acep.explain.automaton_text import arcs_lines, program_lines, thompson_lines, types_text
from acep.pattern.closure import close_equalities, tied_attributes
from acep.pattern.printing import expression_text, output_text, tree_lines
from acep.pattern.query_arguments import query_of, reduce_to_existence
from acep.pattern.times import duration_text
from acep.pattern.tree import Output, Query
from acep.plan.assume import assumed_plan
from acep.plan.choice import COUNTED, WINDOWS, choose, decides_at_once
from acep.plan.compile import Plan, compile_query
from acep.plan.dominance import lines as lines_of_dominance
from acep.plan.lanes import why_no_slices, why_one_lane
from acep.plan.lint.finding import tokens_of
from acep.plan.lint.rules import lint_plan
from acep.plan.prefilter import lines, prefilter_gain
from acep.plan.schema import Schema

__all__ = ["explain"]

_WIDTH = 100


def explain(query: Query | str, schema: Schema | None = None, *, missing: str | None = None) -> str:
    """Explain the compilation of a query, in sections with headings.

    Without a ``schema`` the columns are assumed from the query; the text says so. ``missing`` is the reason why the
    native core is not available (from :func:`acep.native.compiled.why_not`), or ``None`` if it is available.

    Raise :class:`QueryError` if the query cannot be compiled.

    >>> from acep.pattern.text.letters import regex
    >>> print(explain(regex("ab", within=5, by="user")))
    # tokens
      a  b
    <BLANKLINE>
    # tree
      query, skip_till_any_match
        sequence
          component a: a
          component b: b
        tie [user]
        within 5
    <BLANKLINE>
    # equalities
      partition attributes: user
    <BLANKLINE>
    # Thompson automaton
      ...
    """
    query = query_of(query)
    plan = assumed_plan(query) if schema is None else compile_query(query, schema)
    tokens = textwrap.wrap("  ".join(map(str, tokens_of(query))), _WIDTH, break_long_words=False)
    findings = [line for finding in lint_plan(plan) for line in f"* {finding}".splitlines()]
    sections = [
        *([("tokens", tokens)] if tokens else []),
        *_stages(plan, assumed=schema is None, missing=missing),
        ("costly", findings or ["nothing that stands out"]),
    ]
    return _text(sections)


def _text(sections: list[tuple[str, list[str]]]) -> str:
    parts = ("\n".join([f"# {title}", *(f"  {line}" if line else "" for line in lines)]) for title, lines in sections)
    return "\n\n".join(parts)


def _stages(plan: Plan, *, assumed: bool, missing: str | None, source: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of one query, including those of its sources."""
    yield "tree", tree_lines(plan.query)
    for inner, kind in plan.sources:
        stages = _stages(inner, assumed=assumed, missing=missing, source=True)
        yield f"source {kind}", _text(list(stages)).splitlines()
    yield "equalities", list(_equalities(plan.query))
    if plan.query.graph is None:
        yield "Thompson automaton", thompson_lines(plan.automaton)
    yield "arcs", arcs_lines(plan.arcs, plan.automaton)
    predicates = [p.written for p in plan.predicates]
    yield "program", program_lines(plan.program, predicates, [p.written for p in plan.transfers])
    yield "plan", [*_plan(plan, assumed), *_engine(plan, missing, source)]


def _equalities(query: Query) -> Iterator[str]:
    for expr in close_equalities(query)[len(query.where) :]:
        yield f"follows: {expression_text(expr)}"
    yield f"partition attributes: {', '.join(query.ties)}" if query.ties else "no partition attribute"
    if tied := tied_attributes(query):
        yield f"equal in all events of a match, but no partition attribute: {', '.join(tied)}"


def _plan(plan: Plan, assumed: bool) -> Iterator[str]:
    query, schema, costs = plan.query, plan.schema, plan.automaton.costs
    if assumed:
        yield "no events were given: the columns are assumed to be what the query asks for"
    yield f"partitions: {', '.join(plan.keys) or 'none: the stream is one'}"
    if plan.finer is not None:
        yield f"kept apart by: {', '.join(plan.tied)}, as events of other values change no match"
    if plan.strict:
        yield "positions: those of the whole stream"
    yield f"window: {_window(plan, assumed)}"
    role_columns = [schema.ts, *([schema.type] if schema.type else [])]
    yield f"columns read: {', '.join(dict.fromkeys([*role_columns, *plan.columns]))}"
    if plan.predicates:
        yield f"values looked at of an event: {', '.join(plan.row)}"
    for negation, conditions in zip(plan.automaton.negations, plan.negated, strict=True):
        broken = f"broken by: {negation.var} of {types_text(negation.types)}"
        texts = " AND ".join(expression_text(c.written) for c in conditions)
        yield f"{broken} with {texts}" if texts else broken
    surplus = "" if costs.surplus is None else f", of which a surplus event costs {costs.unscale(costs.surplus)}"
    yield f"error budget: {costs.unscale(costs.budget)}{surplus}"
    yield f"output: {output_text(query, keywords=str.lower)}"


MOST_PATHS = 4  # that are told


def _engine(plan: Plan, missing: str | None, source: bool) -> Iterator[str]:
    """Yield the engine for each output with the reason, its input events, and the use of match windows."""
    choice = choose(plan.finer or plan)
    why = missing or choice.why
    if missing is None and source and not decides_at_once(plan):
        why = "matches that the next query runs on must be known as soon as they end"
    elif missing is None and choice.engine != "reference":
        yield from _native(plan, source)
        return
    yield f"engine: reference, which runs every query: {why}"


def _ordered_engine(plan: Plan) -> Iterator[str]:
    """Yield whether the ordered engine finds the matches that a query chooses."""
    if not plan.query.output.is_sequential:
        return
    from acep.plan.chosen.query_order import order_of_query  # few queries choose among their matches

    order = order_of_query(plan)
    yield f"engine of chosen matches: {'ordered' if order.is_ordered else 'the same, and not ordered'}: {order.why}"
    if order.is_ordered:
        yield "  but all matches are made under a budget, and where matches may be taken back or queries may change"


def _threads(plan: Plan) -> str:
    """Return how many threads can match."""
    why = why_one_lane(plan)
    if why is None:
        return "any number, which share the partitions"
    if not (plan.finer or plan).keys and why_no_slices(plan) is None:
        return "any number, which share slices of a table, but not of a stream"
    return f"one, as {why}"


def _native(plan: Plan, source: bool) -> Iterator[str]:
    yield f"threads: {_threads(plan)}"
    plan = plan.finer or plan
    matches = choose(plan)
    if not source:
        yield from _ordered_engine(plan)
    yield f"engine: {_engine_name(matches.engine)}: {matches.why}"
    by_why: dict[str, list[str]] = {}
    output_of_name = {name: name for name in COUNTED} | {"bundles without counts": "points"}
    output_of_name |= {name: name for name in ("exists", "compressed")}
    for name, output in {}.items() if source else output_of_name.items():
        choice = choose(_for_existence(plan) if output == "exists" else plan, output)
        by_why.setdefault("made from the matches" if choice == matches else choice.why, []).append(name)
    yield from (f"{', '.join(outputs)}: {why}" for why, outputs in by_why.items())
    if matches.base == "merged":
        yield "under a budget: the same; where it does not suffice, stretches of single partitions are skipped"
    if not source and choose(plan, "points").base == "search":
        yield from _search(plan)
    if not source and choose(plan, "points").base == "dominance":
        also = " ended no earlier," if plan.query.strategy.contiguous else ""
        yield f"a run goes where another one of its state began no earlier,{also} misses no more, and has"
        yield from lines_of_dominance(plan)
    if matches.base == "nodes":
        yield from _less_work(plan)
    yield f"events that come to it: {_event_conditions(plan)}"
    windows = prefilter_gain(plan, matches.base)
    if not windows.is_useful:
        yield f"match windows: not used: {windows.why}"
        return
    yield f"match windows: used: {windows.why}; by counters,"
    yield from (f"  {line}" for line in lines(plan))


def _less_work(plan: Plan) -> Iterator[str]:
    """Yield how the node engine finds partial matches, and whether it asks which of them can go on."""
    from acep.native.session import NativeSession  # the core may be missing

    session = NativeSession([plan], ["nodes"])
    for source, target, registers in session.arc_keys(0):
        yield f"from state {source} to {target}: partial matches are found by {', '.join(registers)}"
    if session.asks_future(0):
        yield "known future: a partial match is made if later events of its table or push can end it"
    else:
        yield f"known future: not used: {_why_unforeseen(plan)}"


def _search(plan: Plan) -> Iterator[str]:
    """Yield in which order the search engine looks for the events of a match."""
    from acep.native.session import NativeSession  # the core may be missing

    paths = NativeSession([plan], ["search"]).search_paths(0)
    costs = plan.automaton.costs
    for path in paths[:MOST_PATHS]:
        order = ", then ".join(_search_step(step.variable, step.equal, step.near) for step in path.steps)
        misses = f", where {costs.unscale(path.error)} is missing" if path.error else ""
        yield f"from {path.last} back{misses}: {order or 'it is alone'}"
    if len(paths) > MOST_PATHS:
        yield f"{len(paths) - MOST_PATHS} more ways, with other events missing"


def _search_step(variable: str, equal: Sequence[str], near: Sequence[str]) -> str:
    """Return a step of a search in words.

    >>> _search_step("b", ["user"], []), _search_step("c", [], ["x"]), _search_step("d", [], [])
    ('b by equal user', 'c by near x', 'each d')
    """
    kinds = [f"{kind} {', '.join(columns)}" for kind, columns in (("equal", equal), ("near", near)) if columns]
    return f"{variable} by {' and '.join(kinds)}" if kinds else f"each {variable}"


def _why_unforeseen(plan: Plan) -> str:
    if plan.window.counted:
        return "the window is one of events"
    if plan.query.strategy.contiguous:
        return "under contiguity few partial matches live"
    return "the arcs of the pattern may change" if plan.dynamic else "the pattern has too many arcs"


def _for_existence(plan: Plan) -> Plan:
    """Return the plan that says whether there is a match at all."""
    query = reduce_to_existence(plan.query)
    return plan if query.output is plan.query.output else compile_query(query, plan.schema)


def _engine_name(engine: str) -> str:
    alone = engine.removeprefix(WINDOWS)
    return alone if alone == engine else f"{alone}, behind match windows"


def _event_conditions(plan: Plan) -> str:
    """Return the conditions, by variable, that a single event must meet to reach the engine."""
    negations = plan.automaton.negations
    waits = plan.query.output is not Output.ALL or any(n.trailing for n in negations)
    if waits and (plan.window.counted or plan.query.strategy.contiguous):
        return "all, since they pass what waits for its end"
    alternatives: dict[tuple[str, tuple[str, ...]], set[frozenset[str]]] = {}
    for step in (step for state_steps in plan.program.steps for step in state_steps):
        layout = plan.program.layouts[step.arc.source]
        alone = (
            c
            for c in step.binding
            if not (c.loops or (c.only and c.only[0] in layout)) and {s.kind for s in c.sources} <= {"event", "one"}
        )
        texts = frozenset(expression_text(plan.predicates[c.predicate].written) for c in alone)
        alternatives.setdefault((step.arc.var, step.arc.types), set()).add(texts)
    for negation, conditions in zip(negations, plan.negated, strict=True):
        texts = frozenset(expression_text(c.written) for c in conditions if {x.var for x in c.leaves} == {negation.var})
        alternatives.setdefault((f"~{negation.var}", negation.types), set()).add(texts)
    return "; ".join(
        f"{var} ({' AND '.join([types_text(types), *sorted(texts)])})"
        for (var, types), options in alternatives.items()
        for texts in sorted(options, key=sorted)
        if not any(weaker < texts for weaker in options)
    )


def _window(plan: Plan, assumed: bool) -> str:
    window, within, schema = plan.window, plan.query.within, plan.schema
    if window.span is None or within is None:
        return "none"
    if window.counted:
        return f"{window.span + 1} events"
    if assumed and within.unit == "ns":
        return duration_text(within.amount)
    ticks = f"{window.span} ticks of {schema.ts}"
    if assumed or schema.tick_ns is None:
        return ticks
    return f"{ticks} ({duration_text(window.span * schema.tick_ns)})"
