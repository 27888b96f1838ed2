"""Write names and expressions as text that parses to the same names and expressions."""

from __future__ import annotations

import re
from fractions import Fraction

from acep.pattern import expressions as ex
from acep.pattern.list_parts import CONTAINS, ListPart, list_part
from acep.pattern.scalars.casts import cast_type
from acep.pattern.times import decimal_text, duration_text, timestamp_text
from acep.pattern.tree import Strategy
from acep.pattern.user_functions import Function

__all__ = [
    "attribute_text",
    "condition_text",
    "expression_text",
    "is_reserved",
    "name_text",
    "quoted_text",
    "tie_text",
    "value_name",
]

_PLAIN = re.compile(r"[^\W\d]\w*")
_STEP = re.compile(r"[^\W\d]\w*(\[[1-9]\d{0,8}\])*")
_RESERVED = {
    "all", "and", "any", "as", "between", "earliest", "earliestmaximal", "false", "from", "having", "in", "is", "like",
    "non", "nonoverlap", "not", "null", "or", "output", "pattern", "return", "seq", "timestamp", "true", "where",
    "within", *(s.value.replace("_", "") for s in Strategy),
}  # fmt: skip
"""Words of the language that cannot be plain names, in lower case, without underscores."""

# The precedence of operators; a part with a lower one is put in parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_LEVELS = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


def is_reserved(name: str) -> bool:
    """Return whether a name is a word of the language.

    >>> is_reserved("Where"), is_reserved("non_overlap"), is_reserved("price")
    (True, True, False)
    """
    return name.lower().replace("_", "") in _RESERVED


