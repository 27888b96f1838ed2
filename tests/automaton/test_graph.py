"""Hand-written automata on random streams: what both engines find is what the definition accepts."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from acep.native.compiled import why_not
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_different_on_rows, fail_if_wrong_on_rows
from tests.random_automata import Row, accepted, random_automaton, random_rows
from tests.random_cases import events_of
from tests.thinned import thinned

ENGINES = ["native", "reference"] if why_not() is None else ["reference"]
PARTS = 20


def told(matches: Any) -> list[tuple[Any, ...]]:
    """Matches in the form of the definition."""
    found = []
    for m in matches:
        bound = tuple(sorted((one, var) for var, ids in m.bindings.items() for one in ids))
        state, *registers = m.values.values()
        found.append((tuple(m.key.values()), bound, state, tuple(registers)))
    return sorted(found, key=str)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", thinned(range(PARTS), 5))
def test_what_is_found_is_what_the_definition_accepts(part: int, engine: str, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(part * 10_000, part * 10_000 + cases(100)):
        rng = Random(seed)
        automaton = random_automaton(rng)

        def complaint_of(rows: list[Row], automaton: acep.Automaton = automaton) -> str:
            wanted = accepted(automaton, rows)
            matches = acep.match(events_of(rows), automaton, engine=engine)
            seen["has matches"] += bool(wanted)
            count = acep.match(events_of(rows), automaton, engine=engine, output="count")
            ids = len({match.id for match in matches})
            return difference(told(matches), wanted, (engine, "definition")) or difference(
                {"count": count, "ids": ids}, dict.fromkeys(("count", "ids"), len(wanted))
            )

        fail_if_wrong_on_rows(random_rows(rng), f"seed {seed}\n{automaton.query.text}", complaint_of)
    cases.expect(seen, "has matches")


@pytest.mark.parametrize("engine", ENGINES)
def test_all_outputs_have_the_same_matches(engine: str, cases: CaseCounts) -> None:
    for seed in range(cases(150)):
        rng = Random(seed)
        automaton = random_automaton(rng)
        fail_if_different_on_rows(
            random_rows(rng, 18),
            f"seed {seed}, engine {engine}\n{automaton.query.text}",
            lambda rows, automaton=automaton: outputs_of(rows, automaton, engine),
            lambda rows, automaton=automaton: outputs_from_matches(rows, automaton, engine),
            ("outputs", "made from matches"),
        )


def outputs_of(rows: list[Row], automaton: acep.Automaton, engine: str) -> dict[str, Any]:
    """Return each output but the matches themselves."""
    outputs = ("exists", "points", "bundles", "batches")
    answers = {name: acep.match(events_of(rows), automaton, engine=engine, output=name) for name in outputs}
    parts = list(answers["batches"])
    return {
        "exists": answers["exists"],
        "points": sorted(map(str, answers["points"])),
        "bundles": sorted(map(str, answers["bundles"])),
        "rows": sum(part.num_rows for part in parts),
        "batches": sorted(str(row) for part in parts for row in part.to_pylist()),
    }


def outputs_from_matches(rows: list[Row], automaton: acep.Automaton, engine: str) -> dict[str, Any]:
    """Return the same, made from the matches."""
    matches = acep.match(events_of(rows), automaton, engine=engine)
    return {
        "exists": bool(matches),
        "points": sorted(map(str, matches.points())),
        "bundles": sorted(map(str, matches.bundles())),
        "rows": len(matches),
        "batches": sorted(map(str, matches.to_arrow().to_pylist())),
    }


@pytest.mark.long
def test_both_engines_give_matches_in_one_order(cases: CaseCounts) -> None:
    for seed in range(cases(300)):
        rng = Random(seed)
        automaton = random_automaton(rng)

        def complaint_of(rows: list[Row], automaton: acep.Automaton = automaton) -> str:
            matches = [list(acep.match(events_of(rows), automaton, engine=engine)) for engine in ENGINES]
            ids = [match.id for match in matches[0]]
            differing = difference(matches[0], matches[-1], (ENGINES[0], ENGINES[-1]))
            return differing or ("" if len({*ids}) == len(ids) else f"ids that occur twice: {ids}")

        fail_if_wrong_on_rows(random_rows(rng, 18), f"seed {seed}\n{automaton.query.text}", complaint_of)


@pytest.mark.skipif(why_not() is not None, reason="the reference keeps to no budget")
@pytest.mark.parametrize("policy", ["history", "random", "newest"])
def test_a_budget_only_loses_matches(policy: str, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed, budget in product(range(cases(200)), (acep.Budget(work=0.5), acep.Budget(memory="1 MB"))):
        rng = Random(seed)
        automaton = random_automaton(rng)

        def complaint_of(rows: list[Row], automaton: acep.Automaton = automaton, budget: acep.Budget = budget) -> str:
            exact = told(acep.match(events_of(rows), automaton))
            matches = acep.match(events_of(rows), automaton, budget=budget, policy=policy)
            seen["matches are lost"] += len(exact) - len(matches)
            invented = [match for match in told(matches) if match not in exact]
            if invented or (matches.exact is not False and told(matches) != exact):
                return f"exact={matches.exact}\n{difference(told(matches), exact, (str(budget), 'no budget'))}"
            return ""

        fail_if_wrong_on_rows(random_rows(rng, 22), f"seed {seed}, {policy}\n{automaton.query.text}", complaint_of)
    cases.expect(seen, "matches are lost")


GOOD = [acep.arc("begin", "end", "e.x > 1")]
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: acep.Automaton([], final="end"), "needs arcs"),
    (lambda: acep.Automaton(GOOD, final="nowhere"), "no arcs lead from `begin` to the final state `nowhere`"),
    (lambda: acep.Automaton(GOOD, final=[]), "needs final states"),
    (lambda: acep.Automaton(GOOD, final="end", registers={"state": 1}), "cannot be called `state`"),
    (lambda: acep.Automaton(GOOD, final="end", registers={"n": None}), "has no type"),
    (lambda: acep.Automaton(GOOD, final="end", registers={"n": list}), "no register holds a list"),
    (lambda: acep.Automaton(GOOD, final="end", registers={"n": 2**63}), "is no value of a register"),
    (lambda: acep.Automaton(GOOD, final="end", window=0), "a window of 0 holds no event"),
    (lambda: acep.Automaton(GOOD, final="end", window="soon"), "is not a window"),
    (lambda: acep.Automaton([acep.arc("a", "b", "r.n > 1")], final="b"), "there is no register `n`"),
    (lambda: acep.Automaton([acep.arc("a", "b", transfer={"n": "1"})], final="b"), "there is no register `n`"),
    (lambda: acep.Automaton([acep.arc("a", "b", epsilon=True)], final="b"), "no arc of the automaton binds an event"),
    (
        lambda: acep.Automaton(
            [*GOOD, acep.arc("end", "more", epsilon=True), acep.arc("more", "end", epsilon=True)], final="end"
        ),
        "form a cycle",
    ),
    (lambda: acep.arc("a", "b", "e.x >"), "arc a -> b, fence: "),
    (lambda: acep.arc("a", "b", "e.x > 1) AND (2 = 2"), "arc a -> b, fence: "),
    (lambda: acep.arc("a", "b", "e.x > 1 AS y, e.x"), "arc a -> b, fence: "),
    (lambda: acep.arc("a", "b", "x > 1"), "arc a -> b, fence: "),
    (lambda: acep.arc("a", "b", "b.x > 1"), "an arc sees one event and the registers"),
    (lambda: acep.arc("a", "b", "sum(e[].x) > 1"), "an arc sees one event and the registers"),
    (lambda: acep.arc("a", "b", "e.x > 1", epsilon=True), "cannot refer to `e`"),
    (lambda: acep.arc("a", "b", ignorable=True), "changes nothing and binds nothing"),
    (lambda: acep.arc("a", "", "e.x > 1"), "a state has a name"),
    (lambda: acep.arc("a", "b", transfer={"n": [1]}), "is no value of a register"),  # type: ignore[dict-item]
    (lambda: acep.arc("a", "b", since=1.5), "is no time"),  # type: ignore[arg-type]
    (lambda: acep.arc("a", "b", 3), "an expression is a text"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "message"), WRONG, ids=range(len(WRONG)))
def test_what_is_no_automaton_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        build()


OF_COLUMNS = [
    ("e.missing > 1", {}, "`e.missing > 1`: unknown column `missing`"),
    ("e.x", {}, "a condition is needed here"),
    ("e.type > 1", {}, "cannot be compared"),
    (None, {"n": "e.type"}, "register `n` holds an int, and its new value is a string"),
    (None, {"n": "e.f"}, "register `n` holds an int, and its new value is a float"),
    (None, {"who": "e.x"}, "register `who` holds a string"),
]


@pytest.mark.parametrize(("fence", "transfer", "message"), OF_COLUMNS)
def test_what_does_not_fit_the_columns_is_refused(fence: str | None, transfer: dict[str, str], message: str) -> None:
    automaton = acep.Automaton([acep.arc("a", "b", fence, transfer)], final="b", registers={"n": 0, "who": "x"})
    with pytest.raises(QueryError, match=re.escape(message)) as refused:
        acep.match(events_of(random_rows(Random(1))), automaton)
    assert "line" not in str(refused.value)  # a place in the text would be one in a text that nobody wrote


NO_TOML = [
    ("final = ", "this is no TOML"),
    ("final = 'b'", "an automaton needs arcs"),
    ("arc = 3\nfinal = 'b'", "the arcs of an automaton are tables"),
    ("[[arc]]\nfrom = 'a'\nto = 'b'", "an automaton needs final states"),
    ("final = 'b'\n[[arc]]\nfrom = 'a'", "an arc needs `to`"),
    ("final = 'b'\nfinals = 'c'\n[[arc]]\nfrom = 'a'\nto = 'b'", "an automaton has no `finals`"),
    ("final = 'b'\n[[arc]]\nfrom = 'a'\nto = 'b'\nwhen = 'e.x > 1'", "an arc has no `when`"),
    ("final = 'b'\n[[arc]]\nfrom = 'a'\nto = 'b'\nepsilon = 1", "`epsilon` is no bool"),
    ("final = 'b'\nregisters = { n = 'number' }\n[[arc]]\nfrom = 'a'\nto = 'b'", "`number` is no type"),
    ("final = 'b'\nregisters = 3\n[[arc]]\nfrom = 'a'\nto = 'b'", "the registers of an automaton are a table"),
]


@pytest.mark.parametrize(("text", "message"), NO_TOML)
def test_what_is_no_automaton_in_toml_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        acep.Automaton.from_toml(text)


def test_toml_and_python_give_one_automaton(tmp_path: Path) -> None:
    text = """
    final = ["b", "c"]
    registers = { n = 0, name = ["x"], low = "float", at = "timestamp" }
    keys = ["k"]
    window = "2 hours"
    [[arc]]
    from = "a"
    to = "b"
    fence = "e.x > r.n"
    transfer = { n = "r.n + 1", low = 2.5, name = "'y'" }
    bind = "one"
    since = 2026-01-31T10:00:00
    [[arc]]
    from = "b"
    to = "c"
    epsilon = true
    """
    (tmp_path / "one.toml").write_text(text)
    arcs = [
        acep.arc("a", "b", "e.x > r.n", {"n": "r.n + 1", "low": 2.5, "name": "'y'"}, bind="one",
                 since="2026-01-31 10:00"),
        acep.arc("b", "c", epsilon=True),
    ]  # fmt: skip
    registers = {"n": 0, "name": "x", "low": float, "at": dt.datetime}
    same = acep.Automaton(arcs, final=["b", "c"], registers=registers, keys="k", window=dt.timedelta(hours=2))
    read = acep.Automaton.from_toml(tmp_path / "one.toml")
    assert read.query.text == same.query.text == acep.Automaton.from_toml(text).query.text
    with pytest.raises(QueryError, match="cannot be read"):
        acep.Automaton.from_toml(tmp_path / "none.toml")


def test_a_window_in_time_ends_before_its_last_tick() -> None:
    two = [acep.arc("a", "b"), acep.arc("b", "c")]
    times = pa.table({"ts": pa.array([0, 1000, 3000], pa.timestamp("ms"))})
    for window, many in (("1 s", 0), ("1001 ms", 1), ("2 s", 1), ("2001 ms", 2), ("2 events", 2), ("1 event", 0)):
        assert acep.match(times, acep.Automaton(two, final="c", window=window), type=None, output="count") == many
    ticks = pa.table({"ts": [0, 1, 3]})
    for window, many in ((1, 0), (1.5, 1), (2, 1), (2.5, 2)):
        assert acep.match(ticks, acep.Automaton(two, final="c", window=window), type=None, output="count") == many


def test_too_many_chains_of_epsilon_arcs_are_refused() -> None:
    arcs = [acep.arc("0", "0")]
    arcs += [acep.arc(str(n), str(n + 1), epsilon=True) for n in range(20) for _ in range(2)]
    with pytest.raises(QueryError, match="too many chains of epsilon arcs"):
        acep.match(events_of([]), acep.Automaton(arcs, final="20"))


def test_an_error_budget_is_refused() -> None:
    one = acep.Automaton(GOOD, final="end")
    for budget in (acep.Budget(errors=1), acep.Budget(weights={"events": 2})):
        with pytest.raises(QueryError, match="no event of a hand-written automaton may be missing"):
            acep.match(events_of([]), one, budget=budget)
        with pytest.raises(QueryError, match="no event of a hand-written automaton may be missing"):
            acep.Matcher(one, budget=budget)
