"""The workloads of the best-effort experiments, by their permanent names: on all real streams and on generated ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from experiments.overload.heavy import heavy_workloads
from experiments.overload.workload import Overload

__all__ = ["OVERLOADS", "choose_workloads"]

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
    """Yield the workloads of the first experiment with history."""
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


def _bars() -> Iterable[Overload]:
    file = "stock_min_bars"
    yield Overload(
        "bars-double-k0-2h",
        "a double bottom: two lows within 0.03 % of each other, then a price above the first",
        file,
        """PATTERN SEQ(ANY a, ANY b, ANY c, ANY d, UP e)
WHERE skip_till_any_match(a, b, c, d, e) {
    [symbol] AND b.close < 0.997 * a.close AND c.close > 1.002 * b.close AND c.close < a.close
    AND d.close BETWEEN 0.9997 * b.close AND 1.0003 * b.close AND e.close > 1.002 * a.close }
WITHIN 2 h""",
    )
    yield Overload(
        "bars-fall-k0-2h",
        "three or more falls, each of 0.2 % or more, and a full recovery on a greater volume",
        file,
        """PATTERN SEQ(UP a, DOWN+ b[]{3}, UP c)
WHERE skip_till_any_match(a, b[], c) {
    [symbol] AND b[1].close < a.close AND b[i].close < 0.998 * b[i-1].close
    AND c.close >= 1.002 * a.close AND c.volume > a.volume }
WITHIN 2 h""",
    )
    yield Overload(
        "bars-pair-k0-15min",
        "one share rises while another falls; no partition",
        file,
        """PATTERN SEQ(UP a, DOWN b, UP c, DOWN d)
WHERE skip_till_any_match(a, b, c, d) {
    c.symbol = a.symbol AND b.symbol <> a.symbol AND d.symbol = b.symbol
    AND c.close > 1.0015 * a.close AND d.close < 0.997 * b.close AND d.volume > c.volume AND b.volume > a.volume }
WITHIN 15 min""",
    )


def _tweets() -> Iterable[Overload]:
    yield Overload(
        "tweets-k1-2d",
        "the paper's buy point, one letter of which may be missing",
        "stock_tweet_tokens",
        TWEETS.replace("WITHIN 3 d", "WITHIN 2 d"),
        errors=1,
    )
    yield Overload(
        "users-k0-30h",
        "two accounts write of one share by turns",
        "stock_tweets",
        """PATTERN SEQ(ANY a, ANY b, ANY c, ANY d)
WHERE skip_till_any_match(a, b, c, d) {
    [symbol] AND b.user <> a.user AND c.user = a.user AND d.user = b.user AND c.tweet_id <> b.tweet_id }
WITHIN 30 h""",
    )
    yield Overload(
        "reach-k0-12h",
        "tweets of ever more followed accounts, then news or a chart of one in between",
        "stock_tweets",
        """PATTERN SEQ(ANY a, OTHER b, ANY c, (FUND|TECH) d)
WHERE skip_till_any_match(a, b, c, d) {
    [symbol] AND b.followers > 2 * a.followers AND c.followers > 2 * b.followers
    AND d.followers BETWEEN 0.5 * b.followers AND c.followers AND d.user <> a.user }
WITHIN 12 h""",
    )


def _more_jobs() -> Iterable[Overload]:
    yield Overload(
        "swap-k1-2min",
        "a user's second job overtakes the first; one event may be missing",
        "cluster_jobs",
        """PATTERN SEQ(SUBMIT a, SUBMIT b, SCHEDULE c, SCHEDULE d, FINISH e, FINISH f)
WHERE skip_till_any_match(a, b, c, d, e, f) {
    [user] AND b.job_id <> a.job_id AND c.job_id = b.job_id AND d.job_id = a.job_id
    AND e.job_id = b.job_id AND f.job_id = a.job_id AND b.logical_name <> a.logical_name }
WITHIN 2 min""",
        errors=1,
    )
    yield Overload(
        "stopped-k2-10min",
        "a job fails or is killed, another of the user's finishes; two events may be missing",
        "cluster_jobs",
        """PATTERN SEQ(SUBMIT a, SCHEDULE b, (FAIL c | KILL k), SUBMIT d, SCHEDULE e, FINISH f)
WHERE skip_till_any_match(a, b, c, k, d, e, f) {
    [user] AND b.job_id = a.job_id AND c.job_id = a.job_id AND k.job_id = a.job_id AND d.job_id <> a.job_id
    AND d.logical_name <> a.logical_name AND e.job_id = d.job_id AND f.job_id = d.job_id }
