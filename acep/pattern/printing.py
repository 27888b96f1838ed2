"""Write a query as text: an indented tree for readers, and one canonical text for fingerprints."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acep.pattern.spelling import condition_text, expression_text, name_text, quoted_text, tie_text
from acep.pattern.times import window_text
from acep.pattern.tree import (
    Choice,
    Component,
    EventSet,
    GraphArc,
    GraphRegister,
    Negation,
    Node,
    Output,
    Query,
    Repeat,
    Sequence,
    StateGraph,
    Strategy,
)
from acep.pattern.walk import levels, parts

__all__ = ["arc_text", "canonical", "expression_text", "output_text", "pattern_text", "tree_lines"]


def pattern_text(node: Node) -> str:
    """Return the text of a pattern in SASE+.

    >>> from acep.pattern.tree import Component, Repeat, Sequence
    >>> pattern_text(Sequence((Repeat(Component("a", ("A",)), 1, None), Component("b", ("B", "C")))))
    'SEQ(A+ a[], (B | C) b)'
    """
    match node:
        case Component(var=var, types=types):
            return f"{_types(types)} {name_text(var)}"
        case Negation(var=var, types=types):
            return f"~({_types(types)} {name_text(var)})"
        case Repeat(item=Component(var=var, types=types), low=low, high=high):
            brackets = "" if high == 1 else "[]"
            return f"{_types(types)}{_bounds(low, high)} {name_text(var)}{brackets}"
        case Repeat(item=item, low=low, high=high):
            inside = pattern_text(item)
            bare = isinstance(item, (Sequence, EventSet, Choice))
            return (inside if bare else f"({inside})") + _bounds(low, high)
        case Sequence(items=items):
            return f"SEQ({', '.join(pattern_text(i) for i in items)})"
        case Choice(items=items):
            return f"({' | '.join(pattern_text(i) for i in items)})"
        case EventSet(items=members):
            return f"{{{', '.join(pattern_text(i) for i in members)}}}"
        case StateGraph(start=start, final=final, registers=registers, arcs=arcs):
            head = f"AUTOMATON FROM {name_text(start)} TO {', '.join(map(name_text, final))}"
            return "; ".join([head, *map(_register_text, registers), *map(arc_text, arcs)])


def _register_text(register: GraphRegister) -> str:
    value = register.initial
    initial = quoted_text(value) if isinstance(value, str) else "null" if value is None else repr(value)
    return f"{register.kind} {name_text(register.name)} = {initial}"


def arc_text(arc: GraphArc) -> str:
    """Return an arc of a hand-written automaton as one line.

    >>> from acep.pattern.automata import arc
    >>> arc_text(arc("a", "b", "e.x > r.y", {"y": "e.x"}))
    'a -> b: e.x > r.y; y := e.x; bind events'
    """
    parts = ["any event" if arc.fence is None else expression_text(arc.fence)]
    if arc.epsilon:
        parts[0] = "no event" if arc.fence is None else f"no event, {parts[0]}"
    parts += [f"{name_text(name)} := {expression_text(value)}" for name, value in arc.transfer]
    parts += ["ignored"] if arc.ignorable else [] if arc.epsilon else [f"bind {name_text(arc.var)}"]
    parts += [] if arc.since is None else [f"since {expression_text(arc.since)}"]
    parts += [] if arc.until is None else [f"until {expression_text(arc.until)}"]
    return f"{name_text(arc.source)} -> {name_text(arc.target)}: {'; '.join(parts)}"


def _types(types: tuple[str, ...]) -> str:
    if len(types) == 1:
        return name_text(types[0])
    return f"({' | '.join(name_text(t) for t in types)})" if types else "ANY"


def _bounds(low: int, high: int | None) -> str:
    match (low, high):
        case (1, None):
            return "+"
        case (0, None):
            return "*"
        case (0, 1):
            return "?"
        case (_, None):
            return f"{{{low},}}"
        case _:
            return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def letters_text(node: Node) -> str:
    """Return the text of a pattern as a letter expression.

    >>> from acep.pattern.text.letters import regex
    >>> letters_text(regex("a ( b | 'SUBMIT' ){2+}", within=5).pattern)
    "a(b|'SUBMIT'){2,}"
    """
    match node:
        case Component(types=()):
            return "."
        case Component(types=types):
            return types[0] if len(types[0]) == 1 and types[0].isalnum() else quoted_text(types[0])
        case Repeat(item=item, low=low, high=high):
            inside = letters_text(item)
            return (inside if isinstance(item, (Component, Choice)) else f"({inside})") + _bounds(low, high)
        case Sequence(items=items):
            text = ""
            for part in map(letters_text, items):
                # Without a space, two quotes would be read as one quote inside a name.
                text += f" {part}" if text.endswith("'") and part.startswith("'") else part
            return text
        case Choice(items=items):
            return f"({'|'.join(letters_text(i) for i in items)})"
        case _:
            return pattern_text(node)


# ---- whole queries


def _clauses(query: Query) -> Iterator[str]:
    """Yield the clauses behind the pattern, without those that have no effect."""
    conditions = []
    if query.ties:
        conditions.append(f"[{', '.join(map(tie_text, query.ties))}]")
    conditions += [condition_text(e) for e in query.where]
    if conditions or query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        yield f"WHERE {query.strategy.value}() {{{' AND '.join(conditions)}}}"
    if query.within is not None:
        yield f"WITHIN {window_text(query.within)}"
    if query.having is not None:
        yield f"HAVING {expression_text(query.having)}"
    if query.returns:
        yield "RETURN " + ", ".join(f"{expression_text(e)} AS {name_text(n)}" for n, e in query.returns)
    if query.output is not Output.ALL:
        yield f"OUTPUT {output_text(query)}"


def output_text(query: Query, *, keywords: Callable[[str], str] = str.upper) -> str:
    """Return the choice among the matches of a query in words. ``keywords``: how those of the language are written.

    >>> from acep.pattern.text.sase import parse
    >>> output_text(parse("PATTERN SEQ(A a, B b) OUTPUT SHORTEST AFTER MATCH SKIP TO FIRST b"))
    'SHORTEST AFTER MATCH SKIP TO FIRST b'
    """
    words = keywords(query.output.value.replace("_", " "))
    if query.skip is None:
        return words
    target = keywords("event") if query.skip.place == "next" else name_text(query.skip.variable)
    return f"{words} {keywords(f'to {query.skip.place}')} {target}"


def _budget(query: Query) -> Iterator[str]:
    if query.errors:
        yield f"errors {query.errors}"
    for var, weight in query.weights:
        yield f"weight {name_text(var)} {'infinite' if weight is None else weight}"
    if query.surplus is not None:
        yield f"surplus {query.surplus}"


def canonical(query: Query) -> str:
    """Return the query as one line for fingerprints: two queries with the same tree have the same line.

    It contains all that affects the meaning and nothing else: no spans, comments or spelling. It is a comment with the
    error budget and weights, and SASE+ text that parses to the same query. A letter expression appears as
    ``LETTERS ...`` in place of the pattern.

    >>> from acep.pattern.text.sase import parse
    >>> canonical(parse("pattern seq(A  a,B+ b[])  where [k] and b[i].x>3 within 60 min", errors=1))
    '/* errors 1 */ PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match() {[k] AND b[i].x > 3} WITHIN 1 h'
    """
    head = list(_budget(query))
    words = [f"/* {', '.join(head).replace('*/', '*|')} */"] if head else []
    if query.sources:
        words.append("FROM " + ", ".join(f"({canonical(s.query)}) AS {name_text(s.type)}" for s in query.sources))
    if query.letters:
        words.append(f"LETTERS {letters_text(query.pattern)}")
    else:
        words.append(f"PATTERN {pattern_text(query.pattern)}")
    return " ".join([*words, *_clauses(query)])


def tree_lines(query: Query) -> list[str]:
    """Return the query as an indented tree, one part per line.

    >>> from acep.pattern.text.sase import parse
    >>> for line in tree_lines(parse("PATTERN SEQ(A a, (B b | C c)+) WHERE [k] AND b.x > 3 WITHIN 5 EVENTS")):
    ...     print(line)
    query, skip_till_any_match
      sequence
        component a: A
        repeat 1 or more
          choice
            component b: B
            component c: C
      tie [k]
      where b.x > 3
      within 5 EVENTS
    """
    lines = [f"query, {query.strategy.value}"]
    for source in query.sources:
        lines.append(f"  from, as {name_text(source.type)}")
        lines += ["    " + line for line in tree_lines(source.query)]
    lines += ["  " * depth + _heading(node) for node, depth in levels(query.pattern, parts)]
    if query.graph is not None:
        lines += [
            f"    {line}" for line in (*map(_register_text, query.graph.registers), *map(arc_text, query.graph.arcs))
        ]
    lines += [f"  tie [{tie_text(t)}]" for t in query.ties]
    lines += [f"  where {expression_text(e)}" for e in query.where]
    if query.within is not None:
        lines.append(f"  within {window_text(query.within)}")
    if query.having is not None:
        lines.append(f"  having {expression_text(query.having)}")
    lines += [f"  return {name_text(n)}: {expression_text(e)}" for n, e in query.returns]
    if query.output is not Output.ALL:
        lines.append(f"  output {output_text(query, keywords=str.lower)}")
    lines += [f"  {line}" for line in _budget(query)]
    return lines


def _heading(node: Node) -> str:
    match node:
        case Component(var=var, types=types):
            return f"component {var}: {_types(types)}"
        case Negation(var=var, types=types):
            return f"no {var}: {_types(types)}"
        case Repeat(low=low, high=high):
            return "repeat " + _count_text(low, high)
        case Sequence():
            return "sequence"
        case Choice():
            return "choice"
        case EventSet():
            return "set, in any order"
        case StateGraph(start=start, final=final):
            return f"automaton from {name_text(start)} to {', '.join(map(name_text, final))}"


def _count_text(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more" if low else "any number"
    return str(low) if low == high else f"{low} to {high}"
