"""How a stream falls into batches, restarts and the order of dictionaries make no difference: neither to what is found
nor to the work that is counted, exactly and under a budget of work, whatever the policy and the engine."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.budget.policies import POLICIES
from acep.native import session
from acep.runtime.options import StreamOptions
from acep.tables.table_stream import TableStream
from tests.case_counts import CaseCounts
from tests.complaints import case_text, fail_if_different_on_rows
from tests.native import harness
from tests.native.harness import ANY, NEXT
from tests.thinned import in_turn

pytest.importorskip("acep.native._native")

ROWS = 700
OUTPUTS = ("matches", "points", "bundles", "count")
ENGINES = {"windows+nodes", "windows+dominance", "nodes", "dominance", "search", "merged", "points", "bundles", "count"}
UNDER_BUDGET = {one if "nodes" in one or "dominance" in one else f"units+{one}" for one in ENGINES}

PREDICATES = (
    "b.s = a.s", "c.s = a.s", "c.s != b.s", "c.x > a.x", "b.x > a.x", "c.t = b.t", "b.s > a.s", "c.f < a.f",
    "c.t != a.t", "b.s LIKE 'a%'",
)  # fmt: skip


def random_query(rng: Random) -> str:
    """A query whose predicates look at texts mostly."""
    shape = rng.choice(("A a, B b, C c", "A a, B b, B c", "A a, B+ b[], C c", "A a, (B b | D b), C c"))
    strategy = rng.choice((ANY, ANY, NEXT, "partition_contiguity"))
    # Now and then none, so that nothing ties events together beyond the partition.
    wanted = rng.sample(PREDICATES, rng.choice((0, 1, 2, 2, 3)))
    if "B+" in shape:
        wanted = [one.replace("b.", "b[i].") for one in wanted]
    if "|" in shape:
        wanted = [one for one in wanted if "b." not in one]
        shape = shape.replace("B b | D b", "B b | D d")
    keyed = rng.random() < 0.4 or not wanted
    tests = " AND ".join(["[k]"] * keyed + wanted)
    window = f"{rng.choice((20, 60)) * (4 if keyed else 1)}{rng.choice(('', '', ' events'))}"
    names = "a, b, c"
    return f"PATTERN SEQ({shape}) WHERE {strategy}({names}) {{ {tests} }} WITHIN {window}"


def random_stream(seed: int, rows: int, texts: int) -> pa.Table:
    words = tuple(f"{chr(97 + n % 5)}{n * 7919 % 1000}-{n}" for n in range(texts))
    times = np.sort(np.random.default_rng(seed).integers(0, rows, rows))
    columns = {"k": words[:6], "s": words, "t": words[:4], "x": 100, "f": float}
    return harness.stream(rows, seed, "AAABBCCD", ts=times, **columns)


def shuffled(table: pa.Table, rng: Random) -> pa.Table:
    """The same with each text column as a dictionary in another order, which has texts that no row has."""
    columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            texts = sorted({*column.to_pylist(), *(f"{name} {n}" for n in range(40))})
            rng.shuffle(texts)
            places = {text: place for place, text in enumerate(texts)}
            indices = pa.array([places[text] for text in column.to_pylist()], pa.int32())
            column = pa.DictionaryArray.from_arrays(indices, pa.array(texts))
        columns[name] = column
    return pa.table(columns)


@pytest.fixture(autouse=True)
def future_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rest of a batch tells saves work, and so the work depends on the batches."""
    monkeypatch.setattr(session, "STRATEGIES", (0, 1))


def answer(
    query: acep.Query, output: str, table: pa.Table, size: int, *, restarts: float = 0, **options: Any
) -> tuple[str, Any]:
    """The engine of a query, and what was found and done; a share ``restarts`` of the batches comes after a restart."""
    tables, rng = TableStream(query, StreamOptions(**options)), Random(size)
    tables.prepare(table.schema, output)
    found: list[Any] = []

    def take(parts: Any) -> None:
        assert tables.stream is not None
        found.extend((f.key, f.start, f.end, str(f.error), f.bindings) for f in parts[0])
        counted = tables.stream.take_counted(0)
        found.extend([counted] if isinstance(counted, int) else map(tuple, counted.rows()) if counted else [])

    for start in range(0, table.num_rows, size):
        if start and rng.random() < restarts:
            saved, stream = tables.stream.snapshot(), type(tables.stream)
            tables.stream = stream.restore(tables.plans, saved, output=output, limits=tables.limits)
        take(tables.push(table.slice(start, size)))
    take(tables.end())
    assert tables.stream is not None
    counts = tables.stream.counts
    if output == "count" and all(isinstance(one, int) for one in found):
        found = [sum(found)]
    if output == "bundles" and found and len(found[0]) == 6:
        found = together(found)
    work = (counts.nodes, counts.touches, counts.deciding, counts.shed)
    return tables.stream._natives.engines[0], (sorted(map(str, found)), work)


def together(rows: list[Any]) -> list[Any]:
    """Rows of counted bundles with what came to one of them later."""
    whole: dict[Any, list[Any]] = {}
    for key, first, last, bundle, error, many in rows:
        one = whole.setdefault((key, bundle), [first, last, error, 0])
        one[0], one[1], one[2], one[3] = min(one[0], first), max(one[1], last), min(one[2], error), one[3] + many
    return list(whole.items())