WITHIN 10 min""",
        errors=2,
    )


def _swings() -> Iterable[Overload]:
    """Yield workloads over the accelerations and turns of phones and watches."""
    yield Overload(
        "rise-k0-200ms",
        "the acceleration rises three times or more, and falls below where it began as the device turns",
        "har_phone_watch",
        """PATTERN SEQ(ANY a, ANY+ b[]{3}, ANY c)
WHERE skip_till_any_match(a, b[], c) {
    [key] AND b[1].x_acc > a.x_acc + 1 AND b[i].x_acc > b[i-1].x_acc + 1
    AND c.x_acc < a.x_acc AND c.y_gyro < a.y_gyro - 0.5 }
WITHIN 200 ms""",
    )
    yield Overload(
        "peak-k0-400ms",
        "four samples of a swing: along x, down along y, up along z, and back",
        "har_phone_watch",
        """PATTERN SEQ(ANY a, ANY b, ANY c, ANY d)
WHERE skip_till_any_match(a, b, c, d) {
    [key] AND a.x_gyro > 1.5 AND b.x_acc > a.x_acc + 1.5 AND c.y_acc < b.y_acc - 1.5 AND c.x_acc < b.x_acc
    AND d.z_acc > a.z_acc + 1.5 AND d.x_acc < a.x_acc AND d.y_acc > c.y_acc }
WITHIN 400 ms""",
    )


def _patients() -> Iterable[Overload]:
    yield Overload(
        "labs-k1-28d",
        "inflammation falls while leucocytes stay, or halves; one value may be missing",
        "sepsis",
        """PATTERN SEQ((CRP|Leucocytes) a, Leucocytes b, CRP c, (Leucocytes d | CRP e))
WHERE skip_till_any_match(a, b, c, d, e) {
    [patient] AND a.value > c.value AND d.value BETWEEN 0.7 * b.value AND 1.3 * b.value
    AND e.value < 0.5 * c.value }
WITHIN 28 d""",
        errors=1,
    )
    yield Overload(
        "again-k0-50events",
        "two activities of different departments by turns, the first three times, within 50 of the patient's events",
        "hospital_bpic11",
        """PATTERN SEQ(ANY a, ANY b, ANY c, ANY d, ANY e)
WHERE skip_till_any_match(a, b, c, d, e) {
    [patient] AND b.org_group <> a.org_group AND c.type = a.type AND d.type = b.type AND e.type = a.type
    AND c.ts > b.ts AND e.ts > d.ts }
WITHIN 50 EVENTS""",
    )
    yield Overload(
        "again-k0-4d",
        "two activities of different departments, neither the first one of the laboratory, and both again later",
        "hospital_bpic11",
        """PATTERN SEQ(ANY a, ANY b, ANY c, ANY d)
WHERE skip_till_any_match(a, b, c, d) {
    [patient] AND b.org_group <> a.org_group AND c.type = a.type AND d.type = b.type AND c.ts > b.ts
    AND a.org_group <> 'General Lab Clinical Chemistry' AND b.n_exec < 3 }
WITHIN 4 d""",
    )


def _controls() -> Iterable[Overload]:
    """Yield workloads in which letters occur twice and one may be missing, so that one binding has several runs, and
    none are merged."""
    for name, file, letters, within, by in (
        ("bars", "stock_min_bars", "'DOWN' 'DOWN' 'DOWN' 'UP' 'UP' 'UP'", "20 min", "symbol"),
        ("jobs", "cluster_jobs", "'SUBMIT' 'SCHEDULE' 'FAIL' 'SUBMIT' 'SCHEDULE' 'FINISH'", "20 s", "user"),
        ("sepsis", "sepsis", "'CRP' 'Leucocytes' 'CRP' 'Leucocytes' 'Release A'", "10 d", "patient"),
    ):
        about = "letters alone; one may be missing"
        tight = within.replace(" ", "")
        yield Overload(f"letters-{name}-k1-{tight}", about, file, letters, errors=1, within=within, by=by, control=True)


OVERLOADS: dict[str, Overload] = {
    workload.name: workload
    for workload in (
        *_first(),
        *_bars(),
        *_tweets(),
        *_more_jobs(),
        *_swings(),
        *_patients(),
        *heavy_workloads(),
        *_controls(),
    )
}
"""All workloads, by name."""


def choose_workloads(names: Sequence[str]) -> list[Overload]:
    """Return the workloads whose names match one of the patterns, all without any. Raises :class:`ValueError` if a
    pattern matches none.

    >>> [workload.name for workload in choose_workloads(["bars-k0-?0min"])]
    ['bars-k0-30min', 'bars-k0-60min']
    """
    for name in names:
        if not any(fnmatchcase(workload_name, name) for workload_name in OVERLOADS):
            raise ValueError(f"there is no workload {name!r}")
    return [workload for name, workload in OVERLOADS.items() if not names or any(fnmatchcase(name, n) for n in names)]
