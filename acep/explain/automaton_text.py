"""Print the automaton, its arcs and its program as text, one item per line, for readers and for tests.

Costs are shown in the user's units (unscaled). State n of the arcs is letter n of the Thompson automaton.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acep.automaton.arcs import Accept, Arc, Arcs, Crossing, State
from acep.automaton.registers import Check, Frame, Ignore, Program, Register, Step, ValueSource
from acep.automaton.thompson import Costs, Edge, Gap, Letter, Negated, Thompson
from acep.pattern.expressions import Expr
from acep.pattern.printing import expression_text

__all__ = ["arcs_lines", "crossing_text", "gaps_text", "program_lines", "thompson_lines", "types_text"]


def types_text(types: tuple[str, ...]) -> str:
    """Format the types that a letter binds.

    >>> types_text(("A", "B")), types_text(())
    ('A|B', 'ANY')
    """
    return "|".join(types) or "ANY"


def gaps_text(gaps: tuple[Gap, ...], costs: Costs) -> str:
    """Format what may be missing on a walk; under contiguity with the letters that make up for events in between.

    >>> gaps_text(((1, 0),), Costs(2, 4, (), False)), gaps_text(((0, 0), (2, 1)), Costs(1, 2, (), True))
    ('1/2', '0 or 2 (1 letter)')
    """
    return " or ".join(_gap(weight, letters, costs) for weight, letters in gaps)


def _gap(weight: int, letters: int, costs: Costs) -> str:
    text = str(costs.unscale(weight))
    return f"{text} ({_count(letters, 'letter')})" if letters else text


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


# ---- the Thompson automaton


def thompson_lines(automaton: Thompson) -> list[str]:
    r"""Print the Thompson automaton: its letters, negations and groups, then each place with the edges that leave it.

    >>> from acep.automaton.thompson import build
    >>> from acep.pattern.text.letters import regex
    >>> print("\n".join(thompson_lines(build(regex("ab?", within=5, errors=1)))))
    5 places, 2 letters; error budget 1
    letter 1: a
    letter 2: b; inside r0
    place 0, start
      letter 1 (a) -> 1
      missing 1 -> 1
    place 1
      empty -> 2
      empty -> 3
    place 2, final
    place 3, inside r0, first of copy 0
      letter 2 (b) -> 4
    place 4, inside r0, last of copy 0
      empty -> 2
    """
    costs = automaton.costs
    head = f"{_count(len(automaton.places), 'place')}, {_count(len(automaton.letters), 'letter')}"
    head = f"{head}; error budget {costs.unscale(costs.budget)}" + (", contiguous" if costs.contiguous else "")
    lines = [head if costs.surplus is None else f"{head}, each surplus event {costs.unscale(costs.surplus)}"]
    lines += [f"letter {i}: {_letter(letter)}" for i, letter in enumerate(automaton.letters, 1)]
    lines += [f"negation n{i}: {_negation(negation, costs)}" for i, negation in enumerate(automaton.negations)]
    lines += [f"group g{i}: {', '.join(names)}" for i, names in enumerate(automaton.groups)]
    leaving: list[list[Edge]] = [[] for _ in automaton.places]
    for edge in automaton.edges:
        leaving[edge.source].append(edge)
    last_of = dict(automaton.copies)
    for number, place in enumerate(automaton.places):
        words = [f"place {number}"]
        words += ["start"] if number == automaton.start else []
        words += ["final"] if number == automaton.final else []
        words += [f"inside {' '.join(f'r{i}' for i in place.inside)}"] if place.inside else []
        words += [f"first of copy {place.copy_start}"] if place.copy_start is not None else []
        words += [f"last of copy {last_of[number]}"] if number in last_of else []
        lines.append(", ".join(words))
        lines += [f"  {_edge(edge, automaton)} -> {edge.target}" for edge in leaving[number]]
    return lines


def _letter(letter: Letter) -> str:
    name = letter.var if letter.types == (letter.var,) else f"{letter.var} of {types_text(letter.types)}"
    words = [name]
    if letter.inside:
        words.append("inside " + " ".join(f"r{i}{' (open)' if is_open else ''}" for i, is_open in letter.inside))
    if letter.kleene is not None:
        words.append(f"repeated in r{letter.kleene}")
    if letter.groups:
        words.append("of " + " ".join(f"g{g}" for g in letter.groups))
    return "; ".join(words)


def _negation(negation: Negated, costs: Costs) -> str:
    where = [word for word, holds in (("leading", negation.leading), ("trailing", negation.trailing)) if holds]
    words = [f"no {negation.var} of {types_text(negation.types)}", " and ".join(where) or "between"]
    if negation.weight is not None:
        words.append(f"each costs {costs.unscale(negation.weight)}")
    if negation.groups:
        words.append("of " + " ".join(f"g{g}" for g in negation.groups))
    return "; ".join(words)


def _edge(edge: Edge, automaton: Thompson) -> str:
    match edge.kind:
        case "letter":
            return f"letter {edge.number + 1} ({automaton.letters[edge.number].var})"
        case "missing":
            return f"missing {gaps_text(edge.gaps, automaton.costs)}"
        case "negation":
            return f"past n{edge.number} (no {automaton.negations[edge.number].var})"
        case "again":
            return f"again g{edge.number}"
        case _:
            return edge.kind


# ---- the arcs


def arcs_lines(arcs: Arcs, automaton: Thompson) -> list[str]:
    r"""Print the automaton that is executed: each state with its arcs and its possible ends.

    An arc written ``=>`` is blocking: under skip till next match an event that it can bind must not be ignored.

    >>> from acep.automaton.arcs import compose
    >>> from acep.automaton.thompson import build
    >>> from acep.pattern.text.letters import regex
    >>> automaton = build(regex("ab?", within=5, errors=1))
    >>> print("\n".join(arcs_lines(compose(automaton), automaton)))
    state 0, nothing bound; least rest 0
      => 1 (a)
      -> 2 (b), missing 1
    state 1 (a); least rest 0
      => 2 (b)
      ends
    state 2 (b); least rest 0
      ends
    """
    lines = []
    for state, state_arcs in zip(arcs.states, arcs.arcs, strict=True):
        lines.append(_state(state, automaton))
        lines += [f"  {_arc(arc, automaton)}" for arc in state_arcs]
        lines += [f"  {_accept(accept, automaton)}" for accept in state.accepts]
    return lines


def _state(state: State, automaton: Thompson) -> str:
    opened = f", open {' '.join(state.open)}" if state.open else ""
    cost = state.cost_to_end
    remaining = "no way to an end" if cost is None else f"least rest {automaton.costs.unscale(cost)}"
    return f"state {state.name}{opened}; {remaining}"


def _arc(arc: Arc, automaton: Thompson) -> str:
    words = [f"{'=>' if arc.blocking else '->'} {arc.target} ({arc.var})"]
    if arc.gaps != ((0, 0),):
        words.append(f"missing {gaps_text(arc.gaps, automaton.costs)}")
    words += [f"past {crossing_text(c, automaton)}" for c in arc.crossings]
    words += [f"again g{g}" for g in arc.resets]
    words += [f"closes {var}" for var in arc.closes]
    return ", ".join(words)


def crossing_text(crossing: Crossing, automaton: Thompson) -> str:
    """Format a negation that a walk passes: its number, its variable, and the groups newly entered before it."""
    entered = f", in a new g{' g'.join(map(str, crossing.entered))}" if crossing.entered else ""
    return f"n{crossing.negation} (no {automaton.negations[crossing.negation].var}{entered})"


def _accept(accept: Accept, automaton: Thompson) -> str:
    words = ["ends"]
    if accept.cost:
        words.append(f"missing {automaton.costs.unscale(accept.cost)}")
    words += [f"past {crossing_text(c, automaton)}" for c in accept.crossings]
    return ", ".join(words)


# ---- the program


def program_lines(program: Program, predicates: Sequence[Expr], transfers: Sequence[Expr] = ()) -> list[str]:
    """Print the program: for each state the registers of a run, the checks along its arcs (with the sources of values
    in brackets), and how arcs set the registers of their target state.

    ``predicates`` are those from which the program was assembled; predicates that no arc decides are listed at the end.
    ``transfers`` are the new values of registers of a hand-written automaton.
    """
    texts = [f"p{i}: {expression_text(p)}" for i, p in enumerate(predicates)]
    decided: set[int] = set()
    lines = []
    for number, (layout, steps, ending) in enumerate(zip(program.layouts, program.steps, program.ending, strict=True)):
        lines.append(f"state {number} keeps {', '.join(map(str, layout)) or 'nothing'}")
        for step in steps:
            lines.append(f"  {step.arc.var} -> {step.arc.target}{_validity(step.arc)}")
            lines += [f"    {line}" for line in _step(step, layout, program.layouts[step.arc.target], texts)]
            lines += [f"    {a.register} := {expression_text(transfers[a.transfer])}" for a in step.assigns]
            decided.update(check.predicate for check in (*step.leaving, *step.binding))
        lines += [f"  at the end checks {_check(check, texts)}" for check in ending]
        decided.update(check.predicate for check in ending)
        for ignored in program.ignoring[number] if program.ignoring else ():
            lines.append(f"  ignores an event{_validity(ignored)}")
            lines += [f"    checks {_check(check, texts)}" for check in ignored.checks]
            decided.update(check.predicate for check in ignored.checks)
    return lines + [f"never decided: {text}" for i, text in enumerate(texts) if i not in decided]


def _validity(arc: Arc | Ignore) -> str:
    since = "" if arc.since is None else f", since tick {arc.since}"
    return since + ("" if arc.until is None else f", until tick {arc.until}")


def _step(step: Step, before: tuple[Register, ...], after: tuple[Register, ...], texts: Sequence[str]) -> Iterator[str]:
    for check in step.leaving:
        yield f"on leaving checks {_check(check, texts)}"
    forgotten = [r for r in before if r.var in step.forgets]
    if forgotten:
        yield f"forgets {', '.join(map(str, forgotten))}"
    bound = {r for r in before if r.var not in step.forgets}
    for check in step.binding:
        unbound = sorted({r for s in check.sources for r in s.registers} - bound)
        if unbound:
            yield f"drops {texts[check.predicate]}, as {unbound[0]} is unbound"
        else:
            yield f"checks {_check(check, texts)}"
    frames = {f.register: f for f in step.frames}
    for register in after:
        if register.var == step.arc.var:
            yield f"{register} {_update(register, frames.get(register))}"


def _check(check: Check, texts: Sequence[str]) -> str:
    words = [f"{texts[check.predicate]}  [{', '.join(_source(s) for s in check.sources)}]"]
    if check.loops:
        words.append(f"for each of {', '.join(map(str, check.loops))}")
    if check.only is not None:
        counter, n = check.only
        words.append(f"only when {counter} is {n - 1}")
    return ", ".join(words)


def _source(source: ValueSource) -> str:
    match source.kind:
        case "event":
            return f"event.{source.name}"
        case "one":
            return f"1 if event.{source.name} is known" if source.name else "1"
        case "average":
            total, count = source.registers
            return f"{total} / {count}"
        case "frame":
            return f"{source.registers[0]}[{source.index}]"
        case _:
            return str(source.registers[0])


def _update(register: Register, frame: Frame | None) -> str:
    value = f"event.{register.name}"
    match register.kind:
        case "last":
            return f"= {value}"
        case "nth":
            return f"= {value} if it is event {register.number}"
        case "count":
            return "+= 1"
        case "nonnull":
            return f"+= 1 if {value} is known"
        case "sum":
            return f"+= {value}"
        case "frames":
            assert frame is not None
            return f"+= ({', '.join(_source(s) for s in frame.sources)})"
        case kind:
            return f"= {kind}(itself, {value})"
