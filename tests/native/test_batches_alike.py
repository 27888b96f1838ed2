"""How a stream falls into batches, and the order of dictionaries, make no difference: neither to what is found nor to
the work that is counted, exactly and under a budget of work, whatever the policy and the engine."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.budget.policies import POLICIES
from acep.runtime.options import StreamOptions
from acep.runtime.table_stream import TableStream

ROWS = 700
OUTPUTS = ("matches", "points", "bundles", "count")
ENGINES = {"windows+nodes", "windows+dominance", "nodes", "dominance", "merged", "points", "bundles", "count"}
UNDER_BUDGET = {one if "nodes" in one or "dominance" in one else f"units+{one}" for one in ENGINES}

PREDICATES = (
    "b.s = a.s", "c.s = a.s", "c.s != b.s", "c.x > a.x", "b.x > a.x", "c.t = b.t", "b.s > a.s", "c.f < a.f",
    "c.t != a.t", "b.s LIKE 'a%'",
)  # fmt: skip


def random_query(rng: Random) -> str:
    """A query whose predicates look at texts mostly."""
    shape = rng.choice(("A a, B b, C c", "A a, B b, B c", "A a, B+ b[], C c", "A a, (B b | D b), C c"))
    any_match = "skip_till_any_match"
    strategy = rng.choice((any_match, any_match, "skip_till_next_match", "partition_contiguity"))
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


def random_stream(rng: Random, rows: int, texts: int) -> pa.Table:
    draw = np.random.default_rng(rng.randrange(2**32))
    words = np.array([f"{chr(97 + n % 5)}{n * 7919 % 1000}-{n}" for n in range(texts)])
    pick = lambda many: words[draw.integers(0, many, rows)]  # noqa: E731
    return pa.table(
        {
            "ts": np.sort(draw.integers(0, rows, rows)),
            "type": draw.choice(list("AAABBCCD"), rows),
            "k": pick(min(texts, 6)),
            "s": pick(texts),
            "t": pick(min(texts, 4)),
            "x": draw.integers(0, 100, rows),
            "f": draw.random(rows).round(2),
        }
    )


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


class Way:
    """One way to give a stream to a query."""

    def __init__(self, query: str, output: str, **how: Any) -> None:
        self.query, self.output, self.how = query, output, how

    def run(self, table: pa.Table, size: int, restarts: Random | None = None) -> tuple[str, Any]:
        """The engine, and what was found and done; with ``restarts`` some batches come after a restart."""
        tables = TableStream(acep.parse(self.query), StreamOptions(**self.how))
        tables.prepare(table.schema, self.output)
        found: list[Any] = []

        def take(parts: Any) -> None:
            assert tables.stream is not None
            found.extend((f.key, f.start, f.end, str(f.error), f.bindings) for f in parts[0])
            counted = tables.stream.counted(0)
            found.extend([counted] if isinstance(counted, int) else map(tuple, counted.rows()) if counted else [])

        for start in range(0, table.num_rows, size):
            if restarts and restarts.random() < 0.1:
                saved, arrow = tables.stream.snapshot(), tables.stream
                tables.stream = type(arrow).restore(tables.plans, saved, output=self.output, limits=tables.limits)
            take(tables.push(table.slice(start, size)))
        take(tables.end())
        assert tables.stream is not None
        counts = tables.stream.counts
        if self.output == "count" and all(isinstance(one, int) for one in found):
            found = [sum(found)]
        if self.output == "bundles" and found and len(found[0]) == 6:
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


def ways(seed: int) -> Iterator[Way]:
    """An exact run, and one under each policy, of one query."""
    rng = Random(seed)
    query, output = random_query(rng), rng.choice(OUTPUTS)
    yield Way(query, output)
    for name in POLICIES:
        if name != "trained-on-test":
            yield Way(query, output, budget=acep.Budget(work=rng.choice((0.5, 2, 6))), policy=name, seed=seed)


@pytest.mark.parametrize("chunk", range(2))
def test_batches_and_dictionaries_make_no_difference(chunk: int, cases: Any) -> None:
    seen = set()
    for seed in range(chunk, 2 * cases(4), 2):
        rng = Random(f"stream {seed}")
        table = random_stream(rng, ROWS, rng.choice((3, 30, 300)))
        for way in ways(seed):
            engine, whole = way.run(table, ROWS)
            seen.add(engine)
            for size in (7, 500) if rng.random() < 0.9 else (1,):
                assert way.run(table, size)[1] == whole, (seed, way.how, size)
            assert way.run(shuffled(table, rng), rng.choice((ROWS, 100)))[1] == whole, (seed, way.how)
            if way.how:  # a restart, as between the batches of a stream on Spark
                assert way.run(table, 101, restarts=rng)[1] == whole, (seed, way.how)
    assert seen & ENGINES
    assert seen & UNDER_BUDGET


@pytest.mark.parametrize("test", ["c.s = a.s AND b.x > a.x", "[k] AND c.s = a.s", "[s] AND c.x > a.x", "[s]"])
def test_so_do_very_many_texts_of_which_old_ones_are_forgotten(test: str) -> None:
    rng = Random(5)
    table = random_stream(rng, 24_000, 30)
    number = np.arange(table.num_rows) // 3 + np.random.default_rng(5).integers(0, 8, table.num_rows)
    table = table.set_column(3, "s", pa.array([f"text {n}" for n in number.tolist()]))
    query = f"PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) {{ {test} }} WITHIN 40"
    for how in ({}, {"budget": acep.Budget(work=1)}):
        for output in ("points", "matches"):
            way = Way(query, output, **how)
            whole = way.run(table, table.num_rows)[1]
            assert way.run(table, 10_000)[1] == whole
            assert way.run(shuffled(table, rng), 500)[1] == whole


def test_the_codes_of_texts_do_not_tell_what_is_compared() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { c.s = a.s AND b.x > a.x } WITHIN 150"
    table = random_stream(Random(3), 3_000, 200)
    for how in ({}, {"budget": acep.Budget(work=4)}):
        way = Way(query, "points", **how)
        engine, whole = way.run(table, table.num_rows)
        assert engine == "windows+dominance"
        assert whole[1][1] > 5_000
        for seed in range(3):
            assert way.run(shuffled(table, Random(seed)), 1_000)[1] == whole
