"""Check the parts of a clause against each other: names of variables, labels, values, and WITHIN."""

from __future__ import annotations

from collections.abc import Sequence

from acep.errors import suggest
from acep.pattern import expressions as ex
from acep.pattern.expressions import error_at
from acep.pattern.sql.clause_tree import Clause, MatchSpan, variables_of
from acep.pattern.walk import children, leaves_of, levels
from acep.plan.decimals import Typed
from acep.plan.ordered.row_columns import ClauseColumns
from acep.plan.ordered.row_references import CHOOSING, LABEL, Navigation, RowReference

__all__ = ["check_computed", "check_labels", "checked_window", "named_variables"]


def named_variables(clause: Clause) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """Return the primary variables by folded names, and the union variables."""
    variables: dict[str, str] = {}
    for variable in variables_of(clause.pattern):
        folded = variable.name.casefold()
        if folded in variables:
            raise error_at(f"`{variable.name}` and `{variables[folded]}` differ in case alone", variable.span,
                           "give one of them another name", code="query_name")  # fmt: skip
        variables[folded] = variable.name
    unions: dict[str, frozenset[str]] = {}
    for subset in clause.subsets:
        name = subset.name.casefold()
        if name in variables or name in unions:
            raise error_at(
                f"`{subset.name}` is the name of another variable",
                subset.span,
                "give it another name",
                code="query_name",
            )
        for member in subset.variables:
            if member.casefold() not in variables:
                hint = suggest(member, [*variables.values()])
                raise error_at(f"`{member}` is not a variable of the pattern", subset.span, hint, code="query_name")
        unions[name] = frozenset(member.casefold() for member in subset.variables)
    defined: set[str] = set()
    for definition in clause.definitions:
        name = definition.variable.casefold()
        if name not in variables:
            hint = "a union variable has no condition" if name in unions else suggest(
                definition.variable, [*variables.values()])  # fmt: skip
            raise error_at(f"`{definition.variable}` is not a variable of the pattern", definition.span, hint,
                           code="query_name")  # fmt: skip
        if name in defined:
            raise error_at(
                f"`{definition.variable}` is defined twice",
                definition.span,
                "join both conditions by AND",
                code="query_name",
            )
        defined.add(name)
    return variables, unions


def check_computed(expr: ex.Expr, references: Sequence[RowReference], types: tuple[Typed | None, ...]) -> None:
    """Refuse to compute with values of types that are only given as they are."""
    if isinstance(expr, ex.Attribute):
        return
    for leaf in leaves_of(expr):
        if isinstance(leaf, ex.Attribute) and types[number := int(leaf.name[1:])] is None:
            reference = references[number]
            name = reference.column if isinstance(reference, Navigation) else getattr(reference, "function", "")
            raise error_at(f"`{name}` holds values that are not computed with", leaf.span,
                           "give it as a measure of its own", code="query_type")  # fmt: skip


def check_labels(expr: ex.Expr, references: Sequence[RowReference], clause: Clause) -> None:
    """Refuse to compare CLASSIFIER with a variable as the pattern has it, in small letters and without quotation marks:
    its label is in capitals."""
    labels = {clause.text[v.span.start : v.span.end]: v.name for v in variables_of(clause.pattern)}
    for part, _ in levels(expr, children):
        compared: tuple[ex.Expr, ...]
        match part:
            case ex.Binary(op="=" | "!=", left=left, right=right):
                compared = (left, right)
            case ex.In(operand=operand, values=values):
                compared = (operand, *values)
            case _:
                continue
        if not any(_is_label(side, references) for side in compared):
            continue
        for side in compared:
            if not isinstance(side, ex.Literal) or not isinstance(side.value, str):
                continue
            label = labels.get(side.value, side.value)
            if label != side.value:
                hint = f"write '{label}', or the variable in quotation marks in PATTERN"
                raise error_at(f"CLASSIFIER gives `{label}`, not `{side.value}`", side.span or expr.span, hint,
                               code="query_invalid")  # fmt: skip


def _is_label(expr: ex.Expr, references: Sequence[RowReference]) -> bool:
    if not isinstance(expr, ex.Attribute):
        return False
    reference = references[int(expr.name[1:])]
    is_choice = isinstance(reference, Navigation) or getattr(reference, "function", "") in CHOOSING
    return is_choice and reference.column == LABEL  # type: ignore[union-attr]


def checked_window(clause: Clause, key: str | None, columns: ClauseColumns) -> MatchSpan | None:
    """Return WITHIN, which fits the first ``key`` of ORDER BY. Raises :class:`QueryError` if it does not."""
    window = clause.window
    if window is None:
        return None
    if key is None or clause.order[0].is_descending:
        raise error_at(
            "WITHIN needs ORDER BY with a first key that ascends",
            window.span,
            "as in ORDER BY ts",
            code="query_invalid",
        )
    kind = columns.typed_column(key).kind
    if window.is_interval != (kind == "timestamp") or kind not in ("timestamp", "int"):
        hint = "a number for a column of integers, an INTERVAL for times"
        raise error_at(f"WITHIN does not fit the first key of ORDER BY, which is {kind}", window.span, hint,
                       code="query_type")  # fmt: skip
    return window
