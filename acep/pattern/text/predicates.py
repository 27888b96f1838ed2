"""Convert the grammar's tree to expressions: operators and functions over references and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from acep.errors import slip
from acep.functions.aggregates import AGGREGATES, names_in_queries, synonyms_in_queries
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.list_parts import CONTAINS, contains_name
from acep.pattern.scalars.casts import CAST_TYPES
from acep.pattern.spelling import expression_text
from acep.pattern.text.lalr_parser import Token, Tree
from acep.pattern.text.literals import LITERALS
from acep.pattern.text.parameters import constant, list_of_parameter
from acep.pattern.text.references import aggregate, previous, scalar
from acep.pattern.text.syntax import Branch, Leaf, branches, fail, quote, span, tokens
from acep.pattern.text.user_calls import OwnCall, check_own
from acep.pattern.tree import Strategy

if TYPE_CHECKING:
    from acep.functions.scalar_function import ScalarFunction

__all__ = ["conjuncts", "expression", "function_names", "scalar_named", "scalar_of"]

_SCALAR = {name: entry.scalar for name, entry in AGGREGATES.items() if entry.scalar}
_ALIASES = synonyms_in_queries()
_ELSEWHERE = {
    "cast": "write CAST(x AS type)",
    "log": "write ln(x) or log10(x)",
    "if": "write the alternatives with AND and OR",
    "classifier": "the bindings of a match say which variable an event is bound to",
    **dict.fromkeys(
        ("collect", "collect_list", "array_agg", "listagg"),
        "the bindings of a match list its events, and to_pandas(explode=True) has one row for each",
    ),
    "match_number": "number the matches that are given",
    **dict.fromkeys(("startswith", "endswith", "stringcontains", "wildcard"), "write a.x LIKE 'c%', '%c' or '%c%'"),
    "domain": "write regexp_extract(a.host, '([^.]+[.][^.]+)$', 1), or what else is the domain here",
    "cidrmatch": "write ip_in(a.ip, '10.0.0.0/8'), and OR between several",
    **dict.fromkeys(("indexof", "between"), "give a function of your own: parse(text, functions=[f])"),
    **dict.fromkeys(("string", "number"), "write CAST(x AS text), or CAST(x AS float)"),
    **{s.value: "a strategy stands directly after WHERE, and holds for the whole pattern" for s in Strategy},
}
_NO_CAST = {
    **dict.fromkeys(("timestamp", "date"), "read the column as one: cast={'t': 'timestamp'}, or --cast t=timestamp"),
    **dict.fromkeys(("decimal", "numeric"), "read the column as one: cast={'x': 'decimal(18,2)'}"),
}
_COMPARE = {
    "==": "=",
    "<>": "!=",
    "\N{NOT EQUAL TO}": "!=",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
}


def function_names() -> tuple[str, ...]:
    """Return the names of functions that the language has."""
    from acep.functions.scalars import scalar_names, scalar_synonyms

    return (*scalar_names(), *scalar_synonyms(), *names_in_queries(), *_ALIASES, "prev", "cast", CONTAINS)


def conjuncts(branch: Branch) -> tuple[list[ex.Expr], list[Branch]]:
    """Return the conjuncts of a condition, split at its top-level ANDs, and the attributes of its ``[attr]``."""
    conditions: list[ex.Expr] = []
    ties: list[Branch] = []
    stack: list[Leaf] = [branch]
    while stack:
        leaf = stack.pop()
        if isinstance(leaf, Tree) and leaf.data == "and":
            stack.extend(reversed(leaf.children))
        elif isinstance(leaf, Tree) and leaf.data == "tie":
            ties.extend(branches(leaf))
        else:
            conditions.append(expression(leaf))
    return conditions, ties


def expression(leaf: Leaf) -> ex.Expr:
    """Return the expression of a part of the tree. Raises :class:`QueryError` (without the text)."""
    assert isinstance(leaf, Tree)
    return _BUILD[leaf.data](leaf)


# ---- operators


def _build_balanced(op: str, operands: Sequence[ex.Expr], where: ex.Span) -> ex.Expr:
    """Return a chain of ANDs or ORs as a balanced tree, so that a long chain is not deeply nested."""
    if len(operands) == 1:
        return operands[0]
    half = (len(operands) + 1) // 2
    return ex.Binary(
        op, _build_balanced(op, operands[:half], where), _build_balanced(op, operands[half:], where), where
    )


def _build_logical(branch: Branch) -> ex.Expr:
    return _build_balanced(branch.data, [expression(c) for c in branch.children], span(branch))


def _build_chain(branch: Branch) -> ex.Expr:
    """Build a chain such as ``a - b + c`` from the left."""
    start = span(branch).start
    result = expression(branch.children[0])
    for op, leaf in zip(branch.children[1::2], branch.children[2::2], strict=True):
        result = ex.Binary(str(op), result, expression(leaf), ex.Span(start, span(leaf).end))
    return result


def _build_comparison(branch: Branch) -> ex.Expr:
    left, op, right = branch.children
    return ex.Binary(_COMPARE.get(str(op), str(op)), expression(left), expression(right), span(branch))


def _build_not(branch: Branch) -> ex.Expr:
    return ex.Unary("not", expression(branch.children[0]), span(branch))


def _build_sign(branch: Branch) -> ex.Expr:
    sign, operand = branch.children
    value = expression(operand)
    if sign == "+":
        return value
    if isinstance(value, ex.Literal) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool):
        return ex.Literal(-value.value, span(branch), None if value.exact is None else -value.exact)
    if isinstance(value, ex.Duration):
        return ex.Duration(-value.ns, span(branch))
    return ex.Unary("-", value, span(branch))


def _build_in(branch: Branch) -> ex.Expr:
    operand, *parts = branch.children
    values: list[ex.Expr] = []
    for part in parts:
        if isinstance(part, Tree) and part.data == "parameter":
            values += list_of_parameter(part)
        else:
            values.append(expression(part))
    return ex.In(expression(operand), tuple(values), branch.data == "not_in", span(branch))


def _build_between(branch: Branch) -> ex.Expr:
    operand, low, high = (expression(c) for c in branch.children)
    return ex.Between(operand, low, high, branch.data == "not_between", span(branch))


def _build_like(branch: Branch) -> ex.Expr:
    operand, pattern = (expression(c) for c in branch.children)
    if not isinstance(pattern, ex.Literal) or not isinstance(pattern.value, str):
        raise fail("LIKE needs a text in quotes", branch.children[1], "x LIKE 'A%'", code="query_type")
    return ex.Like(operand, pattern.value, branch.data == "not_like", span(branch))


def _build_is_null(branch: Branch) -> ex.Expr:
    return ex.IsNull(expression(branch.children[0]), branch.data == "is_not_null", span(branch))


def _build_tie(branch: Branch) -> ex.Expr:
    hint = "in parentheses, as in [k] AND (a.x > 1 OR a.y > 1), or a comparison in its place: a.x = b.x"
    raise fail("`[attribute]` stands alone, joined by AND", branch, hint)


def _build_case(branch: Branch) -> ex.Expr:
    """Return CASE as a call of conditions and values in turn, with the value of ELSE last."""
    operand = expression(branch.children[0]) if branch.data == "simple" else None
    args: list[ex.Expr] = []
    for part in branches(branch, "when"):
        condition, value = (expression(c) for c in part.children)
        if operand is not None:
            condition = ex.Binary("=", operand, condition, span(part.children[0]))
        args += (condition, value)
    other = branches(branch, "otherwise")
    args.append(expression(other[0].children[0]) if other else ex.Literal(None, span(branch)))
    return ex.Call(CASE, tuple(args), span(branch))


def _build_cast(branch: Branch) -> ex.Expr:
    function, *type_words = tokens(branch)
    if function.lower() != "cast":
        hint = "it stands in CAST(x AS type)"
        raise fail(f"`AS` has no place in {quote(function)}", type_words[0], hint, code="query_syntax")
    name = " ".join(str(word).lower() for word in type_words)
    if name not in CAST_TYPES:
        hint = _NO_CAST.get(name) or f"the types are {', '.join(dict.fromkeys(CAST_TYPES.values()))}"
        raise fail(f"CAST has no type {quote(' '.join(type_words))}", type_words[0], hint, code="query_type")
    return ex.Call(f"cast {CAST_TYPES[name]}", (expression(branches(branch)[0]),), span(branch))


def _build_distinct(branch: Branch) -> ex.Expr:
    function, word = tokens(branch)
    if function.lower() != "count":
        raise fail("DISTINCT belongs in `count`", word, "write count(DISTINCT a[].x)", code="query_syntax")
    return aggregate(branch, ex.COUNT_DISTINCT, branches(branch))


def _build_call(branch: Branch) -> ex.Expr:
    (token,) = tokens(branch)
    args = branches(branch)
    if isinstance(branch, OwnCall):
        user_call = ex.Call(branch.function.name, tuple(expression(a) for a in args), span(branch), branch.function)
        check_own(user_call)
        return user_call
    function = _ALIASES.get(token.lower(), token.lower())
    if function == "prev":
        return previous(branch, args)
    if function in names_in_queries() and (function not in _SCALAR or len(args) < 2):
        return aggregate(branch, function, args)
    if function == CONTAINS:
        return _build_contains(branch, args)
    return _build_scalar(branch, token, _SCALAR.get(function, function), args)


def _build_scalar(branch: Branch, token: Token, function: str, args: Sequence[Branch]) -> ex.Expr:
    """Return the call of a scalar function, or what it stands for."""
    entry = scalar_named(branch, token, function, len(args))
    return scalar_of(entry, tuple(expression(arg) for arg in args), span(branch))


def scalar_of(entry: ScalarFunction, values: tuple[ex.Expr, ...], where: ex.Span) -> ex.Expr:
    """Return the call of a scalar function with its arguments, or what it stands for."""
    from acep.pattern.scalar_calls import check_fixed, scalar_call

    check_fixed(entry, values)
    return scalar_call(entry, values, where)


def scalar_named(branch: Branch, token: Token, function: str, n_args: int) -> ScalarFunction:
    """Return the scalar function of a name, which takes so many arguments. Raises :class:`QueryError` otherwise."""
    from acep.functions.scalars import called_scalar, scalar_names  # loaded where a query calls one

    if (entry := called_scalar(function)) is None:
        names = [*scalar_names(), *names_in_queries(), "prev", CONTAINS]
        hint = _ELSEWHERE.get(function) or slip(function[:60], names) or f"the functions are {', '.join(sorted(names))}"
        raise fail(f"unknown function {quote(token)}", token, hint, code="query_name")
    low, high = entry.counts
    if not low <= n_args <= high:
        count = str(low) if low == high else f"{low} {'or' if high == low + 1 else 'to'} {high}"
        raise fail(
            f"`{entry.name}` takes {count} argument{'s' if count != '1' else ''}, not {n_args}",
            branch,
            code="query_type",
        )
    return entry


def _build_contains(branch: Branch, args: Sequence[Branch]) -> ex.Expr:
    """Return the attribute that says whether a list contains a constant."""
    hint = "contains(a.tags, 'x')"
    if len(args) != 2:
        raise fail(
            f"`{CONTAINS}` takes a list and a constant, not {len(args)} arguments", branch, hint, code="query_type"
        )
    source, value = (expression(arg) for arg in args)
    if not isinstance(source, ex.Attribute):
        raise fail(f"`{CONTAINS}` looks into a list of one event", args[0], hint, code="query_type")
    if not isinstance(value, ex.Literal) or value.value is None:
        raise fail(
            f"`{CONTAINS}` needs a text, a number or a truth value",
            args[1],
            f"{hint}; it is computed before matching, from one event",
            code="query_type",
        )
    return replace(source, name=contains_name(source.name, expression_text(value)), span=span(branch))


_BUILD: dict[str, Callable[[Branch], ex.Expr]] = {
    "or": _build_logical,
    "and": _build_logical,
    "negated": _build_not,
    "comparison": _build_comparison,
    "in": _build_in,
    "not_in": _build_in,
    "between": _build_between,
    "not_between": _build_between,
    "like": _build_like,
    "not_like": _build_like,
    "is_null": _build_is_null,
    "is_not_null": _build_is_null,
    "sum": _build_chain,
    "product": _build_chain,
    "sign_of": _build_sign,
    **LITERALS,
    "parameter": constant,
    "reference": scalar,
    "tie": _build_tie,
    "call": _build_call,
    "cast": _build_cast,
    "distinct": _build_distinct,
    "searched": _build_case,
    "simple": _build_case,
}
