"""ip_in: what an address and a network are, on each engine and in clauses."""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
ENGINES = ("native", "reference")
NO_NETWORK = r"is (no network|an address within a network)"
BITS = {4: 32, 6: 128}


@st.composite
def networks(draw: st.DrawFn) -> tuple[Address, int]:
    """The first address of a network, and its number of bits."""
    address = draw(st.ip_addresses())
    bits = draw(st.integers(0, BITS[address.version]))
    free = BITS[address.version] - bits
    return type(address)(int(address) >> free << free), bits


@st.composite
def near_addresses(draw: st.DrawFn, first: Address, bits: int) -> str:
    """An address in a network, beside it, of anywhere, or spelled in another way."""
    size = 1 << (BITS[first.version] - bits)
    place = int(first) + draw(st.sampled_from([0, size - 1, size, -1]) | st.integers(-size, size))
    highest = (1 << BITS[first.version]) - 1
    near = type(first)(min(max(place, 0), highest))
    address = draw(st.just(near) | st.ip_addresses())
    return draw(st.sampled_from([str(address), address.exploded, str(address).upper()]))


def is_inside(text: str, first: Address, bits: int) -> bool:
    address = ipaddress.ip_address(text)
    free = BITS[first.version] - bits
    return address.version == first.version and int(address) >> free == int(first) >> free


@given(st.data())
def test_all_engines_agree_with_arithmetic(data: st.DataObject) -> None:
    first, bits = data.draw(networks())
    texts = data.draw(st.lists(near_addresses(first, bits) | st.none(), min_size=1, max_size=8))
    network = f"{first}/{bits}"
    expected = [None if text is None else is_inside(text, first, bits) for text in texts]
    assert expected == [None if t is None else ipaddress.ip_address(t) in ipaddress.ip_network(network) for t in texts]
    table = pa.table({"ts": range(len(texts)), "type": ["A"] * len(texts), "ip": pa.array(texts, pa.string())})
    query = acep.parse("PATTERN A a RETURN ip_in(a.ip, :network) AS v", parameters={"network": network})
    for engine in ENGINES:
        assert [match.values["v"] for match in acep.match(table, query, engine=engine)] == expected
    clause = f"ORDER BY ts MEASURES IP_IN(A.ip, '{network}') AS v PATTERN (A)"
    assert acep.match_recognize(table, clause)["v"].to_pylist() == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text", ["", " 10.0.0.1", "10.0.0.1 ", "10.0.0.01", "10.0.0", "10.0.0.256", "10.0.0.1:80", "10.0.0.0/8", "[::1]",
             "x", "1" * 5000, "167772161", "\u0661\u0660.0.0.1"],
)  # fmt: skip
def test_what_is_no_address_is_null(text: str, engine: str) -> None:
    for network in ("0.0.0.0/0", "::/0"):
        query = f"PATTERN A a WHERE ip_in(a.ip, '{network}') IS NULL"
        assert acep.match({"ts": [1], "type": ["A"], "ip": [text]}, query, engine=engine).count() == 1


@pytest.mark.parametrize(
    "network",
    ["", "x", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/ 8", "10.0.0.0/255.0.0.0", "10.0.0.1/8", "::/129",
     "fe80::%1/64", "10.0.0.0/8/8", "010.0.0.0/8", "10.0.0.0/\u0668"],
)  # fmt: skip
def test_what_is_no_network_is_refused_with_its_place(network: str) -> None:
    with pytest.raises(acep.QueryError, match=NO_NETWORK) as caught:
        acep.parse("PATTERN A a WHERE ip_in(a.ip, :network)", parameters={"network": network})
    assert (caught.value.line, caught.value.column) == (1, 31)
    assert caught.value.hint
    rows = {"ts": [1], "ip": ["10.0.0.1"]}
    with pytest.raises(acep.QueryError, match=NO_NETWORK):
        acep.match_recognize(rows, f"ORDER BY ts MEASURES IP_IN(A.ip, '{network}') AS v PATTERN (A)")


def test_in_a_clause_the_network_may_be_a_column() -> None:
    rows = {
        "ts": [1, 2, 3, 4],
        "ip": ["10.0.0.1"] * 3 + [None],
        "net": ["10.0.0.0/8", "11.0.0.0/8", "10.0.0.1/8", "::/0"],
    }
    clause = "ORDER BY ts MEASURES IP_IN(A.ip, A.net) AS v PATTERN (A)"
    assert acep.match_recognize(rows, clause) == {"v": [True, False, None, None]}


@pytest.mark.parametrize("engine", ENGINES)
def test_addresses_that_a_stream_brings(engine: str) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE ip_in(a.ip, '10.0.0.0/8') AND NOT ip_in(b.ip, '10.0.0.0/8')"
    rows = [("A", "10.0.0.1"), ("B", None), ("B", "10.9.9.9"), ("B", "11.0.0.1"), ("A", "10.0.0.2"), ("B", "::1")]
    matcher = acep.Matcher(query, engine=engine)
    batches = [matcher.push([{"ts": ts, "type": type, "ip": ip}]) for ts, (type, ip) in enumerate(rows)]
    assert [match.bindings for batch in batches for match in batch] == [
        {"a": (0,), "b": (3,)}, {"a": (0,), "b": (5,)}, {"a": (4,), "b": (5,)}
    ]  # fmt: skip
