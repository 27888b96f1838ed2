"""The state of a Matcher as bytes: it goes on where it was, and nothing but its own bytes is taken."""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.events.batch import batch_of_events
from acep.events.records import Events
from acep.storage.snapshot import BYTES, HEADER, SIZE, VERSION, seal, unseal

QUERY = acep.parse(
    "PATTERN SEQ(A+ a[], ~N n, B b, ~C c) WHERE skip_till_any_match(a[], b) { [k] AND a[i].x >= a[i-1].x "
    "AND n.x > a[1].x AND b.x < a[a.LEN].x } WITHIN 8 HAVING count(a[]) <= 3 RETURN avg(a[].x) AS mean NON OVERLAP"
)
ROWS = {
    "ts": [1, 2, 3, 4, 5, 6, 7, 8, 20],
    "type": ["A", "A", "N", "A", "B", "B", "A", "B", "A"],
    "k": [1, 1, 1, 2, 1, 2, 1, 1, 1],
    "x": [1, 2, 0, 5, 1, 4, 7, None, 3],
}


def rows(start: int, end: int | None = None) -> dict[str, list[Any]]:
    return {name: values[start:end] for name, values in ROWS.items()}


def fed(end: int, query: acep.Query = QUERY) -> acep.Matcher:
    matcher = acep.Matcher(query)
    matcher.push(rows(0, end))
    return matcher


