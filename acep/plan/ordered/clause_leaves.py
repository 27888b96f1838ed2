"""Resolve what the expressions of a clause refer to: columns of variables, navigation, aggregates, labels, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acep.errors import QueryError, suggest
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Span, error_at, locate_errors
from acep.pattern.sql.clause_tree import FINAL, RUNNING, SqlExpression
from acep.pattern.walk import children, with_children
from acep.plan.ordered.aggregate_calls import is_aggregate
from acep.plan.ordered.aggregate_references import RowArgument, resolve_aggregate
from acep.plan.ordered.array_calls import resolve_array_call
from acep.plan.ordered.row_columns import ROW, ClauseColumns
from acep.plan.ordered.row_references import (
    CHOOSING,
    LABEL,
    NUMBER,
    MatchNumber,
    MissingRows,
    Navigation,
    RowAggregate,
    RowReference,
)
from acep.plan.ordered.sql_expressions import SqlConverter, place_of, refuse_other_parts
from acep.plan.ordered.window_calls import resolve_window

__all__ = ["ClauseLeaves", "convert_key", "reference_name"]

_NAVIGATION = ("FIRST", "LAST", "PREV", "NEXT")
_CALLS = (*_NAVIGATION, "CLASSIFIER", "MATCH_NUMBER", "MATCH_SEQUENCE_NUMBER", "MATCH_ROWTIME", "MISSING_ROWS")
_SAME_CALLS = {"LAG": "PREV", "LEAD": "NEXT"}
MOST_OFFSET = 2**31 - 1


def reference_name(number: int) -> str:
    """Return the name of the attribute that stands for a reference.

    >>> reference_name(3)
    '#3'
    """
    return f"#{number}"


def convert_key(source: SqlExpression, columns: ClauseColumns) -> str:
    """Return the column of a key of PARTITION BY or ORDER BY, a computed one for an expression.

    Raises :class:`QueryError` for a reference to the match."""

    def leaf(node: Any) -> ex.Expr | None:
        if type(node).__name__ == "Column":
            path = columns.own_path(_column_parts(node, source))
            return ex.Attribute(ROW, None, columns.key_name(path, place_of(node, source)))
        if _call_name(node) is not None or is_aggregate(node):
            hint = "leave out what reads other rows"
            raise error_at("a key is an expression over the columns of a row", source.span, hint, code="query_invalid")
        return None

    with locate_errors(source.span):
        return columns.add(SqlConverter(source, leaf, columns.is_date).convert(), " ".join(source.text.split()))


@dataclass
class ClauseLeaves:
    """The references of a clause, each once, with the place of its first use. ``measures``: those before, by folded
    names. ``time_key``: the first key of ORDER BY.

    ``variables``: the primary variables by folded names, as they are spelled; ``unions``: the primary variables of each
    SUBSET, by folded name."""

    columns: ClauseColumns
    variables: Mapping[str, str]
    unions: Mapping[str, frozenset[str]]
    references: list[RowReference] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    measures: dict[str, ex.Expr] = field(default_factory=dict)
    time_key: str | None = None

    def convert(self, source: SqlExpression, defined: str | None = None) -> ex.Expr:
        """Return an expression of MEASURES, or of DEFINE for the variable ``defined``: attributes named by
        :func:`reference_name` stand for references."""
        return SqlConverter(source, _Leaf(self, source, defined).find, self.is_date).convert()

    def is_date(self, expr: ex.Expr) -> bool:
        """Return whether an expression is a reference to a date: to a column, or to one of its values that an aggregate
        chooses."""
        if not isinstance(expr, ex.Attribute):
            return False
        reference = self.references[int(expr.name[1:])]
        if isinstance(reference, MatchNumber | MissingRows) or reference.column is None:
            return False
        is_value = isinstance(reference, Navigation) or reference.function in CHOOSING
        return is_value and reference.column in self.columns.dates

    def categories_of(self, reference: RowReference) -> str | None:
        """Return the column of categories in an order of their own of which a reference is a value; ``None`` if it is
        none."""
        if isinstance(reference, MatchNumber | MissingRows) or reference.column is None:
            return None
        is_value = isinstance(reference, Navigation) or reference.function in CHOOSING
        return self.columns.ordered_categories(reference.column) if is_value else None

    def add(self, reference: RowReference, span: Span) -> ex.Expr:
        """Return the attribute of a reference, which is added."""
        if reference not in self.references:
            self.references.append(reference)
            self.spans.append(span)
        return ex.Attribute(ROW, None, reference_name(self.references.index(reference)), span)

    def variable_set(self, name: str, span: Span | None) -> frozenset[str]:
        """Return the primary variables that a name means.

        Raises :class:`QueryError` for an unknown one."""
        folded = name.casefold()
        if folded in self.unions:
            return self.unions[folded]
        if folded in self.variables:
            return frozenset((folded,))
        hint = suggest(name, [*self.variables.values(), *self.unions])
        raise error_at(f"`{name}` is not a variable of the pattern", span, hint, code="query_name")


@dataclass
class _Leaf:
    clause: ClauseLeaves
    source: SqlExpression
    defined: str | None

    def find(self, node: Any) -> ex.Expr | None:
        """Return the attribute of a reference, or ``None`` if the node is no reference."""
        kind, span = type(node).__name__, place_of(node, self.source)
        if kind == "Column":
            if (measure := self.earlier_measure(node)) is not None:
                return measure
            column, variables = self.column(node)
            return self.navigation(Navigation(column, variables), span)
        if kind == "Window":
            return resolve_window(self, node, span)
        if kind == "Alias" and type(node.this).__name__ == "Column" and node.this.name.upper() in ("FINAL", "RUNNING"):
            raise _prefix_error(node.this.name.upper(), span)  # sqlglot reads a name behind it as another name of it
        if kind in ("IgnoreNulls", "RespectNulls", "Order"):
            words = {"Order": "ORDER BY"}
            raise error_at(
                f"{words.get(kind, 'IGNORE NULLS')} is not supported in a row pattern",
                span,
                "leave it out; coalesce(x, y) replaces nulls",
                code="query_syntax",
            )
        if (array_value := resolve_array_call(self, node, span)) is not None:
            return array_value
        if is_aggregate(node):
            return resolve_aggregate(self, node, False, span)
        name = _call_name(node)
        if name is None:
            return None
        if name in (RUNNING, FINAL):
            return self.resolve_prefix(node, name == FINAL, span)
        if name == "MATCH_NUMBER":
            self.need_no_arguments(node, name)
            return self.clause.add(MatchNumber(), span)
        if name == "MISSING_ROWS":
            self.need_no_arguments(node, name)
            if self.defined is not None:
                raise error_at(
                    "MISSING_ROWS is not possible in DEFINE: the match is not complete there",
                    span,
                    "use it in MEASURES, and filter around the clause",
                    code="query_invalid",
                )
            return self.clause.add(MissingRows(), span)
        if name == "MATCH_SEQUENCE_NUMBER":
            self.need_no_arguments(node, name)
            return self.clause.add(RowAggregate("count", None, None), span)
        if name == "MATCH_ROWTIME":
            return self.resolve_rowtime(node, span)
        if name == "CLASSIFIER":
            return self.navigation(Navigation(LABEL, self.classifier_variables(node)), span)
        return self.resolve_navigation(node, name, False, span)

    def need_no_arguments(self, node: Any, name: str) -> None:
        if node.expressions:
            raise error_at(
                f"{name} takes no arguments",
                place_of(node, self.source),
                "write it with empty parentheses",
                code="query_syntax",
            )

    def resolve_rowtime(self, node: Any, span: Span) -> ex.Expr:
        """Return MATCH_ROWTIME of Flink: the first key of ORDER BY in the last row of the match."""
        if self.defined is not None:
            message = "MATCH_ROWTIME is not possible in DEFINE: the match is not complete there"
            raise error_at(message, span, "name a column", code="query_invalid")
        arguments = node.expressions
        if len(arguments) > 1 or any(type(argument).__name__ != "Column" for argument in arguments):
            raise error_at(
                "MATCH_ROWTIME takes at most a column",
                span,
                "as in MATCH_ROWTIME() or MATCH_ROWTIME(ts)",
                code="query_syntax",
            )
        column = self.column(arguments[0])[0] if arguments else self.clause.time_key
        if column is None:
            raise error_at(
                "MATCH_ROWTIME needs ORDER BY",
                span,
                "as in ORDER BY ts, whose value in the last row it gives",
                code="query_invalid",
            )
        return self.clause.add(Navigation(column, None, is_final=True), span)

    def earlier_measure(self, node: Any) -> ex.Expr | None:
        """Return the expression of the measure before that a name means, if no column is called so."""
        names = _column_parts(node, self.source)
        columns = {column.casefold() for column in self.clause.columns.names}
        if self.defined is not None or len(names) > 1 or names[0].casefold() in columns:
            return None
        return self.clause.measures.get(names[0].casefold())

    def resolve_prefix(self, node: Any, is_final: bool, span: Span) -> ex.Expr:
        """Resolve RUNNING or FINAL before a call."""
        if is_final and self.defined is not None:
            raise error_at("FINAL is not possible in DEFINE: the match is not complete there", span, "leave it out",
                           code="query_invalid")  # fmt: skip
        (call,) = node.expressions
        name = _call_name(call)
        if is_aggregate(call):
            return resolve_aggregate(self, call, is_final, span)
        if name in ("FIRST", "LAST"):
            return self.resolve_navigation(call, name, is_final, span)
        raise _prefix_error("FINAL" if is_final else "RUNNING", span)

    def navigation(self, reference: Navigation, span: Span) -> ex.Expr:
        """Return the attribute of a navigation. In DEFINE the row that is tested is the last one of its variable."""
        is_last = not reference.is_first and reference.offset == 0
        if is_last and self.defined is not None and reference.variables and self.defined in reference.variables:
            reference = replace(reference, variables=None)
        return self.clause.add(reference, span)

    def column(self, node: Any) -> tuple[str, frozenset[str] | None]:
        """Return the column of a column reference, and the variables before its dot."""
        clause, span = self.clause, place_of(node, self.source)
        prefix, *names = _column_parts(node, self.source)
        if not names:
            return clause.columns.column_name(prefix, span), None
        if prefix.casefold() in clause.variables or prefix.casefold() in clause.unions:
            return clause.columns.value_name(names, span), clause.variable_set(prefix, span)
        if len(own_path := clause.columns.own_path([prefix, *names])) == 1:
            return clause.columns.column_name(own_path[0], span), None
        path = ".".join(own_path)
        prefix = own_path[0]
        if not any(path.casefold() == column.casefold() for column in clause.columns.names):
            if clause.columns.schema.kind(path) is None:
                clause.variable_set(prefix, span)
            return path, None  # a field of a struct
        return clause.columns.column_name(path, span), None

    def step(self, node: Any, name: str, is_final: bool) -> tuple[RowArgument, Navigation]:
        """Resolve FIRST, LAST, PREV or NEXT: the argument, and the way to the row that it is computed of."""
        span = place_of(node, self.source)
        arguments = list(node.expressions)
        if len(arguments) not in (1, 2):
            raise error_at(
                f"{name} takes an expression, and an offset if needed", span, f"as in {name}(x, 2)", code="query_syntax"
            )
        default = 0 if name in ("FIRST", "LAST") else 1
        offset = default if len(arguments) == 1 else self.offset(arguments[1], name)
        if name in ("FIRST", "LAST"):
            argument = self.argument(arguments[0], name)
            return argument, Navigation("", argument.variables, name == "FIRST", offset, 0, is_final)
        shift = -offset if name == "PREV" else offset
        inner, inner_final = arguments[0], False
        while type(inner).__name__ == "Paren":
            inner = inner.this
        if _call_name(inner) in (RUNNING, FINAL):
            inner_final = _call_name(inner) == FINAL
            if inner_final and self.defined is not None:
                raise error_at("FINAL is not possible in DEFINE: the match is not complete there", span, "leave it out",
                               code="query_invalid")  # fmt: skip
            inner = inner.expressions[0]
            if _call_name(inner) not in ("FIRST", "LAST"):
                raise error_at(
                    f"{name} takes FIRST, LAST or an expression",
                    span,
                    "as in PREV(LAST(A.price), 2)",
                    code="query_invalid",
                )
        inner_name = _call_name(inner)
        if inner_name in ("FIRST", "LAST"):
            argument, navigation = self.step(inner, inner_name, inner_final)
            return argument, replace(navigation, shift=shift)
        argument = self.argument(inner, name)
        return argument, Navigation("", argument.variables, shift=shift)

    def resolve_navigation(self, node: Any, name: str, is_final: bool, span: Span) -> ex.Expr:
        """Return the expression of FIRST, LAST, PREV or NEXT."""
        return self.value_at(*self.step(node, name, is_final), span)

    def value_at(self, argument: RowArgument, navigation: Navigation, span: Span) -> ex.Expr:
        """Return the value of an expression over a row at the row to which a navigation leads."""
        is_number = isinstance(argument.expr, ex.Attribute) and argument.expr.name == NUMBER
        if isinstance(argument.expr, ex.Attribute) and not is_number:
            return self.navigation(replace(navigation, column=argument.expr.name), span)
        if not argument.reads_match:
            return self.navigation(replace(navigation, column=self.clause.columns.add(argument.expr)), span)
        # Labels are not known of rows beforehand: the expression is computed where it is needed, if there is the row.
        marker = self.clause.columns.add(ex.Literal(True))
        exists = ex.IsNull(self.navigation(replace(navigation, column=marker), span), True, span)

        def move(expr: ex.Expr) -> ex.Expr:
            if not isinstance(expr, ex.Attribute):
                return with_children(expr, [move(part) for part in children(expr)])
            if expr.name == NUMBER:
                return self.clause.add(MatchNumber(), span)
            return self.navigation(replace(navigation, column=expr.name), span)

        return ex.Call(CASE, (exists, move(argument.expr), ex.Literal(None, span)), span)

    def offset(self, node: Any, name: str) -> int:
        text = str(node.this) if type(node).__name__ == "Literal" and not node.args.get("is_string") else ""
        if not text.isdecimal():
            raise error_at(f"the offset of {name} is a whole number that is written there, from 0",
                           place_of(node, self.source), f"as in {name}(x, 2)", code="query_invalid")  # fmt: skip
        if len(text) > 40 or int(text) >= 2**63:
            raise error_at(
                f"the offset of {name} is at most {2**63 - 1}",
                self.source.span,
                "an offset beyond all rows gives null: leave the call out",
                code="query_size",
            )
        return min(int(text), MOST_OFFSET)  # no partition has more rows

    def classifier_variables(self, node: Any) -> frozenset[str] | None:
        """Return the variables of CLASSIFIER; ``None`` for all."""
        span = place_of(node, self.source)
        arguments = node.expressions
        if not arguments:
            return None
        if len(arguments) > 1 or type(arguments[0]).__name__ != "Column":
            raise error_at(
                "CLASSIFIER takes at most a variable", span, "as in CLASSIFIER() or CLASSIFIER(A)", code="query_syntax"
            )
        name = ".".join(_column_parts(arguments[0], self.source))
        return self.clause.variable_set(name, place_of(arguments[0], self.source))

    def argument(self, node: Any, called: str) -> RowArgument:
        """Resolve the argument of a navigation or an aggregate: an expression over one row, whose columns all belong to
        the same variables."""
        prefixes: list[frozenset[str] | None] = []

        def leaf(part: Any) -> ex.Expr | None:
            kind, name, span = type(part).__name__, _call_name(part), place_of(part, self.source)
            if kind == "Column":
                column, variables = self.column(part)
                prefixes.append(variables)
                return ex.Attribute(ROW, None, column, span)
            if name == "CLASSIFIER":
                prefixes.append(self.classifier_variables(part))
                return ex.Attribute(ROW, None, LABEL, span)
            if name == "MATCH_NUMBER" and called not in _NAVIGATION:
                return ex.Attribute(ROW, None, NUMBER, span)
            if is_aggregate(part) or name is not None:
                inner = name if name not in (None, RUNNING, FINAL) else "an aggregate"
                hint = "FIRST or LAST may stand inside PREV or NEXT, as in PREV(LAST(A.x), 2)"
                raise error_at(f"{inner} cannot stand inside {called}", span, hint, code="query_invalid")
            return None

        span = place_of(node, self.source)
        expr = SqlConverter(self.source, leaf, self.clause.columns.is_date).convert(node)
        if len(set(prefixes)) > 1:
            raise error_at(
                f"all columns inside {called} belong to one variable",
                span,
                f"as in {called}(A.x) and {called}(B.x)",
                code="query_invalid",
            )
        if not prefixes and called in _NAVIGATION:
            raise error_at(
                f"{called} needs a column or CLASSIFIER()", span, "as in LAST(A.price)", code="query_invalid"
            )
        return RowArgument(expr, prefixes[0] if prefixes else None, bool(prefixes))


def _prefix_error(word: str, span: Span) -> QueryError:
    """Return the error for RUNNING or FINAL before something that it does not stand before."""
    hint = f"as in {word} LAST(A.price)"
    return error_at(f"{word} stands before FIRST, LAST or an aggregate", span, hint, code="query_invalid")


def _call_name(node: Any) -> str | None:
    """Return the name of a call of row patterns, or ``None``."""
    if type(node).__name__ != "Anonymous":
        return None
    name = str(node.this)
    if name in (RUNNING, FINAL):
        return name
    called = _SAME_CALLS.get(name.upper(), name.upper())
    return called if called in _CALLS else None


def _column_parts(node: Any, source: SqlExpression) -> list[str]:
    """Return the names of a column reference that dots separate."""
    if type(node.this).__name__ == "Star":
        raise error_at("`*` is only for count", place_of(node, source), "name a column", code="query_syntax")
    refuse_other_parts(node, ("this", "table", "db", "catalog"), source)
    parts = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    names = [part.this for part in parts if part is not None]
    if not all(isinstance(name, str) for name in names):
        raise error_at(
            "this is not the name of a column",
            place_of(node, source),
            "write a column, as in A.price, or an expression of columns",
            code="query_syntax",
        )
    return names
