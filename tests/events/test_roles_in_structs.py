"""Time, type, id, seq and key may be fields of structs, and ids of any type of text or integer, in every command."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.explain.why import why
from acep.tuning.many import why_many
from tests.thinned import thinned_product

N = 64
FIELDS = {
    "ts": list(range(N)),
    "type": [("a", "b")[row % 2] for row in range(N)],
    "id": [f"x{row}" for row in range(N)],
    "seq": list(range(N)),
    "k": [row // 16 for row in range(N)],
    "v": [row % 5 for row in range(N)],
}
FLAT = pa.table(FIELDS)
NESTED = pa.table({"e": pa.StructArray.from_arrays([column.combine_chunks() for column in FLAT], FLAT.column_names)})
ROLES = ("ts", "type", "id", "seq")
OPTIONAL = ("id", "seq")
QUERY = "PATTERN SEQ(a p, b q) WHERE [{0}k] AND q.{0}v > p.{0}v + {1} WITHIN 9"

Ask = Callable[..., Any]
QUESTIONS: dict[str, Ask] = {
    "match": lambda table, query, key, **roles: [*acep.match(table, query, **roles)],
    "events": lambda table, query, key, **roles: [
        found.events(match).num_rows for found in [acep.match(table, query, **roles)] for match in found
    ],
    "lint": lambda table, query, key, **roles: acep.lint(table, query, **roles),
    "why": lambda table, query, key, **roles: why(table, query, key=key, **roles),
    "why_many": lambda table, query, key, **roles: why_many(table, query, **roles),
    "tune": lambda table, query, key, **roles: acep.tune(table, query, **roles),
}


def said(answer: object) -> str:
    """The text of an answer, without the names of structs; `acep lint` points into the text of the query."""
    lines = str(answer).replace("e.", "").splitlines()
    lines = [re.sub(r"\(line \d+, column \d+\)", "", line) for line in lines if set(line) - {" ", "^"}]
    return "\n".join(line for line in lines if " not measured" not in line)


@pytest.mark.parametrize("least", [1, 99], ids=["with matches", "without"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_role_may_be_a_field_of_a_struct(question: str, least: int) -> None:
    ask = QUESTIONS[question]
    for size in range(len(OPTIONAL) + 1):
        for named in itertools.combinations(OPTIONAL, size):
            roles = ["ts", "type", *named]
            flat = ask(FLAT, QUERY.format("", least), {"k": 1}, **{role: role for role in roles})
            nested = ask(NESTED, QUERY.format("e.", least), {"e.k": 1}, **{role: f"e.{role}" for role in roles})
            assert said(nested) == said(flat)


@pytest.mark.parametrize("command", [["match"], ["lint"], ["why", "--key", "1"], ["why", "--many"], ["tune"]])
def test_each_command_takes_a_field_of_a_struct(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command
    printed = []
    for form, table, prefix in (("flat", FLAT, ""), ("nested", NESTED, "e.")):
        path = tmp_path / f"{form}.parquet"
        pq.write_table(table, path)
        roles = [word for role in ROLES for word in (f"--{role}", prefix + role)]
        assert main([name, QUERY.format(prefix, 1), str(path), *options, *roles]) == 0
        printed.append(said(capsys.readouterr().out))
    assert printed[0] == printed[1]


def encoded(ids: list[Any], held: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(held):
        return pa.array(ids, held.value_type).dictionary_encode()
    if pa.types.is_run_end_encoded(held):
        return pc.run_end_encode(pa.array(ids, held.value_type))
    return pa.array(ids).cast(held)


ID_TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()),
    pa.run_end_encoded(pa.int32(), pa.string()), pa.int8(), pa.uint64(), pa.dictionary(pa.int32(), pa.int64()),
]  # fmt: skip


@pytest.mark.parametrize(("question", "held"), thinned_product([*QUESTIONS], ID_TYPES, every=5))
def test_ids_have_any_type_of_text_or_integer(question: str, held: pa.DataType) -> None:
    as_text = "string" in str(held)
    ids: list[Any] = FIELDS["id"] if as_text else FIELDS["ts"]
    ask = QUESTIONS[question]
    table = FLAT.set_column(FLAT.schema.get_field_index("id"), "id", pa.chunked_array([encoded(ids, held)]))
    plain = FLAT.set_column(FLAT.schema.get_field_index("id"), "id", pa.array(ids))
    for least in (1, 99):
        query = QUERY.format("", least)
        assert said(ask(table, query, {"k": 1}, id="id")) == said(ask(plain, query, {"k": 1}, id="id"))


@pytest.mark.parametrize("held", [pa.string_view(), pa.run_end_encoded(pa.int32(), pa.string())], ids=str)
def test_an_id_that_comes_twice_is_a_finding_whatever_its_type(held: pa.DataType) -> None:
    ids = ["x0", *FIELDS["id"][1:-1], "x0"]
    table = FLAT.set_column(FLAT.schema.get_field_index("id"), "id", pa.chunked_array([encoded(ids, held)]))
    (finding,) = [finding for finding in acep.lint(table, QUERY.format("", 1), id="id") if finding.code == "id_twice"]
    assert "such as 'x0'" in finding.message


def test_runs_inside_a_struct_are_refused_in_one_line() -> None:
    runs = pc.run_end_encode(pa.array(FIELDS["id"]))
    table = FLAT.append_column("inner", pa.StructArray.from_arrays([runs], ["runs"]))
    with pytest.raises(acep.errors.DataError, match="rows cannot be selected from column `inner`"):
        acep.tune(table, QUERY.format("", 1))


# Elements of lists --------------------------------------------------------------------------------

FIRST = pa.ListArray.from_arrays(list(range(N + 1)), NESTED.column("e").combine_chunks())
LISTED = pa.table({"k": FIELDS["k"], "v": FIELDS["v"], "e": FIRST})


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_role_may_be_an_element_of_a_list(question: str) -> None:
    ask, query = QUESTIONS[question], QUERY.format("", 1)
    flat = ask(FLAT, query, {"k": 1}, **{role: role for role in ROLES})
    listed = ask(LISTED, query, {"k": 1}, **{role: f"e[1].{role}" for role in ROLES})
    assert said(listed).replace("e[1].", "").replace(" 'e[1]", " '") == said(flat)


@pytest.mark.parametrize(
    ("role", "values", "hint"),
    [
        ("type", [["a"], ["b"]], 'name a part of it: type="x[1]"'),
        ("type", [{"n": 1, "name": "a"}, {"n": 2, "name": "b"}], 'name a part of it: type="x.name"'),
        ("type", [[{"n": ["a"]}], [{"n": ["b"]}]], 'name a part of it: type="x[1].n[1]"'),
        ("type", [[1], [2]], "name another column with type="),
        ("ts", [[1], [2]], 'name a part of it: ts="x[1]"'),
        ("ts", [{"s": "a", "t": 1}, {"s": "a", "t": 2}], 'name a part of it: ts="x.t"'),
        ("ts", [b"1", b"2"], "name another column with ts="),
        ("seq", [[1], [2]], 'name a part of it: seq="x[1]"'),
        ("seq", [b"1", b"2"], "name another column with seq="),
        ("id", [{"no": 1}, {"no": 2}], 'name a part of it: id="x.no"'),
    ],
    ids=repr,
)
def test_what_is_said_of_a_column_that_cannot_have_a_role_works(
    role: str, values: list[Any], hint: str, tmp_path: Path
) -> None:
    columns = {"ts": [1, 2], "type": ["a", "b"], "x": values}
    table = pa.table({name: column for name, column in columns.items() if name != role})
    query = "PATTERN SEQ(a p, b q) WITHIN 9"
    pq.write_table(table, tmp_path / "x.parquet")
    for events in (table, str(tmp_path / "x.parquet")):
        with pytest.raises(acep.DataError, match="column `x` must hold") as wrong:
            acep.match(events, query, **{role: "x"})
        assert wrong.value.hint == hint
        if '"' in hint:
            part = hint.split('"')[1]
            assert len(acep.match(events, query, **{role: part})) == 1


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("value", [True, 1.0, 2, Decimal("1.0"), dt.time(1), dt.timedelta(1)], ids=repr)
def test_the_cast_that_is_proposed_for_a_role_works(role: str, value: Any, tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"ts": [1, 2], "type": ["a", "b"], "seq": [1, 2], "id": [1, 2], role: [value] * 2}
    path, query, names = tmp_path / "x.parquet", "PATTERN SEQ(a p, b q) WITHIN 9 EVENTS", {"seq": "seq", "id": "id"}
    pq.write_table(pa.table(columns), path)
    is_allowed = (role, value) in [("ts", 2), ("seq", 2), ("id", 2), ("seq", dt.timedelta(1))]
    with contextlib.nullcontext() if is_allowed else pytest.raises(acep.DataError, match="must hold") as wrong:
        acep.match(path, query, **names, duplicates="drop")
    if wrong is not None:
        cast = re.search(r'cast=\{"(\w+)": "(.*?)"\}', str(wrong.value.hint))
        assert cast is not None, wrong.value.hint
        acep.match(acep.read_events(path, cast={cast[1]: cast[2]}), query, **names, duplicates="drop")
