"""The workloads of the best-effort experiments, by their permanent names, over all the real streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from experiments.overload.workload import Overload

__all__ = ["OVERLOADS", "chosen"]

JOBS = """PATTERN SEQ(SUBMIT a, SCHEDULE b, FAIL c, SUBMIT d, SCHEDULE e, FINISH f)
WHERE skip_till_any_match(a, b, c, d, e, f) {{
    [user] AND b.job_id = a.job_id AND c.job_id = b.job_id AND d.job_id <> c.job_id
    AND e.job_id = d.job_id AND f.job_id = e.job_id }}
WITHIN {within}"""

BARS = """PATTERN SEQ(DOWN a, DOWN b, DOWN c, UP d, UP e)
WHERE skip_till_any_match(a, b, c, d, e) {{
    [symbol] AND b.close < a.close AND c.close <= {low} * a.close AND d.close > c.close AND e.close >= a.close }}
WITHIN {within}"""

LENGTH = "sqrt({0}.x_acc * {0}.x_acc + {0}.y_acc * {0}.y_acc + {0}.z_acc * {0}.z_acc)"

HAR = f"""PATTERN SEQ(ANY a, ANY b, ANY c, ANY d)
WHERE skip_till_any_match(a, b, c, d) {{
    [key] AND {LENGTH.format("a")} >= 15 AND {LENGTH.format("b")} >= 15 AND {LENGTH.format("c")} >= 15
    AND {LENGTH.format("d")} < 4
    AND b.ts - a.ts >= 250 ms AND c.ts - b.ts >= 250 ms AND d.ts - c.ts >= 250 ms }}
WITHIN 2 s"""

TWEETS = """PATTERN SEQ(S s, a a, (b|d|w|r) t, E e, S s2, a a2, (g|e|u) f, E e2)
WHERE skip_till_any_match(s, a, t, e, s2, a2, f, e2) {
    [symbol] AND a.tweet_id = s.tweet_id AND t.tweet_id = a.tweet_id AND e.tweet_id = t.tweet_id
    AND s2.tweet_id <> e.tweet_id
    AND a2.tweet_id = s2.tweet_id AND f.tweet_id = a2.tweet_id AND e2.tweet_id = f.tweet_id }
WITHIN 3 d"""


def _first() -> Iterable[Overload]:
    """Those of the first experiment with history."""
    jobs = "a user's job fails, a later one of the same user finishes"
    yield Overload("jobs-k0-1h", jobs, "cluster_jobs", JOBS.format(within="1 h"))
    yield Overload(
        "jobs-k1-10min", f"{jobs}; one event may be missing", "cluster_jobs", JOBS.format(within="10 min"), errors=1
    )
    for low, minutes in ((0.995, 30), (0.99, 60)):
        yield Overload(
            f"bars-k0-{minutes}min",
            f"a price falls three times, to {low:.1%} of where it was, and comes back",
            "stock_min_bars",
            BARS.format(low=low, within=f"{minutes} min"),
        )
    yield Overload("har-k0-2s", "three strong peaks of the acceleration, then near free fall", "har_phone_watch", HAR)
    yield Overload(
        "tweets-k0-3d",
        "the 2016 paper's buy point: a tweet with a bullish chart, then another with good news",
        "stock_tweet_tokens",
        TWEETS,
    )


OVERLOADS: dict[str, Overload] = {one.name: one for one in _first()}
"""All workloads, by name."""


def chosen(names: Sequence[str]) -> list[Overload]:
    """Those whose names match one of the patterns, all without any; raises :class:`ValueError` where one matches none.

    >>> [one.name for one in chosen(["bars-k0-?0min"])]
    ['bars-k0-30min', 'bars-k0-60min']
    """
    for name in names:
        if not any(fnmatchcase(one, name) for one in OVERLOADS):
            raise ValueError(f"there is no workload {name!r}")
    return [one for name, one in OVERLOADS.items() if not names or any(fnmatchcase(name, n) for n in names)]
