"""Define the scalar functions of network addresses, IPv4 and IPv6."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from acep.errors import QueryError
from acep.functions.scalar_function import Example, Fixed, ScalarFunction

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

__all__ = ["ADDRESSES", "check_network", "ip_in"]

_NETWORK = re.compile(r"[0-9a-fA-F.:]+/[0-9]+")  # no masks and no zones, which would be read as well


@lru_cache(maxsize=1_000)
def _network(text: str) -> IPv4Network | IPv6Network:
    """Return a network in CIDR notation. Raises :class:`ValueError` for another text."""
    from ipaddress import ip_network  # most queries look at no address

    if not _NETWORK.fullmatch(text):
        raise ValueError(f"{text!r} is not in CIDR notation")
    return ip_network(text)


def check_network(text: str) -> None:
    """Raise :class:`QueryError` (without a place) unless a text is a network in CIDR notation.

    >>> check_network("10.1.2.3/8")
    Traceback (most recent call last):
    acep.errors.QueryError: `10.1.2.3/8` is an address within a network [query_type]
    hint: the network is 10.0.0.0/8
    """
    from ipaddress import ip_network

    try:
        _network(text)
    except ValueError:
        what, hint = (
            "no network",
            "write an address and a number of bits, as in 10.0.0.0/8 or 2001:db8::/32",
        )
        excerpt = " ".join(text[:50].split())
        if _NETWORK.fullmatch(text):
            with suppress(ValueError):
                what, hint = "an address within a network", f"the network is {ip_network(text, strict=False)}"
        raise QueryError(f"`{excerpt}` is {what}", hint=hint, code="query_type") from None


def ip_in(text: str, network: str) -> bool:
    """Return whether an address is in a network; an address of the other version is not.

    Raises :class:`ValueError` for a text that is no address.

    >>> ip_in("10.1.2.3", "10.0.0.0/8"), ip_in("::1", "10.0.0.0/8")
    (True, False)
    """
    from ipaddress import ip_address

    return ip_address(text) in _network(network)


ADDRESSES = (
    ScalarFunction(
        "ip_in", ("text", "text"), "condition",
        "whether an IPv4 or IPv6 address is in a constant network in CIDR notation; null for what is no address",
        Example("ip_in(a.ip, '10.0.0.0/8')", {"ip": "10.1.2.3"}, True), ip_in,
        fixed={1: Fixed("a network in quotes", str, check_network)},
    ),
)  # fmt: skip