def name_text(name: str) -> str:
    """Return the text of a variable or type, quoted if necessary."""
    if _PLAIN.fullmatch(name) and not is_reserved(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def attribute_text(name: str) -> str:
    """Return the text of an attribute, quoted if necessary."""
    parts = name.split(".")
    if all(map(_STEP.fullmatch, parts)) and parts[0] != "LEN":
        return name
    return '"' + name.replace('"', '""') + '"'


def tie_text(name: str) -> str:
    """Return the text of a key in brackets; an attribute is quoted if it could be read as one of a variable."""
    if name.endswith(")"):
        from acep.pattern.key_calls import key_call  # few queries have such keys

        if key_call(name) is not None:
            return name
    return attribute_text(name) if "." not in name else '"' + name.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    """Return a text constant in quotes."""
    return "'" + value.replace("'", "''") + "'"


def expression_text(expr: ex.Expr) -> str:
    """Return the text of an expression, which parses to the same expression.

    >>> from acep.pattern.text.sase import parse
    >>> query = parse("PATTERN SEQ(Stock+ a[], Stock b) WHERE b.x<80%*a[a.LEN].x AND NOT (a.x=1 OR b.y IN (1,2))")
    >>> [expression_text(e) for e in query.where]
    ['b.x < 0.8 * a[a.LEN].x', 'NOT (a.x = 1 OR b.y IN (1, 2))']
    """
    return _expression(expr, _OR)


def _expression(expr: ex.Expr, lowest_level: int) -> str:
    text, level = _text_and_level(expr)
    return text if level >= lowest_level else f"({text})"


def _text_and_level(expr: ex.Expr) -> tuple[str, int]:
    """Return the text of an expression, and the precedence of its outermost operator."""
    match expr:
        case ex.Literal(exact=Fraction() as exact):
            return decimal_text(exact), _SIGN if exact < 0 else _ATOM
        case ex.Literal(value=value):
            return _literal(value), _SIGN if isinstance(value, (int, float)) and value < 0 else _ATOM
        case ex.Duration(ns=ns):
            return ("-" if ns < 0 else "") + duration_text(abs(ns)), _SIGN if ns < 0 else _ATOM
        case ex.Timestamp(ns=ns):
            return f"TIMESTAMP '{timestamp_text(ns)}'", _ATOM
        case ex.Attribute(var=var, index=index, name=name) if (part := _contains(name)) is not None:
            return f"{CONTAINS}({_expression(ex.Attribute(var, index, part.name), _OR)}, {part.constant})", _ATOM
        case ex.Attribute(var=var, index=index, name=name):
            index_text = f"{name_text(var)}.LEN" if index == "last" else index
            return f"{name_text(var)}{'' if index is None else f'[{index_text}]'}.{attribute_text(name)}", _ATOM
        case ex.Length(var=var):
            return f"{name_text(var)}.LEN", _ATOM
        case ex.Aggregate(function=function, var=var, scope=scope, name=name):
            attribute = "" if name is None else f".{attribute_text(name)}"
            function, word = ("count", "DISTINCT ") if function == "count distinct" else (function, "")
            return f"{function}({word}{name_text(var)}[{'..i-1' if scope == 'before' else ''}]{attribute})", _ATOM
        case ex.Unary(op="not", operand=operand):
            return f"NOT {_expression(operand, _NOT)}", _NOT
        case ex.Unary(operand=operand):
            return f"- {_expression(operand, _SIGN)}", _SIGN
        case ex.Binary(op=op, left=left, right=right):
            level = _LEVELS.get(op, _COMPARE)
            # Chains of `and` and `or` are parsed to the same tree for every grouping.
            chained = op in ("and", "or")
            left_text = _expression(left, _SUM if level == _COMPARE else level)
            right_text = _expression(right, level if chained else level + 1)
            return f"{left_text} {op.upper()} {right_text}", level
        case ex.Call(name="case", args=args):
            pairs = zip(args[:-1:2], args[1::2], strict=True)
            words = [f"WHEN {_expression(when, _OR)} THEN {_expression(then, _OR)}" for when, then in pairs]
            return f"CASE {' '.join(words)} ELSE {_expression(args[-1], _OR)} END", _ATOM
        case ex.Call(name=name, args=(arg,)) if (target := cast_type(name)) is not None:
            return f"CAST({_expression(arg, _OR)} AS {target})", _ATOM
        case ex.Call(name=name, args=args, user_function=Function(version=version)):
            # The version is a part of what a query says: states are compared by this text.
            return f"{name}({', '.join(_expression(a, _OR) for a in args)}) /* version {version} */", _ATOM
        case ex.Call(name=name, args=args):
            return f"{name}({', '.join(_expression(a, _OR) for a in args)})", _ATOM
        case ex.In(operand=operand, values=values, negated=negated):
            inside = ", ".join(_expression(v, _OR) for v in values)
            return f"{_expression(operand, _SUM)} {'NOT ' if negated else ''}IN ({inside})", _COMPARE
        case ex.Between(operand=operand, low=low, high=high, negated=negated):
            limits = f"{_expression(low, _SUM)} AND {_expression(high, _SUM)}"
            return f"{_expression(operand, _SUM)} {'NOT ' if negated else ''}BETWEEN {limits}", _COMPARE
        case ex.Like(operand=operand, pattern=pattern, negated=negated):
            return f"{_expression(operand, _SUM)} {'NOT ' if negated else ''}LIKE {quoted_text(pattern)}", _COMPARE
        case ex.IsNull(operand=operand, negated=negated):
            return f"{_expression(operand, _SUM)} IS {'NOT ' if negated else ''}NULL", _COMPARE


def _contains(name: str) -> ListPart | None:
    """Return of an attribute that says whether a list contains a value which list and value these are."""
    part = list_part(name)
    return None if part is None or part.value is None else part


def _literal(value: ex.Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return quoted_text(value) if isinstance(value, str) else repr(value)


def condition_text(expr: ex.Expr) -> str:
    """Return the text of an expression as a conjunct, in parentheses if necessary."""
    return _expression(expr, _NOT)


def value_name(expr: ex.Expr) -> str | None:
    """Return the name of a value of RETURN that is given none, or ``None`` for an expression with operators.

    It joins the words of a reference by underscores, and a function before those of its references.

    >>> from acep.pattern.text.sase import parse
    >>> query = parse("PATTERN A+ a[] RETURN a.x, a[1].x, a[a.LEN].x, a.LEN, count(a[]), round(avg(a[].dev.x), 2)")
    >>> [name for name, _ in query.returns]
    ['a_x', 'a_1_x', 'a_last_x', 'a_len', 'count_a', 'round_avg_a_dev_x']
    """
    match expr:
        case ex.Attribute(var=var, index=index, name=name):
            words = [var, *([] if index is None else [str(index)]), name]
            if list_part(name) is not None or "[" in name:
                return re.sub(r"\W+", "_", "_".join(words)).strip("_")
        case ex.Length(var=var):
            words = [var, "len"]
        case ex.Aggregate(function=function, var=var, name=name):
            words = [function, var, *([] if name is None else [name])]
        case ex.Call(name=name, args=args) if name != "case":
            parts = [value_name(arg) for arg in args if not isinstance(arg, ex.Literal)]
            if not parts or None in parts:
                return None
            words = [name.split()[0], *(part for part in parts if part is not None)]
        case _:
            return None
    return re.sub(r"\W", "_", "_".join(words))