@pytest.mark.parametrize("policy", ["", *(name for name in POLICIES if name != "trained-on-test")])
def test_batches_restarts_and_dictionaries_make_no_difference(policy: str, cases: CaseCounts) -> None:
    """Exactly, and under each policy."""
    seen, engines = Counter[str](), UNDER_BUDGET if policy else ENGINES
    for seed in range(2 * cases(4)):
        rng = Random(seed)
        text, output, work = random_query(rng), rng.choice(OUTPUTS), rng.choice((0.5, 2, 6))
        query, table = acep.parse(text), random_stream(seed, ROWS, rng.choice((3, 30, 300)))
        budget = {"budget": acep.Budget(work=work), "policy": policy, "seed": seed} if policy else {}
        seen["an engine of these"] += answer(query, output, table, ROWS, **budget)[0] in engines
        sizes, shuffled_size = (7, 500) if rng.random() < 0.9 else (1,), rng.choice((ROWS, 100))
        ways = {f"batches of {size}": {"size": size} for size in sizes}
        ways[f"other dictionaries, batches of {shuffled_size}"] = {"size": shuffled_size, "dictionaries": seed}
        if budget:  # restarts as between the batches of a stream on Spark
            ways["batches of 101 and restarts"] = {"size": 101, "restarts": 0.2}
        title, text_of = f"# seed {seed}, output {output}, {budget}", case_text(f"seed_{seed}", text, table.schema)
        answer_of = partial(answer_of_rows, query, output, table.schema, budget)
        for name, way in ways.items():
            answer_this_way = partial(answer_of_rows, query, output, table.schema, budget, **way)
            names = (name, "at once")
            fail_if_different_on_rows(table.to_pylist(), title, answer_this_way, answer_of, names, text_of)
    cases.expect(seen, "an engine of these")


def answer_of_rows(
    query: acep.Query,
    output: str,
    schema: pa.Schema,
    budget: dict[str, Any],
    rows: list[Any],
    *,
    size: int = ROWS,
    restarts: float = 0,
    dictionaries: int | None = None,
) -> Any:
    """Return what is found in rows, and the work; with the texts in other ``dictionaries``, by that seed."""
    table = pa.Table.from_pylist(rows, schema)
    table = table if dictionaries is None else shuffled(table, Random(f"dictionaries {dictionaries}"))
    return answer(query, output, table, size, restarts=restarts, **budget)[1]


@pytest.mark.parametrize(
    ("keys", "strategy", "more", "within", "work"),
    [
        (200, ANY, 10, "", 0.2),
        (3, NEXT, 37, "", 20),
        (20, ANY, 0, "WITHIN 60 EVENTS", 3),
        (1, "strict_contiguity", 0, "WITHIN 60", 0.2),
    ],
    ids=[
        "many partitions of which few wait",
        "partial matches alike, some of which become one",
        "lists that expire by position",
        "so little that the utility threshold rises for long",
    ],
)
def test_a_restart_after_each_batch_makes_no_difference(
    keys: int, strategy: str, more: int, within: str, work: float
) -> None:
    where = f"WHERE {strategy}(a, b, c) {{ [k] AND b.y > a.y + {more} }}"
    query = acep.parse(f"PATTERN SEQ(a a, b b, c c) {where} {within}", errors=2 * (strategy == "strict_contiguity"))
    table = harness.stream(6_000, 3, "a" * 12 + "b" * 7 + "c", k=keys, y=50)
    how: dict[str, Any] = {"budget": acep.Budget(work=work, estimate=0), "policy": "random", "seed": 3}
    _, expected = answer(query, "matches", table, table.num_rows, **how)
    assert expected[1][-1] > 0, "some are shed"
    assert answer(query, "matches", table, 1_000, restarts=1, **how)[1] == expected


@pytest.mark.parametrize(
    ("test", "budget"),
    in_turn(
        ["c.s = a.s AND b.x > a.x", "[k] AND c.s = a.s", "[s] AND c.x > a.x", "[s]"],
        [{}, {"budget": acep.Budget(work=1)}],
    ),
)
def test_very_many_texts_of_which_old_ones_are_forgotten(test: str, budget: dict[str, Any]) -> None:
    table = random_stream(5, 24_000, 30)
    number = np.arange(table.num_rows) // 3 + np.random.default_rng(5).integers(0, 8, table.num_rows)
    table = table.set_column(3, "s", pa.array([f"text {n}" for n in number.tolist()]))
    query = acep.parse(f"PATTERN SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ {test} }} WITHIN 40")
    for output in ("points", "matches"):
        _, expected = answer(query, output, table, table.num_rows, **budget)
        assert answer(query, output, table, 10_000, **budget)[1] == expected
        assert answer(query, output, shuffled(table, Random(5)), 500, **budget)[1] == expected


@pytest.mark.parametrize("budget", [{}, {"budget": acep.Budget(work=0.1)}], ids=["exactly", "under a budget"])
def test_comparisons_do_not_depend_on_the_codes_of_texts(budget: dict[str, Any]) -> None:
    query = acep.parse(f"PATTERN SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ c.s = a.s AND b.x > a.x }} WITHIN 150")
    table = random_stream(3, 3_000, 50)
    engine, expected = answer(query, "points", table, table.num_rows, **budget)
    assert engine == ("units+search" if budget else "search")
    assert expected[1][1] > 100
    assert (expected[1][-1] > 0) == bool(budget), "some are shed"
    for seed in range(3):
        assert answer(query, "points", shuffled(table, Random(seed)), 1_000, **budget)[1] == expected
