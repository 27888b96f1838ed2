"""The hand-written automata of examples/automata, each on a stream where it finds something."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.native.compiled import why_not
from tests.automaton.test_graph import told
from tests.case_counts import CaseCounts
from tests.random_automata import accepted

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "automata"
ENGINES = ["native", "reference"] if why_not() is None else ["reference"]
FIGURE_2 = [-3, -1, -1, 1, 1, -1, 1]  # e1 to e5, e8 and e6 of the paper's Figure 2, as changes in percent


def automaton(name: str) -> acep.Automaton:
    return acep.Automaton.from_toml(FOLDER / f"{name}.toml")


def walk(changes: list[float], start: float = 100.0) -> list[dict[str, Any]]:
    """Prices that change by these amounts, in percent."""
    rows, price = [], start
    for ts, change in enumerate(changes):
        before, price = price, price * (1 + change / 100)
        rows.append({"ts": ts, "symbol": "S", "price": price, "change": float(change), "before": before})
    return rows


def found(name: str, rows: list[dict[str, Any]], engine: str = "auto") -> acep.Matches:
    kind = "type" if "type" in rows[0] else None
    return acep.match(pa.Table.from_pylist(rows), automaton(name), type=kind, engine=engine)


def values(name: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """First and last time of each match, and its registers."""
    return [(m.start, m.end, *list(m.values.values())[1:]) for m in found(name, rows)]


def typed(*rows: tuple[Any, ...], columns: tuple[str, ...] = ("ts", "type")) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def letters(text: str) -> list[dict[str, Any]]:
    return typed(*enumerate(text))


def test_q1_finds_the_match_of_the_papers_example() -> None:
    rows = walk(FIGURE_2)
    assert values("q1", rows) == [(0, 6, 0, 2)]
    assert found("q1", rows)[0].bindings == {"drop": (0,), "events": (1, 2, 3, 4, 5, 6)}
    assert values("q1", walk(FIGURE_2[:-1])) == []
    assert values("q1", walk([-1, *FIGURE_2[1:]])) == []


def test_an_event_may_extend_many_partial_matches() -> None:
    rows = walk([-3.0] * 40 + [1.0] * 5 + [-1.0] * 2 + [1.0] * 60)
    # A match that began at t has 39 - t + 2 falls after its first event; it ends once there are as many rises.
    wanted = [(t, 47 + 36 - t - 1) for t in range(35, -1, -1)]
    for engine in ENGINES:
        assert [(one.start, one.end) for one in found("q1", rows, engine)] == wanted


def test_q2_counts_the_shapes_until_the_price_is_regained() -> None:
    assert values("q2", walk([1, -3, -1, 1, -1, 5])) == [(1, 5, 101.0, 2)]
    assert values("q2", walk([1, -3, -1, 1, -1, 1])) == []


def test_q3_finds_eight_ticks() -> None:
    ticks = [1, -1, -1, 1, -1, 1, 1, -1]
    assert values("q3", walk([-1, *ticks, *ticks])) == [(1, 8), (9, 16)]


def test_head_and_shoulders() -> None:
    prices = [100, 110, 104, 120, 105, 112, 99]
    rows = [
        {"ts": ts, "price": float(price), "change": float(price - (prices[ts - 1] if ts else 99))}
        for ts, price in enumerate(prices)
    ]
    assert [(m.start, m.end, m.values["left"], m.values["head"]) for m in found("head_and_shoulders", rows)] == [
        (0, 6, 110.0, 120.0)
    ]
    rows[5]["price"], rows[5]["change"] = 121.0, 16.0  # the right shoulder is above the head
    assert not found("head_and_shoulders", rows)


def test_as_many_b_as_a() -> None:
    short, whole = {"a": (1,), "b": (2,)}, {"a": (0, 1), "b": (2, 3)}
    assert [m.bindings for m in found("as_many", letters("aabbb"))] == [short, whole]
    assert not found("as_many", letters("baa"))


def test_an_uncertain_stream_gives_probabilities() -> None:
    columns = ("ts", "tag", "type", "prob")
    rows = typed((1, 7, "shelf", 0.9), (2, 7, "till", 0.2), (3, 7, "exit", 0.9), columns=columns)
    (match,) = found("uncertain", rows)
    assert match.values["prob"] == pytest.approx(0.9 * 0.8 * 0.9)
    assert match.bindings == {"shelf": (0,), "mistaken": (1,), "exit": (2,)}
    rows[1]["prob"] = 0.99  # so it is no mistake
    assert not found("uncertain", rows)


def test_a_missing_step_is_filled_in() -> None:
    columns = ("ts", "book", "type")
    rows = typed((1, 7, "taken"), (5, 7, "returned"), (9, 7, "shelved"), (20, 8, "taken"), columns=columns)
    assert values("fill_in", rows) == [(1, 9, "lent", 3.0, 5)]
    rows = typed((1, 7, "taken"), (3, 7, "lent"), (5, 7, "returned"), (9, 7, "shelved"), columns=columns)
    assert not found("fill_in", rows)


def requests(many: int, rng: Random) -> list[dict[str, Any]]:
    """Requests to some hosts, with an intrusion every now and then."""
    rows: list[dict[str, Any]] = []
    for _ in range(many):
        host, address = rng.randrange(4), f"10.0.0.{rng.randrange(9)}"
        attack = rng.random() < 0.1
        tries = [("/login", 401)] * rng.randrange(3, 6) + [("/login", 200)] if attack else [("/", 200)]
        for path, status in tries:
            rows.append({"ts": len(rows), "host": host, "address": address, "path": path, "status": status})
    return rows


def test_an_intrusion_is_noticed_between_other_requests() -> None:
    rows = requests(40, Random(3))
    first = next(m for m in found("intrusion", rows) if m.values["tries"] == 3)
    assert len(first.bindings["refused"]) == 3
    other = dict(rows[first.bindings["refused"][1]], address="10.9.9.9")
    rows.insert(first.bindings["refused"][1], other)  # it does not disturb
    assert first.values in [m.values for m in found("intrusion", [row | {"ts": ts} for ts, row in enumerate(rows)])]


@pytest.mark.long
def test_a_thousand_patterns_in_one_pass() -> None:
    rows = requests(300, Random(5))
    text = (FOLDER / "intrusion.toml").read_text(encoding="utf-8")
    patterns = [text.replace("/login", f"/{n}").replace("r.tries >= 3", "r.tries >= 1") for n in range(1000)]
    tries = [row | {"path": f"/{n % 1000}", "status": status} for n, row in enumerate(rows) for status in (401, 200)]
    rows = [row | {"ts": ts} for ts, row in enumerate(tries)]
    table = pa.Table.from_pylist(rows)
    together = acep.match(table, [acep.Automaton.from_toml(one) for one in patterns], type=None)
    assert sum(map(len, together)) == len(rows) // 2
    for number in (0, 7, 421):
        alone = acep.match(table, acep.Automaton.from_toml(patterns[number]), type=None)
        assert list(together[number]) == list(alone) != []


def test_an_a_without_an_answer() -> None:
    rows = typed((0, "A"), (10, "x"), (200, "B"), (250, "A"), (400, "x"), (551, "x"))
    assert [(m.bindings, m.values["over"]) for m in found("no_answer", rows)] == [({"a": (3,), "over": (5,)}, 550)]


COLUMNS = {
    "symbol": ("S", "T"), "price": (98.0, 99.5, 101.0, 104.0), "before": (99.0, 101.0), "change": (-3.0, -1.0, 1.0),
    "tag": (1, 2), "prob": (0.2, 0.9), "book": (1, 2), "host": (1, 2), "address": ("a", "b"), "status": (200, 401),
    "path": ("/login", "/login", "/"),
}  # fmt: skip
TYPES = {
    "as_many": "ab", "uncertain": ("shelf", "exit", "till"), "fill_in": ("taken", "lent", "returned", "shelved"),
    "no_answer": "ABx",
}  # fmt: skip


NAMES = sorted(file.stem for file in FOLDER.glob("*.toml"))


def random_rows(name: str, seed: int) -> list[dict[str, Any]]:
    """Sixty events for an automaton."""
    rng = Random(seed)
    return [
        {"ts": 40 * ts if name == "no_answer" else ts, "type": rng.choice(TYPES.get(name, "-"))}
        | {column: rng.choice(drawn) for column, drawn in COLUMNS.items()}
        for ts in range(60)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_random_streams_give_what_the_definition_accepts(name: str, cases: CaseCounts) -> None:
    one = automaton(name)
    for seed in range(cases(30)):
        rows = random_rows(name, seed)
        wanted = accepted(one, rows)
        for engine in ENGINES:
            assert told(acep.match(pa.Table.from_pylist(rows), one, engine=engine)) == wanted


# Its prices and changes must fit together.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "head_and_shoulders"])
def test_some_random_streams_have_matches(name: str) -> None:
    tables = (pa.Table.from_pylist(random_rows(name, seed)) for seed in range(30))
    assert any(len(acep.match(table, automaton(name))) for table in tables)