@pytest.mark.parametrize("cut", range(10))
def test_goes_on_where_it_was(cut: int) -> None:
    whole = acep.Matcher(QUERY)
    expected = [*whole.push(rows(0)), *whole.finish()]
    first = acep.Matcher(QUERY)
    found = [*first.push(rows(0, cut))] if cut else []
    second = acep.Matcher(QUERY)
    second.restore(first.snapshot())
    assert second.snapshot() == first.snapshot()
    found += [*second.push(rows(cut)), *second.finish()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert expected
    assert second.report.work == whole.report.work
    assert second.report.events == len(ROWS["ts"])


def test_a_restored_matcher_can_be_finished_at_once() -> None:
    first = fed(9)
    second = acep.Matcher(QUERY)
    second.restore(first.snapshot())
    assert list(second.finish()) == list(first.finish())
    with pytest.raises(acep.DataError, match="has been finished"):
        second.push(rows(8))


def test_a_composed_query_goes_on_where_it_was() -> None:
    query = acep.parse(
        "FROM (PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5 RETURN a.x AS x) AS Rise "
        "PATTERN SEQ(Rise r, Rise s) WHERE s.x >= r.x WITHIN 20"
    )
    whole = acep.Matcher(query)
    expected = [*whole.push(rows(0)), *whole.finish()]
    assert expected
    for cut in range(1, 9):
        first = fed(cut, query)
        start = acep.Matcher(query)
        found = list(start.push(rows(0, cut)))
        second = acep.Matcher(query)
        second.restore(first.snapshot())
        assert [*found, *second.push(rows(cut)), *second.finish()] == expected


def refused(data: Any, query: acep.Query = QUERY) -> str:
    """The complaint about bytes; the matcher that refuses them goes on as before."""
    matcher = fed(5, query)
    before = matcher.snapshot()
    with pytest.raises(acep.SnapshotError) as caught:
        matcher.restore(data)
    assert matcher.snapshot() == before
    return caught.value.message


def test_foreign_bytes() -> None:
    assert refused(b"") == refused(b"PAR1" * 40) == "these bytes are not a snapshot of acep"
    assert refused("text") == "a snapshot is bytes, not str"


@pytest.mark.long
def test_every_flipped_byte_is_noticed() -> None:
    matcher = fed(5)
    data = matcher.snapshot()
    for i in range(len(data)):
        if i not in (10, 11):  # two reserved bytes
            with pytest.raises(acep.SnapshotError):
                matcher.restore(data[:i] + bytes([data[i] ^ 0x40]) + data[i + 1 :])
    assert matcher.snapshot() == data


def test_every_truncation_is_noticed() -> None:
    matcher = fed(5)
    data = matcher.snapshot()
    for i in range(0, len(data), 7):
        with pytest.raises(acep.SnapshotError):
            matcher.restore(data[:i])
    assert matcher.snapshot() == data
    assert "damaged" in refused(data + b"\0")


def test_another_query() -> None:
    data = fed(5).snapshot()
    other = acep.parse(QUERY.text.replace("WITHIN 8", "WITHIN 9"))
    assert "belongs to another query" in refused(data, other)


OTHERWISE: list[tuple[Any, dict[str, Any], Any, dict[str, Any], str]] = [
    (QUERY, {"lateness": 3}, QUERY, {}, "taken of this query with lateness=3, and here it has lateness=None"),
    (QUERY, {}, QUERY, {"lateness": "inf"}, "with lateness=None, and here it has lateness='inf'"),
    (QUERY, {"lateness": 3}, QUERY, {"lateness": 4}, "with lateness=3, and here it has lateness=4"),
    (QUERY, {"lateness": 3}, QUERY, {"lateness": 3, "speculation": 2}, "speculation=0, and here it has speculation=2"),
    (
        QUERY,
        {"lateness": 3, "id": "x"},
        QUERY,
        {"lateness": 3, "id": "x", "op": "k"},
        "with op=None, and here it has op='k'",
    ),
    (
        QUERY,
        {"seq": "x", "seq_gaps": True},
        QUERY,
        {"seq": "x", "seq_gaps": 1},
        "seq_gaps=0, and here it has seq_gaps=1",
    ),
    (QUERY, {}, QUERY, {"dynamic": True}, "with dynamic=False, and here it has dynamic=True"),
    (QUERY, {}, QUERY, {"ts": "when"}, "with ts='ts', and here it has ts='when'"),
    (QUERY, {}, QUERY, {"unit": "s"}, "with unit=None, and here it has unit='s'"),
    (QUERY, {}, QUERY, {"budget": acep.Budget(errors=1)}, "with errors=0, and here it has errors=1"),
    (QUERY, {"budget": acep.Budget(work=3)}, QUERY, {}, "a budget that bounds work, and here it bounds nothing"),
    (QUERY, {}, QUERY, {"budget": acep.Budget(memory="16 MB")}, "that bounds nothing, and here it bounds memory"),
    (QUERY, {}, [QUERY], {}, "the snapshot is of one query alone, and here is a list of 1"),
    (
        {"up": QUERY},
        {},
        {"down": QUERY},
        {},
        "of queries with the names 'up', and here is queries with the names 'down'",
    ),
]


@pytest.mark.parametrize(("query", "options", "other", "others", "message"), OTHERWISE)
def test_another_option_is_named(
    query: Any, options: dict[str, Any], other: Any, others: dict[str, Any], message: str
) -> None:
    first = acep.Matcher(query, **options)
    if options.get("seq") is None and options.get("id") is None:
        first.push(rows(0, 5))
    second = acep.Matcher(other, **others)
    with pytest.raises(acep.SnapshotError) as caught:
        second.restore(first.snapshot())
    assert message in caught.value.message
    assert caught.value.code == "state_other"
    assert caught.value.hint


def test_a_snapshot_that_does_not_say_its_options_is_of_another_query() -> None:
    """Those of earlier versions do not."""
    first = fed(5)
    tables = first._tables
    payload = unseal(first.snapshot(), tables.fingerprint)
    for origin in ({}, {"origin": None}, {"origin": {"queries": [], "options": 3}}):
        old = seal({name: value for name, value in payload.items() if name != "origin"} | origin, tables.fingerprint)
        with pytest.raises(acep.SnapshotError, match="another query, or to a stream with other columns"):
            acep.Matcher(QUERY, lateness=3).restore(old)
        second = acep.Matcher(QUERY)
        second.restore(old)
        assert list(second.finish()) == list(fed(5).finish())


def test_another_version() -> None:
    data = fed(5).snapshot()
    assert "format version 9" in refused(data[:8] + (9).to_bytes(2, "little") + data[10:])


def sealed(version: int, body: bytes) -> bytes:
    """A body under a header that fits it, of a state of query "q"."""
    fields = list(HEADER.unpack_from(seal(None, "q")))
    checksum = mmh3.hash_bytes(body) if version >= 4 else hashlib.blake2b(body, digest_size=16).digest()
    fields[1], fields[4], fields[5] = version, checksum, len(body)
    return HEADER.pack(*fields) + body


def test_earlier_versions_are_read() -> None:
    text = b'[1,{"\\u0000bytes":2}]'
    content = SIZE.pack(len(text)) + text + b"xy"
    packed = SIZE.pack(len(content)) + pa.Codec("lz4_raw").compress(content, asbytes=True)
    assert unseal(sealed(2, zlib.compress(content)), "q") == [1, b"xy"]
    assert unseal(sealed(3, packed), "q") == unseal(sealed(VERSION, packed), "q") == [1, b"xy"]


def test_a_small_file_that_unpacks_to_much() -> None:
    """Only what is read is unpacked, and what is not JSON is refused."""
    many = b"[" * 10_000_000
    packed = pa.Codec("lz4_raw").compress(many, asbytes=True)
    for version, body in ((2, zlib.compress(many)), (VERSION, SIZE.pack(len(many)) + packed)):
        with pytest.raises(acep.SnapshotError, match="cannot be read"):
            unseal(sealed(version, body), "q")
    for size, said in ((2**33, "larger than 4 GiB"), (2**31, "cannot be read"), (5, "cannot be read")):
        with pytest.raises(acep.SnapshotError, match=said):
            unseal(sealed(VERSION, SIZE.pack(size) + packed), "q")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        found += [p for k, v in value.items() for p in places(v, (*path, k))]
    elif isinstance(value, list):
        found += [p for i, v in enumerate(value) for p in places(v, (*path, i))]
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], new)
    return copied


