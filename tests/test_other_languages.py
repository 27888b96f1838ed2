"""Each row of the tables that set constructs of other languages beside ours has a query here, which finds something."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from tests.case_counts import CaseCounts
from tests.complaints import case_text, fail_if_different_on_rows
from tests.test_docs import blocks

HOWTO = Path(__file__).resolve().parents[1] / "docs/howto"
BAR = "partition_contiguity"
UP = f"PATTERN ANY+ b[] WHERE {BAR}(b[]) {{ [symbol] AND b[i].price > b[i-1].price }}"
RUN = f"PATTERN SEQ(ANY a, ANY+ b[]) WHERE {BAR}(a, b[])"
PAID = "skip_till_next_match"

# By page: the beginning of the first cell of a row, and a query that has the construct of its second cell. A row whose
# construct is not there has the nearest query. Rows about late events, new versions and the form of the result are
# tested elsewhere; here they have a plain query.
ROWS: dict[str, dict[str, str]] = {
    "from_match_recognize": {
        "`PARTITION BY symbol": "PATTERN SEQ(ANY a, ANY b) WHERE [symbol] WITHIN 1",
        "`ORDER BY": "PATTERN ANY a",
        "`PATTERN (A B+ C)`": f"PATTERN SEQ(ANY a, ANY+ b[], ANY c) WHERE {BAR}(a, b[], c) {{ [symbol] }}",
        "`DEFINE B AS B.price < PREV": f"{RUN} {{ [symbol] AND b[1].price < a.price AND b[i].price < b[i-1].price }}",
        "`PREV(A.price)` at": f"PATTERN SEQ(ANY z, ANY a) WHERE {BAR}(z, a) {{ [symbol] AND a.price > z.price }}",
        "`DEFINE B AS B.price < A": "PATTERN SEQ(ANY a, ANY b) WHERE [symbol] AND b.price < a.price WITHIN 3",
        "`DEFINE B AS B.volume": f"{RUN} {{ [symbol] AND b.volume = a.volume }}",
        "`FIRST(B": f"{UP[:-2]} AND b[b.LEN].price > b[1].price }}",
        "`AVG(B": f"{UP[:-2]} AND b[i].price > avg(b[..i-1].price) }} RETURN avg(b[].price) AS mean",
        "`COUNT(DISTINCT": f"{UP} HAVING count(DISTINCT b[].volume) > 2 AND stddev(b[].price) < 4 "
        "RETURN stddev_pop(b[].price) AS spread",
        "`MEASURES": "PATTERN ANY a RETURN a.price AS p",
        "`FINAL`": f"{UP} HAVING count(b[]) > 2 RETURN count(b[]) AS n",
        "`ONE ROW": "PATTERN ANY a",
        "`ALL ROWS": UP,
        "`AFTER MATCH SKIP PAST": f"{UP} OUTPUT LONGEST NON OVERLAP",
        "`AFTER MATCH SKIP TO NEXT": f"{UP} OUTPUT LONGEST AFTER MATCH SKIP TO NEXT EVENT",
        "`AFTER MATCH SKIP TO FIRST": f"{UP} OUTPUT LONGEST AFTER MATCH SKIP TO FIRST b",
        "`A{2,5}`": "PATTERN SEQ(ANY{2,5} a[], (ANY b, ANY c)+, ANY? d, ANY* e[], (ANY f | ANY g)) "
        f"WHERE {BAR} {{ [symbol] }} WITHIN 9",
        "`A \\| B`": f"PATTERN (ANY a | ANY b) WHERE {BAR} {{ [symbol] AND a.price > 20 AND b.price < 15 }}",
        "`PERMUTE": f"PATTERN {{ANY a, ANY b}} WHERE {BAR}(a, b) {{ [symbol] AND a.price > 20 AND b.price < 19 }}",
        "`WITHIN INTERVAL": "PATTERN SEQ(ANY a, ANY b) WHERE [symbol] WITHIN 59999 ms",
        "`A+?`": f"PATTERN SEQ(ANY a, ANY* m[], ANY b) WHERE {BAR} {{ [symbol] AND m.price < 9 AND b.price > 8 }}",
        "`^`, `$`": "PATTERN SEQ(~ANY n, ANY a) WHERE [symbol] WITHIN 5",
        "`{- A -}`": "PATTERN SEQ(ANY a, ANY b) WHERE [symbol] WITHIN 1 RETURN b.price AS price",
    },
    "from_flink_cep": {
        "`keyBy": "PATTERN SEQ(login a, pay b) WHERE [user]",
        '`begin("a")': "PATTERN SEQ(ANY a, pay b) WHERE [user] AND a.n > 1",
        "`.subtype": "PATTERN login a",
        '`.next("b")`': "PATTERN SEQ(fail a, ~ANY n, fail b) WHERE [user]",
        '`.followedBy("b")`': "PATTERN SEQ(login a, ~pay n, pay b) WHERE [user]",
        '`.followedByAny("b")`': "PATTERN SEQ(login a, pay b) WHERE skip_till_any_match(a, b) { [user] }",
        '`.notNext("b")': "PATTERN SEQ(fail a, ~ANY n, (pay c | ANY o, ~pay m, pay c)) WHERE [user] "
        "AND o.type NOT IN ('fail', 'pay')",
        '`.notFollowedBy("b").f': "PATTERN SEQ(login a, ~logout b, ~pay n, pay c) WHERE [user]",
        '`.notFollowedBy("b").w': "PATTERN SEQ(login a, ~pay b) WHERE [user] WITHIN 9",
        "`.oneOrMore()`": "PATTERN SEQ(login l, (~fail n, fail a){2,4}, (~view o, view v)?, (~pay m, pay p)+) "
        "WHERE [user]",
        "`.timesOrMore(2)": "PATTERN SEQ(login l, ~fail o, fail b, (~ANY n, fail b2)+) WHERE [user]",
        "`.allowCombinations": "PATTERN SEQ(login l, ~fail n, fail b, fail* b2[]) WHERE [user]",
        "`.greedy()`": "PATTERN SEQ(login l, (~fail n, fail b)+, ~(fail|pay) m, pay c) WHERE [user]",
        "`.until": "PATTERN SEQ(login l, ~pay o, pay b, (~(pay|view) n, pay b2)*) WHERE [user]",
        "`.or(": "PATTERN SEQ(login a, (pay b | view c)) WHERE [user] AND (b.n > 1 OR b.n = 0) WITHIN 60",
        "a condition with": "PATTERN login a WHERE regexp_like(a.user, '^a.*$') "
        "AND CAST(CAST(a.n AS text) AS integer) = 0",
        "a condition in Java": "PATTERN pay a WHERE thousands(a.n) >= 0.5",
        "an `IterativeCondition`": f"PATTERN fail+ a[] WHERE {PAID}(a[]) {{ [user] }} HAVING count(DISTINCT a[].n) > 2",
        "`.within": "PATTERN SEQ(login a, ~pay n, pay b) WHERE [user] WITHIN 299999 ms",
        "time between two steps": "PATTERN SEQ(pay a, ~pay n, pay b) WHERE [user] AND b.ts - a.ts < 10",
        "`noSkip": "PATTERN SEQ(pay a, pay b) WHERE [user]",
        "`skipPastLastEvent": "PATTERN SEQ(pay a, ~pay n, pay b) WHERE [user] OUTPUT SHORTEST NON OVERLAP",
        "`skipToNext": "PATTERN SEQ(pay a, pay b) WHERE [user] OUTPUT SHORTEST AFTER MATCH SKIP TO NEXT EVENT",
        "`skipToFirst": "PATTERN SEQ(pay a, pay b) WHERE [user] OUTPUT SHORTEST AFTER MATCH SKIP TO FIRST b",
        "`select": "PATTERN SEQ(pay a, pay b) WHERE [user] RETURN a.n + b.n AS total",
        "`TimedOut": "PATTERN SEQ(login a, ~pay b) WHERE [user] WITHIN 9",
        "`sideOutputLateData`": "PATTERN login a",
        "`DynamicPatternFunction`": "PATTERN login a",
    },
    "from_esper": {
        "`every a=A -> b=B`": f"PATTERN SEQ(Order a, Pay b) WHERE {PAID}(a, b) {{ [user] }}",
        "`every (a=A -> b=B)`": f"PATTERN SEQ(Order a, Pay b) WHERE {PAID}(a, b) OUTPUT LONGEST NON OVERLAP",
        "`every a=A -> every": "PATTERN SEQ(Order a, Pay b) WHERE skip_till_any_match(a, b) { [user] }",
        "`a=A(price": "PATTERN Order a WHERE a.amount > 10",
        "`b=B(user": "PATTERN SEQ(Order a, Pay b) WHERE b.user = a.user",
        "`A -> B where": "PATTERN SEQ(Order a, Pay b) WHERE [user] WITHIN 10",
        "`A -> (timer": "PATTERN SEQ(Order a, ~Pay b) WHERE [user] WITHIN 10",
        "`A -> (B and not": "PATTERN SEQ(Order a, ~Cancel c, Pay b) WHERE [user] WITHIN 10",
        "`A and B`": "PATTERN {Order a, Pay b} WHERE [user] WITHIN 10",
        "`A or B`": "PATTERN (Order a | Pay b)",
        "`[3] A`": f"PATTERN Order{{3}} a[] WHERE {PAID}(a[])",
        "`[2:5] A`": f"PATTERN Order{{2,5}} a[] WHERE {PAID}(a[])",
        "`A until B`": f"PATTERN SEQ(Order* a[], Pay b) WHERE {PAID} {{ [user] }}",
        "`every-distinct": "PATTERN SEQ(~Order before, Order a) WHERE [user] WITHIN 100",
        "`@Suppress": "PATTERN SEQ(Order a, Pay b) WHERE [user] OUTPUT NON OVERLAP",
        "`prev(1": f"PATTERN Order{{2}} a[] WHERE {PAID}(a[]) {{ a[i].amount > a[i-1].amount }}",
        "`timer:at": "PATTERN SEQ(Order a, ~Pay b) WHERE [user] WITHIN 10",
        "`#time": f"PATTERN Order+ a[] WHERE {PAID}(a[]) WITHIN 30 HAVING sum(a[].amount) > 50",
        "`insert into": "FROM (PATTERN SEQ(Order a, Pay b) WHERE [user]) AS Paid PATTERN Paid p",
        "`cast": "PATTERN Order a WHERE CAST(a.amount AS text) = '70'",
        "`a.user regexp": "PATTERN Order a WHERE regexp_like(a.user, '^(ann|eve)$')",
        "`count(distinct": f"PATTERN Order+ a[] WHERE {PAID}(a[]) {{ [user] }} "
        "HAVING count(DISTINCT a[].amount) = 2 AND stddev(a[].amount) > 30",
        "a single-row": "PATTERN Order a WHERE thousands(a.amount) < 0.05",
        "`select": "PATTERN Order a RETURN a.amount AS p",
        "`create context": "PATTERN SEQ(Order a, Pay b) WHERE [user]",
    },
    "from_elastic": {
        "`process where": "PATTERN ANY a WHERE a.path = 'y.exe'",
        "`sequence [A] [B]`": "PATTERN SEQ(download a, ~(download|run) n, run b) WHERE [user]",
        "`sequence [A] [B] [C]`": "PATTERN SEQ(download a, ~(download|run) n, run b, ~(download|connect) m, "
        "(connect c | download o, ~(run|connect) p, connect c)) WHERE [user]",
        "four and more": "FROM (PATTERN connect c WHERE [user]) AS Last, "
        "(PATTERN SEQ(download a, ~(download|run) n, run b) WHERE [user]) AS Two "
        "PATTERN SEQ(Two s, ~(Two|Last) n, Last c) WHERE [user]",
        "`sequence by user`": "PATTERN SEQ(login a, ~(login|run) n, run b) WHERE [user]",
        "`[A] by path": "PATTERN SEQ(download a, ~download n, ~run m, run b) "
        "WHERE b.image = a.path AND n.path = a.path AND m.image = a.path",
        "`by ?user`": "PATTERN SEQ(login a, ~(login|run) n, run b) WHERE [user]",
        "`[A where": "PATTERN SEQ(ANY a, ~ANY n, ANY b) WHERE [user] AND a.path = 'y.exe' AND b.image = 'x.exe' "
        "AND (n.path = 'y.exe' OR n.image = 'x.exe')",
        "`with maxspan": "PATTERN SEQ(fail a, ~(fail|login) n, login b) WHERE [user] WITHIN 5000 ms",
        "`until": "PATTERN SEQ(login a, ~(login|connect|logout) n, connect b) WHERE [user]",
        "`[A] with runs=3`": f"PATTERN fail{{3}} a[] WHERE {PAID} {{ [user] }}",
        "`[A] with runs=3 [B]`": f"PATTERN SEQ(fail{{3}} a[], ~(fail|login) n, login b) WHERE {PAID} {{ [user] }}",
        "`[A] [B] with runs=3`": "PATTERN SEQ(fail a, ~(fail|download) n, fail b, (~fail m, fail b2){1}) WHERE [user]",
        "`![M]` between": "PATTERN SEQ(login a, ~(login|run) n, ~logout m, run b) WHERE [user] WITHIN 60",
        "`![M]` at": "PATTERN SEQ(~login m, run a, ~logout n) WHERE [user] WITHIN 3",
        "`\\| head": "PATTERN login a",
        "`\\| tail": "PATTERN login a",
        "`sample": "PATTERN {logout a, connect b} WHERE [user]",
        '`x == "a"': "PATTERN run a WHERE a.image != 'y.exe'",
        "`x == null`": "PATTERN ANY a WHERE a.path IS NULL",
        '`x : "cmd': "PATTERN run a WHERE lower(a.image) LIKE 'y%'",
        "`x like": "PATTERN run a WHERE a.image LIKE '_.exe' OR a.image LIKE 'z\\_%'",
        "`x in (": "PATTERN run a WHERE a.image IN ('x.exe', 'y.exe')",
        "`x in~": "PATTERN run a WHERE lower(a.image) IN ('x.exe', 'y.exe')",
        "`x regex": "PATTERN run a WHERE regexp_like(a.image, '(?i)^([XY]\\..*)$')",
        "`length": "PATTERN run a WHERE length(a.image) = 5",
        "`startsWith": "PATTERN run a WHERE a.image LIKE 'x%' AND lower(a.image) LIKE '%.exe'",
        "`substring": "PATTERN run a WHERE substring(a.image, 2, 3) = '.ex'",
        "`concat": "PATTERN run a WHERE concat(a.image, '-', CAST(a.ts AS text)) = 'y.exe-12'",
        "`string(n)`": "PATTERN run a WHERE CAST(CAST(a.ts AS text) AS float) = 12",
        "`add(n, 1)`": "PATTERN run a WHERE (a.ts + 1) % 5 = 3",
        "`divide": "PATTERN run a WHERE floor(a.ts / 5) = 2",
        "`cidrMatch": "PATTERN connect a WHERE NOT ip_in(a.address, '10.0.0.0/8')",
        "`between`": "PATTERN run a WHERE thousands(a.ts) < 0.02",
        "`?field`": "PATTERN run a WHERE a.image IS NOT NULL",
    },
}


@acep.function(version="1", returns="float")
def thousands(x: pa.Array) -> pa.Array:
    """A number in thousands."""
    return pc.divide(pc.cast(x, pa.float64()), 1000.0)


def table_of(page: str) -> list[tuple[str, str]]:
    """The cells of the table of constructs of a page."""
    text = (HOWTO / f"{page}.md").read_text(encoding="utf-8")
    table = text[text.index("## Construct by construct") : text.index("\n## ", text.index("## Construct by") + 1)]
    rows = re.findall(r"^\| (.+?) (?<!\\)\| (.+) \|$", table, re.MULTILINE)
    return [(first, second) for first, second in rows[1:] if first.strip("-")]


def constructs(page: str) -> list[str]:
    """The first cells of the table of constructs of a page."""
    return [first for first, _ in table_of(page)]


def stream_of(page: str) -> dict[str, list[Any]]:
    """The events of a page, from its own code."""
    names: dict[str, Any] = {}
    block = next(b for b in blocks(HOWTO / f"{page}.md") if b.runs and ">>>" not in b.text)
    exec(block.text, names)  # noqa: S102 - the page is ours
    found: dict[str, list[Any]] = names.get("events") or names["ticker"]
    return found


@pytest.mark.parametrize("page", ROWS)
def test_each_construct_of_a_page_has_a_query(page: str) -> None:
    there = constructs(page)
    assert len(there) > 15
    named = {beginning: [row for row in there if row.startswith(beginning)] for beginning in ROWS[page]}
    assert [name for name, rows in named.items() if len(rows) != 1] == []
    assert sorted(rows[0] for rows in named.values()) == sorted(there)


@pytest.mark.parametrize(("page", "construct"), [(page, row) for page, rows in ROWS.items() for row in rows])
def test_the_query_of_a_construct_finds_the_same_on_both_engines(page: str, construct: str) -> None:
    events, query = stream_of(page), ROWS[page][construct]
    options: dict[str, Any] = {"type": None} if page == "from_match_recognize" else {}
    if any(unit in query for unit in ("hour", " min", " ms")):
        options["unit"] = "s"
    asked = acep.parse(query, functions=[thousands])
    ours, theirs = (acep.match(events, asked, engine=engine, **options) for engine in ("auto", "reference"))
    told = [[(m.key, m.start, m.end, m.bindings, m.values) for m in found] for found in (ours, theirs)]
    assert told[0] == told[1]
    assert told[0]


def test_every_in_esper_starts_again_behind_a_match(cases: CaseCounts) -> None:
    draw = random.Random(3)
    for _ in range(cases(50)):
        types = draw.choices("AABC", k=draw.randint(4, 12))
        rows = [{"ts": place, "type": type} for place, type in enumerate(types)]
        text_of = case_text("every_in_esper", EVERY)
        fail_if_different_on_rows(rows, "#", spans_of_acep, spans_of_esper, ("acep", "Esper"), text_of)


EVERY = f"PATTERN SEQ(A a, B b) WHERE {PAID}(a, b) OUTPUT LONGEST NON OVERLAP"


def spans_of_acep(rows: list[Any]) -> list[tuple[int, int]]:
    return [(match.start, match.end) for match in acep.match(pa.Table.from_pylist(rows), EVERY)] if rows else []


def spans_of_esper(rows: list[Any]) -> list[tuple[int, int]]:
    pairs, begun = [], None
    for row in rows:
        if begun is None and row["type"] == "A":
            begun = row["ts"]
        elif begun is not None and row["type"] == "B":
            pairs.append((begun, row["ts"]))
            begun = None
    return pairs
