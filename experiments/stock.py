"""The template from which SASE+ (2008), section 6, makes its queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["LOW", "ROUND", "StockQuery"]

ROUND = 500  # a[1].price is a multiple of this
LOW = 150  # b.volume is below this

ITERATORS = {"p1": None, "p2": "a[i].price > a[i-1].price", "p3": "a[i].price > min(a[..i-1].price)"}
STRATEGIES = {"s2": "partition_contiguity", "s3": "skip_till_next_match"}


@dataclass(frozen=True)
class StockQuery:
    """``PATTERN SEQ(Stock+ a[], Stock b)`` with the parameters of the paper's Table 1.

    ``iterator``: what each later event of ``a`` must satisfy. ``strategy``: s2 or s3, as the paper calls them.
    ``window``: in events of a symbol. ``third``: with the component ``c`` of experiment 4 (the paper's p3*).
    """

    iterator: Literal["p1", "p2", "p3"] = "p2"
    strategy: Literal["s2", "s3"] = "s3"
    window: int = 500
    third: bool = False
    non_overlap: bool = False

    @property
    def name(self) -> str:
        """Return the name as in the paper: predicate, then strategy."""
        return f"{self.iterator}{'star' if self.third else ''}{self.strategy}"

    def text(self) -> str:
        """Return the query in SASE+ text.

        >>> print(StockQuery().text())
        PATTERN SEQ(Stock+ a[], Stock b)
        WHERE skip_till_next_match(a[], b) {
            [symbol] AND a[1].price % 500 = 0 AND a[i].price > a[i-1].price AND b.volume < 150
        }
        WITHIN 500 EVENTS
        """
        conditions = ["[symbol]", f"a[1].price % {ROUND} = 0", ITERATORS[self.iterator], f"b.volume < {LOW}"]
        if self.third:
            conditions += ["c.price > a[1].price", "c.price < a[a.LEN].price"]
        variables = "a[], b, c" if self.third else "a[], b"
        return (
            f"PATTERN SEQ(Stock+ a[], Stock b{', Stock c' if self.third else ''})\n"
            f"WHERE {STRATEGIES[self.strategy]}({variables}) {{\n"
            f"    {' AND '.join(c for c in conditions if c)}\n"
            f"}}\nWITHIN {self.window} EVENTS" + ("\nOUTPUT NON OVERLAP" if self.non_overlap else "")
        )
