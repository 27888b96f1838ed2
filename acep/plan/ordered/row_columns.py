"""Find the columns that the expressions of a clause name, and the columns that are computed of them beforehand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from acep.errors import suggest
from acep.pattern import expressions as ex
from acep.pattern.expressions import Span, error_at
from acep.pattern.spelling import expression_text
from acep.plan.dates import gives_date
from acep.plan.decimals import Typed
from acep.plan.kinds import order_error, ordered_categories, resolve
from acep.plan.ordered.row_references import LABEL, NUMBER, PartitionValue
from acep.plan.schema import Kind, Schema

__all__ = ["ROW", "ClauseColumns"]

ROW = "row"
"""The variable of the attributes of one row."""


@dataclass
class ClauseColumns:
    """The columns of a table: ``names`` as it has them, those of ``dates``, and ``computed`` ones by the text of their
    expression. Those of ``mapped`` read labels or the number of the match too, and are known of mapped rows alone.

    Names are the same whatever their case, as they are in Spark and DuckDB. ``input_name``: what the table is called,
    which may stand before a column. ``windows``: aggregates over partitions."""

    names: tuple[str, ...]
    schema: Schema
    dates: set[str] = field(default_factory=set)
    computed: dict[str, Typed] = field(default_factory=dict)
    mapped: dict[str, Typed] = field(default_factory=dict)
    input_name: str = ""
    windows: dict[PartitionValue, Typed] = field(default_factory=dict)

    def own_path(self, path: list[str]) -> list[str]:
        """Return the names of a column reference without that of the table before them."""
        is_table = len(path) > 1 and self.input_name and path[0].casefold() == self.input_name.casefold()
        return path[1:] if is_table else path

    def key_name(self, path: list[str], span: Span | None) -> str:
        """Return the column that a key names, a computed one for a field of a struct."""
        name = self.value_name(path, span)
        if name in self.names:
            return name
        self.computed[f"({name})"] = resolve(ex.Attribute(ROW, None, name), self.schema)
        return f"({name})"

    def value_name(self, path: list[str], span: Span | None) -> str:
        """Return the column, or the field of a struct, that names mean."""
        name = ".".join(path)
        is_field = len(path) > 1 and name not in self.names and self.schema.kind(name) is not None
        return name if is_field else self.column_name(name, span)

    def column_name(self, name: str, span: Span | None) -> str:
        """Return the column that a name means.

        Raises :class:`QueryError` if there is none, or more than one whose names differ in case alone."""
        if name in self.names:
            return name
        alike = [column for column in self.names if column.casefold() == name.casefold()]
        if len(alike) > 1:
            raise error_at(f"`{name}` may be {alike[0]} or {alike[1]}", span, "write it as the table does",
                           code="query_name")  # fmt: skip
        if not alike:
            for column, reason in self.schema.unusable:  # those that no table of Arrow holds are not among the names
                if column.casefold() == name.casefold():
                    reason_text, _, hint = reason.partition("; ")
                    raise error_at(f"column `{column}` {reason_text}", span, hint or None, code="query_name")
            raise error_at(f"unknown column `{name}`", span, suggest(name, self.names), code="query_name")
        return alike[0]

    def is_date(self, expr: ex.Expr) -> bool:
        """Return whether an expression is a column of dates."""
        return isinstance(expr, ex.Attribute) and expr.name in self.dates

    def add(self, expr: ex.Expr, text: str = "") -> str:
        """Return the name of the column of an expression over one row: that of the column if it is one, else that of a
        computed one, which is added. It is called by the ``text`` of the user, if there is one that no column has."""
        if isinstance(expr, ex.Attribute):
            return expr.name
        name = text if text and text not in self.names else f"({expression_text(expr)})"
        if name not in self.computed:
            self.computed[name] = resolve(expr, self.schema)
            if gives_date(expr, self.is_date):
                self.dates.add(name)
        return name

    def add_mapped(self, expr: ex.Expr) -> str:
        """Return the name of the column of an expression over a mapped row, its label and the number of the match."""
        if isinstance(expr, ex.Attribute):
            return expr.name
        name = f"({expression_text(expr)})"
        kinds = (*self.schema.kinds, (LABEL, Kind.STRING), (NUMBER, Kind.INT))
        self.mapped[name] = resolve(expr, replace(self.schema, kinds=kinds))
        return name

    def add_window(self, window: PartitionValue, typed: Typed) -> str:
        """Return the name of the column of an aggregate over partitions, which is added with its type."""
        self.windows[window] = typed
        return window.name

    def ordered_categories(self, name: str) -> str | None:
        """Return the column of categories in an order of their own of which a column has values; ``None`` for none."""
        typed = self.computed.get(name) or self.mapped.get(name)
        return self.schema.ordered_categories(name) if typed is None else ordered_categories(typed.expr, self.schema)

    def refuse_own_order(self, name: str) -> None:
        """Raise :class:`QueryError` for a column whose values have an order that is not that of texts."""
        if (categories := self.ordered_categories(name)) is not None:
            raise order_error(categories, None)

    def typed_column(self, name: str) -> Typed:
        """Return a column with its type; it is an attribute of one row."""
        for window, typed in self.windows.items():
            if window.name == name:
                return Typed(ex.Attribute(ROW, None, name), typed.kind, typed.scale)
        if name == NUMBER:
            return Typed(ex.Attribute(ROW, None, name), "int")
        if name in self.computed or name in self.mapped:
            typed = self.computed[name] if name in self.computed else self.mapped[name]
            return Typed(ex.Attribute(ROW, None, name), typed.kind, typed.scale)
        return resolve(ex.Attribute(ROW, None, name), self.schema)
