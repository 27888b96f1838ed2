"""Choose the arcs that evaluate each predicate, and the values (registers) that a run must remember for it.

Each conjunct is put on the earliest arcs that can decide it (SASE+ 2008, section 3.2): arcs that bind one of its
variables, or arcs that leave a repetition to which it refers as a whole. Each state keeps only the registers that it
or a later state reads (SASE+ 2008, section 5.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from acep.automaton.arcs import Arc, Arcs
from acep.automaton.thompson import Thompson
from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of, means_each, steps_back

__all__ = [
    "Assign",
    "Check",
    "Ending",
    "Frame",
    "Ignore",
    "Program",
    "Register",
    "Step",
    "ValueSource",
    "assemble",
    "layouts_from",
    "may_be_bound",
    "must_be_bound",
]


@dataclass(frozen=True, order=True)
class Register:
    """One remembered value of the events bound to ``var``.

    ``kind`` is ``last``, ``back`` (``number``-th last) or ``nth`` (``number``-th) for a value of attribute ``name``,
    ``count`` for the number of
    events, ``sum``, ``min``, ``max`` or ``nonnull`` (number of non-null values) for an aggregate of the attribute,
    ``frames`` for the values that the references of predicate ``number`` to ``var`` have at each event, or ``field``
    for register ``name`` of a hand-written automaton.
    """

    kind: str
    var: str
    name: str = ""
    number: int = 0

    def __str__(self) -> str:
        if self.kind == "field":
            return self.name
        if self.kind == "frames":
            return f"{self.var}[].frames(p{self.number})"
        if self.kind == "nth":
            return f"{self.var}[{self.number}].{self.name}"
        if self.kind in ("last", "back"):
            return f"{self.var}[last{f'-{self.number - 1}' if self.number else ''}].{self.name}"
        return f"{self.kind}({self.var}[].{self.name})" if self.name else f"{self.kind}({self.var}[])"

    @property
    def newer(self) -> Register:
        """Return the register that a ``back`` register takes its value from when an event is bound."""
        assert self.kind == "back"
        return replace(self, number=self.number - 1) if self.number > 2 else replace(self, kind="last", number=0)


@dataclass(frozen=True)
class ValueSource:
    """The place from which the value of a reference is read.

    ``kind`` is ``event`` (attribute ``name`` of the event being bound), ``one`` (1, or 0 if that attribute is null),
    ``register``, ``average`` (a sum and a count), or ``frame`` (component ``index`` of a frame of ``registers[0]``).
    """

    kind: str
    registers: tuple[Register, ...] = ()
    name: str = ""
    index: int = 0


@dataclass(frozen=True)
class Check:
    """Predicate number ``predicate`` with the sources of its references, for all combinations of ``loops`` (frames).

    With ``only = (counter, n)`` it is evaluated only at the n-th event of a variable: when ``counter`` is n - 1.
    """

    predicate: int
    sources: tuple[ValueSource, ...]
    loops: tuple[Register, ...]
    only: tuple[Register, int] | None = None

    def reads(self) -> set[Register]:
        """Return the registers that the check reads."""
        counter = {self.only[0]} if self.only else set()
        return {r for s in self.sources for r in s.registers} | set(self.loops) | counter


@dataclass(frozen=True)
class Frame:
    """The values that are appended to a ``frames`` register when an event is bound."""

    register: Register
    sources: tuple[ValueSource, ...]


@dataclass(frozen=True)
class Assign:
    """A register of a hand-written automaton that becomes the value of transfer number ``transfer``."""

    register: Register
    transfer: int
    sources: tuple[ValueSource, ...]

    def reads(self) -> set[Register]:
        """Return the registers that the value depends on."""
        return {r for s in self.sources for r in s.registers}


@dataclass(frozen=True)
class Ignore:
    """An ignorable arc: the checks that must hold for an event to pass, and the ticks from which and before which the
    arc is valid."""

    checks: tuple[Check, ...]
    since: int | None
    until: int | None

    def valid(self, tick: int) -> bool:
        """Return whether an event of this time may pass."""
        return (self.since is None or tick >= self.since) and (self.until is None or tick < self.until)


@dataclass(frozen=True)
class Ending:
    """What ends the partial matches in a state: events that break negation number ``negation`` and pass the checks.
    Predicates of checks are numbered after those on bound events."""

    negation: int
    checks: tuple[Check, ...]

    def reads(self) -> set[Register]:
        """Return the registers that the checks read."""
        return {register for check in self.checks for register in check.reads()}


@dataclass(frozen=True)
class Step:
    """The actions along an arc, in this order: ``leaving`` is checked on the old registers, the registers of the
    variables in ``forgets`` are unbound, ``binding`` is checked, the event updates the registers of its variable, and
    ``assigns`` those of a hand-written automaton."""

    arc: Arc
    leaving: tuple[Check, ...]
    forgets: tuple[str, ...]
    binding: tuple[Check, ...]
    frames: tuple[Frame, ...]
    assigns: tuple[Assign, ...] = ()


@dataclass(frozen=True)
class Program:
    """The assembled automaton: ``layouts[s]`` are the registers kept in state s, ``steps[s]`` the steps of its arcs,
    and ``ending[s]`` the checks made when a run ends there. ``ignoring[s]`` are the ignorable arcs of state s, and
    ``ended[s]`` the events after which no partial match in it goes on."""

    layouts: tuple[tuple[Register, ...], ...]
    steps: tuple[tuple[Step, ...], ...]
    ending: tuple[tuple[Check, ...], ...]
    ignoring: tuple[tuple[Ignore, ...], ...] = ()
    ended: tuple[tuple[Ending, ...], ...] = ()


def assemble(automaton: Thompson, arcs: Arcs, predicates: tuple[ex.Expr, ...]) -> Program:
    """Put predicates on arcs and choose the registers of each state.

    ``predicates`` refer to bound variables only, never to a negated one.
    """
    forms = tuple(_form(i, p, automaton.kleene) for i, p in enumerate(predicates))
    bindable = may_be_bound(automaton, arcs)
    steps = tuple(
        tuple(_step(automaton, arcs, arc, forms, bindable[arc.source]) for arc in state_arcs)
        for state_arcs in arcs.arcs
    )
    ending = tuple(
        tuple(
            f.from_registers()
            for f in forms
            if f.whole_lists.intersection(s.open) and f.vars <= bindable[s.number] and s.accepts
        )
        for s in arcs.states
    )
    layouts = layouts_from([{r for c in checks for r in c.reads()} for checks in ending], steps, bindable)
    kept_steps = tuple(
        tuple(replace(s, frames=tuple(f for f in s.frames if f.register in layouts[s.arc.target])) for s in state_steps)
        for state_steps in steps
    )
    return Program(tuple(tuple(sorted(layout)) for layout in layouts), kept_steps, ending)


@dataclass(frozen=True)
class _Form:
    """A predicate with its references sorted by meaning.

    ``each_event`` are the Kleene variables of which every event is meant. ``whole_lists`` are those that are
    meant as a whole, so that their repetition must have been left.
    """

    number: int
    leaves: tuple[ex.Leaf, ...]
    vars: frozenset[str]
    kleene: frozenset[str]
    each_event: tuple[str, ...]
    whole_lists: frozenset[str]

    def frame_leaves(self, var: str) -> tuple[ex.Leaf, ...]:
        """Return the references that take part in a frame of ``var``."""
        return tuple(leaf for leaf in self.leaves if leaf.var == var and means_each(leaf))

    def frames(self, var: str) -> Register:
        return Register("frames", var, number=self.number)

    def from_registers(self, binding: str | None = None, surely_first: bool = False) -> Check:
        """Return the check for binding ``binding`` (``None``: for leaving a repetition, or for the end)."""
        sources, loops = [], [self.frames(v) for v in self.each_event if v != binding]
        nth = self.nth(binding) if binding else 0
        for leaf in self.leaves:
            if leaf.var == binding:
                sources.append(self.current(leaf, nth))
            elif leaf.var in self.each_event and means_each(leaf):
                index = self.frame_leaves(leaf.var).index(leaf)
                sources.append(ValueSource("frame", (self.frames(leaf.var),), index=index))
            else:
                sources.append(_register_source(leaf, self.kleene))
        only = (Register("count", binding), nth) if binding and nth and not (surely_first and nth == 1) else None
        return Check(self.number, tuple(sources), tuple(loops), only)

    def nth(self, var: str) -> int:
        """Return n if the predicate is decided by the n-th event of ``var``, else 0."""
        if var not in self.kleene or var in self.each_event:
            return 0
        return max((_ordinal(leaf) for leaf in self.leaves if leaf.var == var), default=0)

    def current(self, leaf: ex.Leaf, nth: int = 0) -> ValueSource:
        """Return the source, at this event, of a reference to the variable that is being bound."""
        if leaf.var in self.kleene:
            if isinstance(leaf, ex.Attribute) and (leaf.index in (None, "i") or leaf.index == nth > 0):
                return ValueSource("event", name=leaf.name)
            return _register_source(leaf, self.kleene)
        if isinstance(leaf, ex.Attribute):
            is_event_value = leaf.index in (None, 1, "last")
            return ValueSource("event", name=leaf.name) if is_event_value else _register_source(leaf, self.kleene)
        if isinstance(leaf, ex.Length) or leaf.function == "count":
            return ValueSource("one", name="" if isinstance(leaf, ex.Length) else leaf.name or "")
        return ValueSource("event", name=leaf.name or "")


def _ordinal(leaf: ex.Leaf) -> int:
    """Return n for ``a[n]``, else 0."""
    return leaf.index if isinstance(leaf, ex.Attribute) and isinstance(leaf.index, int) else 0


def _form(number: int, predicate: ex.Expr, kleene: frozenset[str]) -> _Form:
    leaves = leaves_of(predicate)
    each_event: dict[str, None] = {}
    whole_lists = set()
    for leaf in leaves:
        if leaf.var not in kleene:
            continue
        if means_each(leaf):
            each_event.setdefault(leaf.var)
        elif not _ordinal(leaf):
            whole_lists.add(leaf.var)
    return _Form(
        number, leaves, frozenset(leaf.var for leaf in leaves), kleene, tuple(each_event), frozenset(whole_lists)
    )


def _register_source(leaf: ex.Leaf, kleene: frozenset[str]) -> ValueSource:
    """Return the source of a reference among the registers, before an event is bound."""
    var = leaf.var
    match leaf:
        case ex.Attribute(index=int() as n, name=name) if var in kleene or n > 1:
            register = Register("nth", var, name, n)
        case ex.Attribute(index=index, name=name) if steps_back(index) > 1:
            register = Register("back", var, name, steps_back(index))
        case ex.Attribute(name=name):
            register = Register("last", var, name)
        case ex.Length() | ex.Aggregate(function="count", name=None):
            register = Register("count", var)
        case ex.Aggregate(function=function, name=str(name)):
            kinds = AGGREGATES[function].registers
            registers = tuple(Register(kind, var, name, *((1,) if kind == "nth" else ())) for kind in kinds)
            return ValueSource("average" if len(registers) == 2 else "register", registers)
    return ValueSource("register", (register,))


def may_be_bound(automaton: Thompson, arcs: Arcs) -> list[frozenset[str]]:
    """Return for each state the variables that may be bound in some run in that state."""
    bound: list[frozenset[str]] = [frozenset() for _ in arcs.states]
    changed = True
    while changed:
        changed = False
        for state_arcs in arcs.arcs:
            for arc in state_arcs:
                after = (bound[arc.source] - _forgotten_variables(automaton, arc)) | {arc.var} | bound[arc.target]
                if after != bound[arc.target]:
                    bound[arc.target], changed = after, True
    return bound


def must_be_bound(automaton: Thompson, arcs: Arcs) -> list[frozenset[str]]:
    """Return for each state the variables that are bound in every run in that state."""
    everything = frozenset(arc.var for leaving in arcs.arcs for arc in leaving)
    bound = [everything if state.number else frozenset() for state in arcs.states]
    changed = True
    while changed:
        changed = False
        for leaving in arcs.arcs:
            for arc in leaving:
                after = ((bound[arc.source] - _forgotten_variables(automaton, arc)) | {arc.var}) & bound[arc.target]
                if after != bound[arc.target]:
                    bound[arc.target], changed = after, True
    return bound


def _forgotten_variables(automaton: Thompson, arc: Arc) -> frozenset[str]:
    return frozenset(v for g in arc.resets for v in automaton.groups[g])


def _step(automaton: Thompson, arcs: Arcs, arc: Arc, forms: tuple[_Form, ...], bound: frozenset[str]) -> Step:
    forgets = _forgotten_variables(automaton, arc)
    closes = frozenset(arc.closes)
    still_open = frozenset(arcs.states[arc.target].open)
    leaving, binding = [], []
    for form in forms:
        if form.whole_lists & closes and form.vars <= bound and (arc.var not in form.vars or arc.var in forgets):
            leaving.append(form.from_registers())
        if arc.var in form.vars and not form.whole_lists & still_open and form.vars <= (bound - forgets) | {arc.var}:
            first = arc.var not in bound - forgets
            is_repeated = arcs.states[arc.source].var == arc.var and arc.var not in forgets
            nth = form.nth(arc.var)
            if not ((nth > 1 and first) or (nth == 1 and is_repeated)):
                binding.append(form.from_registers(arc.var, first))
    frames = tuple(
        Frame(form.frames(arc.var), tuple(form.current(leaf) for leaf in form.frame_leaves(arc.var)))
        for form in forms
        if arc.var in form.each_event and (len(form.vars) > 1 or form.whole_lists)
    )
    binding.sort(key=lambda c: (bool(c.reads()), len(c.loops), c.predicate))
    return Step(arc, tuple(leaving), tuple(sorted(forgets)), tuple(binding), frames)


def layouts_from(
    read: list[set[Register]], steps: tuple[tuple[Step, ...], ...], bindable: list[frozenset[str]]
) -> list[set[Register]]:
    """Return the registers that each state must keep: those ``read`` there, or needed after one of its arcs.
    ``bindable``: the variables that may be bound in each state."""
    layouts = [set(registers) for registers in read]
    changed = True
    while changed:
        changed = False
        for state in reversed(range(len(steps))):  # mostly from the end to the start, so that few rounds suffice
            for step in steps[state]:
                needed = {r for r in _needed_before(step, layouts[step.arc.target]) if r.var in bindable[state]}
                if not needed <= layouts[state]:
                    layouts[state] |= needed
                    changed = True
    return layouts


def _needed_before(step: Step, after: set[Register]) -> set[Register]:
    needed = {r for c in step.binding for r in c.reads()}
    for register in after:
        if register.var != step.arc.var:
            needed.add(register)
        elif register.kind == "frames":
            frame = next(f for f in step.frames if f.register == register)
            needed |= {register, *(r for s in frame.sources for r in s.registers)}
        elif register.kind == "back":
            needed.add(register.newer)
        elif register.kind != "last":
            needed.add(register)
            if register.kind == "nth" and register.number > 1:
                needed.add(Register("count", register.var))
    remembered = {r for r in needed if r.var not in step.forgets}
    return remembered | {r for c in step.leaving for r in c.reads()}
