"""Learning ahead: a query runs exactly over known events, and what became of its match nodes is kept as a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acep.budget import Budget, tolerant
from acep.budget.policies import policy_of
from acep.engine.best_effort import BestEffort
from acep.engine.compiled import chosen
from acep.engine.learned import SECTION, Learned, learned_by, read_history
from acep.engine.running import bounded_engine
from acep.engine.tables import batch_of, schema_of, to_table
from acep.errors import QueryError, SnapshotError
from acep.learning.container import read_sections, write_sections
from acep.learning.history import History
from acep.learning.lives import Lives, Made, roots
from acep.learning.orders import Orders
from acep.learning.policy import Epoch, Policy
from acep.learning.setting import Setting
from acep.pattern.check import checked_query
from acep.pattern.tree import Query
from acep.plan.compile import compile_query

__all__ = ["learn"]

LIVES = 65_536  # to be logged in an epoch
LEAST_SAMPLE = 2.0**-20
PART = 4096  # events between two looks at what was found, which is not kept


def learn(
    events: Any,
    query: Query,
    *,
    budget: Budget | None = None,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
    policy: Any = "history",
    seed: int = 0,
    history: Any = None,
) -> bytes:
    """What a policy learns of a query from events that are known: the bytes of a file ``history.acep``.

    The query runs over all events without giving up anything, and what becomes of its match nodes (of a sample, where
    there are very many) is told to the policy. The file holds the history graph that ``acep history`` prints, and the
    policy's state, with which a run under a budget begins if :func:`acep.match` or :class:`acep.Matcher` gets it as
    ``history=``. It serves the query it was learned of, with the same errors and the same columns.

    ``history``: bytes or the name of a file; learning goes on from it. ``budget`` may set errors and weights
    only; the other arguments are those of :func:`acep.match`.

    Raises :class:`QueryError`, :class:`DataError`, :class:`EngineError` where the native core is missing or cannot run
    the query, and :class:`SnapshotError` for a history that is damaged, or of another query or policy.

    >>> import acep
    >>> events = {"ts": list(range(2000)), "type": list("abxx" * 500)}
    >>> query = acep.regex("ab", within=5)
    >>> learned = acep.learn(events, query)
    >>> found = acep.match(events, query, budget=acep.Budget(work=2), history=learned, output="count")
    """
    if isinstance(budget, Budget) and budget.limited:
        raise QueryError("learning ahead gives up nothing", hint="leave all but errors and weights out of the Budget")
    asked = tolerant(checked_query(query), budget)
    if asked.sources:
        raise QueryError("a query over the matches of others has no history of its own", hint="learn of each of them")
    table = to_table(events)
    schema = schema_of(table.schema, ts=ts, type=type, seq=seq, id=id, unit=unit)
    plan = compile_query(asked, schema)
    engine = bounded_engine(chosen(plan, "native"))
    from acep.engine.native_session import NativeSession

    own = policy_of(policy)()
    before = None if history is None else read_sections(read_history(history))
    student = Student(own, None if before is None else History.from_sections(before, plan.fingerprint))
    learned = None if before is None else Learned.from_sections(before).serve(own)
    effort = BestEffort(student, seed, None, learned=learned)
    session = NativeSession([plan], [engine], {0: effort})
    for part in batch_of(table, schema, plan.columns, base=0).parts(PART):
        session.push(part)
        session.take(0)
    session.finish()
    session.learn()
    return student.to_bytes()


@dataclass
class Student:
    """A policy that also tells a history graph what it is told, and is otherwise like the other one. All lives are
    logged, or a sample where they are very many."""

    policy: Policy
    history: History | None = None
    setting: Setting = field(init=False)
    sample: float = 1.0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.policy.name

    def begin(self, setting: Setting, seed: int) -> Orders:
        """Raises :class:`SnapshotError` for a history with other match vectors."""
        self.setting = setting
        if self.history is None:
            self.history = History(setting.grid(), names=setting.names, fingerprint=setting.fingerprint)
        if self.history.grid != setting.grid():
            raise SnapshotError("the history has other match vectors", hint="learn it again with this version of acep")
        self.history.begin()
        return self._logged(self.policy.begin(setting, seed))

    def learn(self, epoch: Epoch) -> Orders:
        """Tells both."""
        assert self.history is not None
        self.history.update(weighted(self.history.open.made, epoch.log.lives, 1 / self.sample))
        # Of the next epoch, which may be twice as long, a sample of about as many lives as can be looked at quickly.
        likely = 2 * len(epoch.log.lives.made) / self.sample
        self.sample = max(min(1.0, LIVES / max(likely, 1.0)), LEAST_SAMPLE)
        return self._logged(self.policy.learn(epoch))

    def state(self) -> Mapping[str, Any]:
        """That of the other policy."""
        return self.policy.state()

    def restore(self, state: Mapping[str, Any]) -> Orders:
        """As the other policy."""
        return self._logged(self.policy.restore(state))

    def to_bytes(self) -> bytes:
        """The file; the stream has ended, so that what is still open is judged as far as it came."""
        assert self.history is not None
        most, self.history.most_open = self.history.most_open, 0
        self.history.update(Lives())
        self.history.most_open = most
        self.history.begin()
        state = getattr(self.policy, "learned", self.policy.state)()
        learned = Learned(self.setting.fingerprint, learned_by(self.policy), state)
        return write_sections({**self.history.to_sections(), SECTION: learned.to_bytes()})

    def _logged(self, orders: Orders) -> Orders:
        return orders.watching(sample=self.sample, spared=0.0)


def weighted(known: Made, lives: Lives, weight: float) -> Lives:
    """Lives with one over the probability with which their tree was logged: that of their first node, where it is
    ``known``, else ``weight``. (Nodes that became one are in the log if one of their trees is: they count for more than
    they should.) The graph has no bins of features.

    >>> from acep.learning.lives import Made
    >>> weighted(Made.none(), Lives(), 2.0) == Lives()
    True
    """
    both = known.then(replace(lives.made, weight=np.full(len(lives.made), weight)))
    weights = both.weight[roots(both)][len(known) :]
    made = replace(lives.made, weight=weights, feature=np.zeros_like(lives.made.feature))
    return replace(lives, made=made)
