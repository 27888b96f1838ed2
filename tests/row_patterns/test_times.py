"""Calls of times in SQL beside the calendar of Python, on times from 1850 to 2120, in columns of each unit."""

from __future__ import annotations

import calendar
import random
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import acep
from acep.native import compiled
from acep.row_patterns import row_search
from tests.case_counts import CASES
from tests.thinned import in_turn

EPOCH = datetime(1970, 1, 1)


def add_months(moment: datetime, months: int) -> datetime:
    total = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(total, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def start_of(moment: datetime, unit: str) -> datetime:
    if unit == "week":
        return start_of(moment - timedelta(days=moment.weekday()), "day")
    if unit == "quarter":
        return datetime(moment.year, (moment.month - 1) // 3 * 3 + 1, 1)
    units = ["year", "month", "day", "hour", "minute", "second"]
    parts = [moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second]
    return datetime(*(parts[: units.index(unit) + 1] + [1, 1][units.index(unit) :]))  # type: ignore[arg-type]


EXPRESSIONS: dict[str, Any] = {
    **{
        f"date_trunc('{unit}', t)": (lambda t, unit=unit: start_of(t, unit))
        for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    },
    "EXTRACT(QUARTER FROM t)": lambda t: (t.month + 2) // 3,
    "EXTRACT(WEEK FROM t)": lambda t: t.isocalendar().week,
    "EXTRACT(DOY FROM t)": lambda t: t.timetuple().tm_yday,
    "ISODOW(t)": lambda t: t.isoweekday(),
    "EXTRACT(EPOCH FROM t)": lambda t: (t - EPOCH) / timedelta(seconds=1),
    "t + INTERVAL '1' MONTH": lambda t: add_months(t, 1),
    "t - INTERVAL '14' MONTHS": lambda t: add_months(t, -14),
    "INTERVAL '1' YEAR + t": lambda t: add_months(t, 12),
    "DATEADD(quarter, 3, t)": lambda t: add_months(t, 9),
    "DATE_ADD('hour', -5, t)": lambda t: t - timedelta(hours=5),
    "CAST(t AS DATE)": lambda t: t.date(),
    "LAST_DAY(t)": lambda t: date(t.year, t.month, calendar.monthrange(t.year, t.month)[1]),
    "CAST(t AS DATE) + INTERVAL '1' MONTH": lambda t: add_months(t, 1).date(),
    "CAST(t AS DATE) - 3": lambda t: t.date() - timedelta(days=3),
    "date_diff('day', DATE '2000-02-29', t::DATE)": lambda t: (t.date() - date(2000, 2, 29)).days,
    "TO_CHAR(t, 'YYYY-MM-DD HH24:MI:SS.FF6')": lambda t: t.strftime("%Y-%m-%d %H:%M:%S.%f"),
    "TO_CHAR(t, 'DD.MM.YY HH12 AM \"h\"')": lambda t: t.strftime("%d.%m.%y %I %p h"),
    "EXTRACT(HOUR FROM t - TIMESTAMP '1850-01-01')": lambda t: t.hour,
    "EXTRACT(DAY FROM t - TIMESTAMP '1850-01-01')": lambda t: (t - datetime(1850, 1, 1)).days,
    "TRUNC(t)": lambda t: start_of(t, "day"),
    "TRUNC(t, 'MM')": lambda t: start_of(t, "month"),
}


@pytest.mark.long
@pytest.mark.parametrize(("unit", "engine"), in_turn(["s", "ms", "us", "ns"], ["native", "without core"]))
def test_calls_of_times(unit: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "native" and compiled.native() is None:
        pytest.skip("there is no native core")
    if engine == "without core":
        monkeypatch.setattr(compiled, "native", lambda: None)
    monkeypatch.setattr(row_search, "USE_NATIVE", engine == "native")
    rng = random.Random(unit)
    moments = [datetime(1850, 1, 1) + timedelta(seconds=rng.randrange(270 * 365 * 86_400)) for _ in range(CASES(200))]
    moments += [
        datetime(2024, 2, 29, 23, 59, 59),
        datetime(1900, 3, 1),
        datetime(2000, 12, 31),
        datetime(1969, 12, 31, 23),
    ]
    table = pa.table({"i": list(range(len(moments))), "t": pa.array(moments, pa.timestamp(unit))})
    measures = ", ".join(f"{expression} AS m{number}" for number, expression in enumerate(EXPRESSIONS))
    rows = acep.match_recognize(table, f"ORDER BY i MEASURES {measures} PATTERN (A)")
    for number, (expression, compute) in enumerate(EXPRESSIONS.items()):
        expected = [compute(moment) for moment in moments]
        assert rows.column(f"m{number}").to_pylist() == expected, expression


def test_conditions_with_times() -> None:
    """Calls of times stand in conditions of the native search as well."""
    days = [date(2026, 1, 30) + timedelta(days=n) for n in range(5)]
    clause = """ORDER BY d MEASURES COUNT(*) AS n, FIRST(d) AS d PATTERN (A B*)
                DEFINE B AS date_trunc('month', d) = date_trunc('month', FIRST(A.d))"""
    rows = acep.match_recognize({"d": days}, clause)
    assert rows == {"n": [2, 3], "d": [days[0], days[2]]}
    clause = "ORDER BY d MEASURES COUNT(*) AS n PATTERN (A B*) DEFINE B AS d <= FIRST(A.d) + INTERVAL '1' MONTH"
    assert acep.match_recognize({"d": [date(2026, 1, 31), date(2026, 2, 28), date(2026, 3, 1)]}, clause) == {
        "n": [2, 1]
    }


def test_times_that_python_has_not_come_back_as_numpys() -> None:
    rows = {"i": [1, 2], "d": [date(2026, 1, 1), date(9999, 12, 31)]}
    clause = "ORDER BY i MEASURES d + INTERVAL '1' DAY AS q PATTERN (A)"
    found = {"q": [date(2026, 1, 2), np.datetime64("10000-01-01")]}
    assert acep.match_recognize(rows, clause) == found
    assert acep.Matcher(clause).push(rows) == found
    with pytest.raises(acep.DataError, match="`q` has the time 10000-01-01"):
        acep.match_recognize(pd.DataFrame(rows), clause)
