"""Check the options of a MATCH_RECOGNIZE clause over a stream, its budget among them."""

from __future__ import annotations

from acep.budget.budget import Budget
from acep.errors import QueryError
from acep.pattern.sql.clause_parser import parse_clause
from acep.row_patterns.clause_text import read_clause
from acep.row_patterns.partition_choice import POLICIES, ClauseBudget, no_partitions_error
from acep.runtime.options import StreamOptions
from acep.shedding.limits import checked_seed, want_a_bound

__all__ = ["check_clause_options", "check_partitions", "clause_budget"]


def clause_budget(options: StreamOptions) -> ClauseBudget | None:
    """Return the budget of a clause; ``None`` without a bound. Raises :class:`QueryError` for one that a clause cannot
    keep to."""
    budget = options.budget
    if budget is not None and not isinstance(budget, Budget):
        raise QueryError(f"budget= takes an acep.Budget, not {type(budget).__name__}", hint="acep.Budget(work=10)",
                         code="option_invalid")  # fmt: skip
    if budget is not None and any(part is not None for part in (budget.errors, budget.weights, budget.surplus)):
        raise QueryError("errors=, weights= and surplus= are of queries", hint="write ERRORS behind the PATTERN",
                         code="option_invalid")  # fmt: skip
    if budget is None or not budget.limited:
        want_a_bound(options.policy, None)
        if checked_seed(options.seed):
            raise QueryError("seed= serves a run under a budget", hint="set a bound on what may be spent: work=10",
                             code="option_invalid")  # fmt: skip
        return None
    if budget.recover or budget.min_recall is not None:
        name = "recover" if budget.recover else "min_recall"
        raise QueryError(f"{name}= is not for MATCH_RECOGNIZE", hint="leave it out", code="option_invalid")
    if options.policy not in POLICIES:
        hint = "a clause takes " + " or ".join(f'"{name}"' for name in POLICIES)
        raise QueryError(f"policy={options.policy!r} is not for MATCH_RECOGNIZE", hint=hint, code="option_invalid")
    if options.speculation != 0:
        raise QueryError("a clause under a budget gives rows that are final", hint="leave speculation= or budget= out",
                         code="option_invalid")  # fmt: skip
    return ClauseBudget(budget, options.policy, checked_seed(options.seed))


def check_clause_options(options: StreamOptions) -> None:
    """Raise :class:`QueryError` for options that a clause does not have."""
    usual: dict[str, object] = {"history": None, "engine": "auto", "dynamic": False, "threads": 1}
    unused = [name for name, value in usual.items() if getattr(options, name) != value]
    unused += [] if options.type in ("type", None) else ["type"]
    if unused:
        raise QueryError(f"{unused[0]}= is not for MATCH_RECOGNIZE", hint="leave it out", code="option_invalid")


def check_partitions(text: str, budget: ClauseBudget | None) -> None:
    """Raise :class:`QueryError` for a budget of a clause without PARTITION BY."""
    if budget is not None and not parse_clause(read_clause(text).clause).partition:
        raise no_partitions_error()
