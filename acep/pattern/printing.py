"""A query as text again: an indented tree for readers, one canonical text for fingerprints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acep.pattern.expressions import (
    Aggregate,
    Attribute,
    Between,
    Binary,
    Call,
    Duration,
    Expr,
    In,
    IsNull,
    Length,
    Like,
    Literal,
    Timestamp,
    Unary,
    Value,
)
from acep.pattern.times import decimal_text, duration_text, timestamp_text
from acep.pattern.tree import (
    Choice,
    Component,
    EventSet,
    Negation,
    Node,
    Output,
    Query,
    Repeat,
    Sequence,
    Strategy,
    Within,
)

__all__ = ["canonical", "expression_text", "pattern_text", "tree_lines"]

_PLAIN = re.compile(r"[^\W\d]\w*")
_RESERVED = {
    "all", "and", "any", "as", "between", "earliest", "false", "from", "having", "in", "is", "like", "non", "not",
    "null", "or", "output", "pattern", "return", "seq", "timestamp", "true", "where", "within",
}  # fmt: skip
_STRATEGIES = {s.value for s in Strategy}
_OUTPUTS = {Output.ALL: "ALL", Output.NON_OVERLAP: "NON OVERLAP", Output.EARLIEST_MAXIMAL: "EARLIEST MAXIMAL"}

# How tightly an operator binds; a part that binds less is put in parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_LEVELS = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


# ---- names and expressions


def _name(name: str) -> str:
    """A variable or type as it can be read again."""
    if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED and name.lower() not in _STRATEGIES:
        return name
    return "`" + name.replace("`", "``") + "`"


def _attribute(name: str) -> str:
    if _PLAIN.fullmatch(name) and name != "LEN":
        return name
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def expression_text(expr: Expr) -> str:
    """The text of an expression, which reads as the same expression again.

    >>> from acep.pattern.sase import parse
    >>> query = parse("PATTERN SEQ(Stock+ a[], Stock b) WHERE b.volume<80%*a[a.LEN].volume AND NOT (a.x=1 OR b.y IN (1,2))")
    >>> [expression_text(e) for e in query.where]
    ['b.volume < 0.8 * a[a.LEN].volume', 'NOT (a.x = 1 OR b.y IN (1, 2))']
    """
    return _expression(expr, _OR)


def _expression(expr: Expr, least: int) -> str:
    text, level = _written(expr)
    return text if level >= least else f"({text})"


def _written(expr: Expr) -> tuple[str, int]:
    """The text of an expression and how tightly its outermost operator binds."""
    match expr:
        case Literal(value=value):
            return _literal(value), _SIGN if isinstance(value, (int, float)) and value < 0 else _ATOM
        case Duration(ns=ns):
            return ("-" if ns < 0 else "") + duration_text(abs(ns)), _SIGN if ns < 0 else _ATOM
        case Timestamp(ns=ns):
            return f"TIMESTAMP '{timestamp_text(ns)}'", _ATOM
        case Attribute(var=var, index=index, name=name):
            place = f"{_name(var)}.LEN" if index == "last" else index
            return f"{_name(var)}{'' if index is None else f'[{place}]'}.{_attribute(name)}", _ATOM
        case Length(var=var):
            return f"{_name(var)}.LEN", _ATOM
        case Aggregate(function=function, var=var, scope=scope, name=name):
            of = "" if name is None else f".{_attribute(name)}"
            return f"{function}({_name(var)}[{'..i-1' if scope == 'before' else ''}]{of})", _ATOM
        case Unary(op="not", operand=operand):
            return f"NOT {_expression(operand, _NOT)}", _NOT
        case Unary(operand=operand):
            return f"- {_expression(operand, _SIGN)}", _SIGN
        case Binary(op=op, left=left, right=right):
            level = _LEVELS.get(op, _COMPARE)
            # `and` and `or` read back as one chain, whatever their grouping.
            chained = op in ("and", "or")
            before = _expression(left, _SUM if level == _COMPARE else level)
            after = _expression(right, level if chained else level + 1)
            return f"{before} {op.upper()} {after}", level
        case Call(name=name, args=args):
            return f"{name}({', '.join(_expression(a, _OR) for a in args)})", _ATOM
        case In(operand=operand, values=values, negated=negated):
            inside = ", ".join(_expression(v, _OR) for v in values)
            return f"{_expression(operand, _SUM)} {'NOT ' if negated else ''}IN ({inside})", _COMPARE
        case Between(operand=operand, low=low, high=high, negated=negated):
            limits = f"{_expression(low, _SUM)} AND {_expression(high, _SUM)}"
            return f"{_expression(operand, _SUM)} {'NOT ' if negated else ''}BETWEEN {limits}", _COMPARE
        case Like(operand=operand, pattern=pattern, negated=negated):
            return f"{_expression(operand, _SUM)} {'NOT ' if negated else ''}LIKE {_text(pattern)}", _COMPARE
        case IsNull(operand=operand, negated=negated):
            return f"{_expression(operand, _SUM)} IS {'NOT ' if negated else ''}NULL", _COMPARE


def _literal(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return _text(value)
        case _:
            return repr(value)


# ---- patterns


def pattern_text(node: Node) -> str:
    """The text of a pattern, as in SASE+.

    >>> from acep.pattern.tree import Component, Repeat, Sequence
    >>> pattern_text(Sequence((Repeat(Component("a", ("A",)), 1, None), Component("b", ("B", "C")))))
    'SEQ(A+ a[], (B | C) b)'
    """
    match node:
        case Component(var=var, types=types):
            return f"{_types(types)} {_name(var)}"
        case Negation(var=var, types=types):
            return f"~({_types(types)} {_name(var)})"
        case Repeat(item=Component(var=var, types=types), low=low, high=high):
            brackets = "" if high == 1 else "[]"
            return f"{_types(types)}{_bounds(low, high)} {_name(var)}{brackets}"
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


def _types(types: tuple[str, ...]) -> str:
    if len(types) == 1:
        return _name(types[0])
    return f"({' | '.join(_name(t) for t in types)})" if types else "ANY"


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
    """The text of a pattern as a letter expression.

    >>> from acep.pattern.letters import regex
    >>> letters_text(regex("a ( b | 'SUBMIT' ){2+}", within=5).pattern)
    "a(b|'SUBMIT'){2,}"
    """
    match node:
        case Component(types=()):
            return "."
        case Component(var=var):
            return var if len(var) == 1 and var.isalnum() else _text(var)
        case Repeat(item=item, low=low, high=high):
            inside = letters_text(item)
            return (inside if isinstance(item, (Component, Choice)) else f"({inside})") + _bounds(low, high)
        case Sequence(items=items):
            return "".join(letters_text(i) for i in items)
        case Choice(items=items):
            return f"({'|'.join(letters_text(i) for i in items)})"
        case _:
            return pattern_text(node)


# ---- whole queries


def _window(within: Within) -> str:
    match within.unit:
        case "events":
            return f"{within.amount} EVENTS"
        case "ns":
            return duration_text(within.amount)
        case _:
            return decimal_text(within.amount)


def _clauses(query: Query) -> Iterator[str]:
    """The clauses behind the pattern; those that say nothing are left out."""
    conditions = []
    if query.ties:
        conditions.append(f"[{', '.join(_attribute(t) for t in query.ties)}]")
    conditions += [_expression(e, _NOT) for e in query.where]
    if conditions or query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        yield f"WHERE {query.strategy.value}() {{{' AND '.join(conditions)}}}"
    if query.within is not None:
        yield f"WITHIN {_window(query.within)}"
    if query.having is not None:
        yield f"HAVING {expression_text(query.having)}"
    if query.returns:
        yield "RETURN " + ", ".join(f"{expression_text(e)} AS {_name(n)}" for n, e in query.returns)
    if query.output is not Output.ALL:
        yield f"OUTPUT {_OUTPUTS[query.output]}"


def _budget(query: Query) -> Iterator[str]:
    if query.errors:
        yield f"errors {query.errors}"
    for var, weight in query.weights:
        yield f"weight {_name(var)} {'infinite' if weight is None else weight}"


def canonical(query: Query) -> str:
    """The query as one line that is the same for two queries of the same tree: for fingerprints.

    It holds all that changes the meaning and nothing else: no spans, comments, spelling. It is SASE+
    text that reads as the same query, after a comment with the error budget and weights; or, for a letter
    expression, that expression in place of the pattern.

    >>> from acep.pattern.sase import parse
    >>> canonical(parse("pattern seq(A  a,B+ b[])  where [k] and b[i].x>3 within 60 min", errors=1))
    '/* errors 1 */ PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match() {[k] AND b[i].x > 3} WITHIN 1 h'
    """
    head = list(_budget(query))
    words = [f"/* {', '.join(head).replace('*/', '*|')} */"] if head else []
    if query.sources:
        words.append("FROM " + ", ".join(f"({canonical(s.query)}) AS {_name(s.type)}" for s in query.sources))
    if query.letters:
        words.append(f"LETTERS {letters_text(query.pattern)}")
    else:
        words.append(f"PATTERN {pattern_text(query.pattern)}")
    return " ".join([*words, *_clauses(query)])


def tree_lines(query: Query) -> list[str]:
    """The query as an indented tree, one part a line.

    >>> from acep.pattern.sase import parse
    >>> print("\\n".join(tree_lines(parse("PATTERN SEQ(A a, (B b | C c)+) WHERE [k] AND b.x > 3 WITHIN 5 EVENTS"))))
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
        lines.append(f"  from, as {_name(source.type)}")
        lines += ["    " + line for line in tree_lines(source.query)]
    lines += _node_lines(query.pattern, 1)
    lines += [f"  tie [{_attribute(t)}]" for t in query.ties]
    lines += [f"  where {expression_text(e)}" for e in query.where]
    if query.within is not None:
        lines.append(f"  within {_window(query.within)}")
    if query.having is not None:
        lines.append(f"  having {expression_text(query.having)}")
    lines += [f"  return {_name(n)}: {expression_text(e)}" for n, e in query.returns]
    if query.output is not Output.ALL:
        lines.append(f"  output {_OUTPUTS[query.output].lower()}")
    lines += [f"  {line}" for line in _budget(query)]
    return lines


def _node_lines(node: Node, depth: int) -> list[str]:
    lines: list[str] = []
    stack: list[tuple[Node, int]] = [(node, depth)]
    while stack:
        item, level = stack.pop()
        lines.append("  " * level + _heading(item))
        below: tuple[Node, ...] = ()
        match item:
            case Repeat(item=inner):
                below = (inner,)
            case Sequence(items=items) | Choice(items=items):
                below = items
            case EventSet(items=members):
                below = members
        stack.extend((part, level + 1) for part in reversed(below))
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


def _count_text(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more" if low else "any number"
    return str(low) if low == high else f"{low} to {high}"


