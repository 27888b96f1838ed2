"""Rules of the lint of MATCH_RECOGNIZE: conditions, names, patterns, order, measures and the bound of work."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from acep.linting.clause_view import (
    ClauseView,
    is_bounded,
    may_be_empty,
    own_column,
    texts_beside_labels,
    variable_read,
)
from acep.linting.report import Hit
from acep.linting.variable_order import earlier_variables
from acep.pattern.expressions import Span
from acep.pattern.sql.clause_tree import (
    FINAL,
    RUNNING,
    Concatenation,
    Quantified,
    RowPattern,
    RowsMode,
    SkipMode,
    SqlExpression,
    variables_of,
)
from acep.plan.ordered.aggregate_calls import is_aggregate
from acep.row_patterns.explanation import engine_of, work_of

__all__ = [
    "condition_always",
    "condition_never",
    "engine_slow",
    "label_case",
    "null_compared",
    "order_missing",
    "order_ties",
    "partition_missing",
    "pattern_empty",
    "pattern_reluctant",
    "rows_running",
    "state_unbounded",
    "variable_unlike",
    "work_bound",
]


def condition_never(view: ClauseView) -> Iterator[Hit]:
    """Find a comparison that never holds: of a row with itself, or with a variable that has no rows yet."""
    for variable, column, kind, span in _comparisons_with_itself(view):
        if kind in ("GT", "LT", "NEQ"):
            message = f"this never holds: LAST({variable}.{column}) is of the row that is tested"
            hint = f"PREV({column}) is of the row before, LAST({variable}.{column}, 1) of the one before of {variable}"
            yield Hit("error", message, hint, span)
    yield from _comparisons_with_later_rows(view)


def _comparisons_with_later_rows(view: ClauseView) -> Iterator[Hit]:
    """Find comparisons with a variable that never has rows where its value is read."""
    if view.clause.errors:  # what reads a variable without rows is left out
        return
    earlier = earlier_variables(view.clause.pattern)
    for variable, source, node in view.comparisons():
        before = earlier.get(variable.casefold())
        for side in (node.this, node.expression):
            other = variable_read(side)
            if before is None or other is None or other.casefold() == variable.casefold():
                continue
            if other.casefold() in earlier and other.casefold() not in before:
                message = f"this never holds: `{other}` has no row yet where a row of `{variable}` is tested"
                hint = f"a condition reads rows up to its own: write it for `{other}`, which comes later, or use NEXT"
                yield Hit("error", message, hint, view.place(node, source))


def condition_always(view: ClauseView) -> Iterator[Hit]:
    """Find a comparison of a row with itself that holds wherever there is a value."""
    for variable, column, kind, span in _comparisons_with_itself(view):
        if kind in ("GTE", "LTE", "EQ"):
            message = "this holds wherever there is a value: both sides are of the row that is tested"
            hint = f"PREV({column}) is of the row before, FIRST({variable}.{column}) of the first one of {variable}"
            yield Hit("warning", message, hint, span)


def _comparisons_with_itself(view: ClauseView) -> Iterator[tuple[str, str, str, Span]]:
    """Yield the comparisons of a column with itself: the variable, the column, the kind of the node, the place."""
    for variable, source, node in view.comparisons():
        column = own_column(node.this, variable)
        if column is not None and column == own_column(node.expression, variable):
            yield variable, column, type(node).__name__, view.place(node, source)


def null_compared(view: ClauseView) -> Iterator[Hit]:
    """Find a comparison with NULL, which is never true."""
    for _, source, node in view.comparisons():
        if "Null" in (type(node.this).__name__, type(node.expression).__name__):
            yield Hit("error", "a comparison with NULL is never true", "write x IS NULL, or x IS NOT NULL",
                      view.place(node, source))  # fmt: skip


def label_case(view: ClauseView) -> Iterator[Hit]:
    """Find a label that is compared with a text in other letters than CLASSIFIER gives."""
    labels = {variable.name for variable in variables_of(view.clause.pattern)}
    spellings = {label.casefold(): label for label in labels}
    sources = [measure.expression for measure in view.clause.measures]
    for source in (*sources, *(definition.condition for definition in view.clause.definitions)):
        for text in texts_beside_labels(source.tree):
            label = spellings.get(str(text.this).casefold())
            if label is not None and text.this not in labels:
                message = f"no label is '{text.this}': CLASSIFIER gives '{label}'"
                hint = f"write '{label}', or `{text.this}` in quotation marks in PATTERN"
                yield Hit("warning", message, hint, view.place(text, source))


def variable_unlike(view: ClauseView) -> Iterator[Hit]:
    """Find a variable without a condition whose name is nearly that of another one."""
    names = {v.name.casefold(): v.name for v in variables_of(view.clause.pattern)}
    for variable in view.undefined_variables():
        other_names = [name for name in names if name != variable.name.casefold()]
        alike = get_close_matches(variable.name.casefold(), other_names, 1, 0.75) if len(variable.name) > 2 else []
        if alike and not alike[0][-1:].isdecimal() and not variable.name[-1:].isdecimal():
            message = f"`{variable.name}` has no condition, so that it takes any row"
            hint = f"is it `{names[alike[0]]}`? Else write DEFINE {variable.name} AS TRUE"
            yield Hit("warning", message, hint, variable.span)


def partition_missing(view: ClauseView) -> Iterator[Hit]:
    """Find a clause without PARTITION BY."""
    if not view.clause.partition:
        hint = "name the column that tells series apart, as in PARTITION BY symbol, if there is one"
        yield Hit("note", "all rows are one partition, so that rows of all series follow one another", hint)


def pattern_empty(view: ClauseView) -> Iterator[Hit]:
    """Find a pattern that matches without rows."""
    if not may_be_empty(view.clause.pattern):
        return
    if view.clause.rows is RowsMode.OMIT:
        return
    hint = "write + in place of * or ?, or ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    yield Hit(
        "warning", "the pattern matches without rows, so that each row at which nothing else fits is a match", hint
    )


def pattern_reluctant(view: ClauseView) -> Iterator[Hit]:
    """Find a reluctant quantifier at the end, which takes as few rows as it may."""
    pattern = view.clause.pattern
    last = pattern.items[-1] if isinstance(pattern, Concatenation) else pattern
    if isinstance(last, Quantified) and last.is_reluctant and last.high != last.low:
        times = {0: "no row", 1: "one iteration"}.get(last.low, f"{last.low} iterations")
        yield Hit("warning", f"the reluctant quantifier at the end of the pattern always takes {times}",
                  "leave out the `?` behind it, or say what follows")  # fmt: skip


def order_missing(view: ClauseView) -> Iterator[Hit]:
    """Find a clause without ORDER BY."""
    if not view.clause.order:
        hint = "name the time, as in ORDER BY ts; in other engines the order is not defined then"
        yield Hit("warning", "without ORDER BY rows follow each other as they stand in the table", hint)


def order_ties(view: ClauseView) -> Iterator[Hit]:
    """Find rows that no key of ORDER BY tells apart."""
    plan, table = view.plan, view.table
    if plan is None or table is None or not plan.order:
        return
    keys = [*dict.fromkeys((*plan.partition, *(key.column for key in plan.order)))]
    if not all(key in plan.names for key in keys):
        return
    counts = table.select(keys).group_by(keys).aggregate([([], "count_all")]).column("count_all")
    tied = sum(count for count in counts.to_pylist() if count > 1)
    if tied:
        message = (
            f"{tied:,} of {table.num_rows:,} rows have the keys of another row, and stay in the order of the table"
        )
        hint = "add a key that tells them apart, as in ORDER BY ts, id"
        yield Hit("warning", message, hint, view.clause.order[-1].expression.span)


def rows_running(view: ClauseView) -> Iterator[Hit]:
    """Find measures that may be meant of the whole match and are of the rows so far, and RUNNING that says nothing."""
    is_one_row = view.clause.rows is RowsMode.ONE_ROW
    for measure in view.clause.measures:
        prefixes, reads_rows = _prefixes(measure.expression)
        span = measure.expression.span
        if is_one_row and RUNNING in prefixes:
            message = f"RUNNING says nothing in `{measure.name}`: ONE ROW PER MATCH gives the last row of a match"
            yield Hit("note", message, "leave it out", span)
        if not is_one_row and reads_rows and not prefixes:
            message = f"`{measure.name}` is of the rows up to the current one, as ALL ROWS PER MATCH has it"
            yield Hit("note", message, "write FINAL before the call for the whole match, or RUNNING", span)


def _prefixes(source: SqlExpression) -> tuple[set[str], bool]:
    """Return which of RUNNING and FINAL a measure has, and whether it has a call of the rows so far."""
    prefixes: set[str] = set()
    reads_rows = False
    for node in source.tree.walk():
        name = str(node.this) if type(node).__name__ == "Anonymous" else ""
        if name in (RUNNING, FINAL):
            prefixes.add(name)
        is_last_of_variable = name.upper() == "LAST" and any(
            type(part).__name__ == "Column" and part.args.get("table") is not None for part in node.expressions
        )
        reads_rows = reads_rows or is_aggregate(node) or is_last_of_variable
    return prefixes, reads_rows


def work_bound(view: ClauseView) -> Iterator[Hit]:
    """Find conditions that are searched for, and matches that share rows, over patterns that may take any number of
    rows."""
    if view.plan is None or is_bounded(view.clause.pattern) or view.clause.window is not None:
        return
    work = work_of(view.plan)
    hint = "bound the repetitions, as in B{0,100}, or the time: WITHIN INTERVAL '1' HOUR"
    if work == "head":
        message = "the work may grow with the square of the rows: conditions read the first rows of the match"
        yield Hit("note", message, hint)
    elif work == "past":
        message = "the work may grow exponentially with the rows: conditions read what was bound on the way"
        yield Hit("warning", message, hint)
    elif view.clause.skip.mode in (SkipMode.TO_NEXT, SkipMode.TO_FIRST):
        message = "the work may grow with the square of the rows: matches may share rows, and each is walked on its own"
        yield Hit("note", message, f"{hint}, or skip past the last row")


def state_unbounded(view: ClauseView) -> Iterator[Hit]:
    """Find a repetition that takes any row, without WITHIN: on a stream it keeps all rows until what follows comes."""
    if view.clause.window is not None:
        return
    undefined = {variable.name.casefold() for variable in view.undefined_variables()}
    for part in _parts(view.clause.pattern):
        if isinstance(part, Quantified) and part.high is None:
            names = variables_of(part.item)
            if any(variable.name.casefold() in undefined for variable in names):
                message = f"`{names[0].name}` may take all rows: on a stream nothing bounds what is kept of a partition"
                yield Hit("note", message, "bound the time, as in WITHIN INTERVAL '1' HOUR, or the repetition",
                          names[0].span)  # fmt: skip


def _parts(pattern: RowPattern) -> Iterator[RowPattern]:
    """Yield a pattern and all its parts."""
    yield pattern
    for part in getattr(pattern, "items", ()) or [getattr(pattern, "item", None)]:
        if part is not None:
            yield from _parts(part)


def engine_slow(view: ClauseView) -> Iterator[Hit]:
    """Find a clause that the reference engine searches, which is slow."""
    if view.plan is None or view.table is None:
        return
    engine = engine_of(view.plan, view.table.schema)
    if engine != "native":
        hint = "compute what the condition needs as a column before the clause"
        yield Hit("warning", f"the search is slow: {engine}", hint)