@pytest.mark.parametrize(
    "wrong", [{BYTES: 3}, {BYTES: 1}, {BYTES: -1}, {BYTES: 2**70}, {BYTES: True}, {BYTES: None}, {BYTES: 0, "x": 1}]
)
def test_bytes_that_are_not_there_are_refused(wrong: Any) -> None:
    assert unseal(seal([b"", b"ab", [b"c"]], "q"), "q") == [b"", b"ab", [b"c"]]
    with pytest.raises(acep.SnapshotError, match="cannot be read"):
        unseal(seal([wrong, b"ab"], "q"), "q")


@pytest.mark.parametrize("content", [b"", SIZE.pack(2**63), SIZE.pack(3) + b"{}", SIZE.pack(2) + b"{}x", SIZE.pack(0)])
def test_content_of_another_size_is_refused(content: bytes) -> None:
    packed = pa.Codec("lz4_raw").compress(content, asbytes=True)
    for version, body in ((2, zlib.compress(content)), (VERSION, SIZE.pack(len(content)) + packed)):
        with pytest.raises(acep.SnapshotError, match="cannot be read"):
            unseal(sealed(version, body), "q")


@given(st.data())
def test_a_state_of_another_form_is_refused_or_works(data: st.DataObject) -> None:
    """A well sealed state with something else anywhere in it: a clear error, or a state that goes on."""
    matcher = fed(6)
    stream = matcher._tables.stream
    assert stream is not None
    payload = unseal(stream.snapshot(), stream.fingerprint)
    path = data.draw(st.sampled_from(places(payload)))
    broken = replaced(payload, path, data.draw(JSON))
    try:
        other = type(stream).restore(stream.plans, seal(broken, stream.fingerprint))
    except acep.SnapshotError:
        return
    events = Events(ts=[8, 9, 20], types=["A", "B", "A"], ids=[6, 7, 8], columns={"k": [1, 1, 1], "x": [7, 3, 3]})
    with contextlib.suppress(acep.AcepError):
        other.push(batch_of_events(events, stream.plans[0].schema))
        other.snapshot()
        other.finish()
