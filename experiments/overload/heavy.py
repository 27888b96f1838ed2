"""Heavy workloads: with commit fa6fc8c an exact run does at most 200 thousand events a second of processor time.

Six are on generated streams (:data:`experiments.streams.GENERATED`), the others on the real ones. They differ by what
ties their events together: equalities with registers, ``<`` and ``>``, bands, ``!=``, with a partition and without.
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.overload.workload import Overload

__all__ = ["heavy_workloads"]


def heavy_workloads() -> Iterable[Overload]:
    """Yield all heavy workloads."""
    yield from _football()
    yield from _network()
    yield from _recorded_streams()


def _football() -> Iterable[Overload]:
    yield Overload(
        "heavy-turns-k0-10min",
        "four passes by turns of two players, the last from where the first was: equalities with registers",
        "football",
        """PATTERN SEQ(PASS a, PASS b, PASS c, PASS d)
WHERE skip_till_any_match(a, b, c, d) {
    [game] AND b.player = a.target AND b.target = a.player AND c.player = a.player AND c.target = a.target
    AND d.player = b.player AND d.target = b.target AND abs(d.x - a.x) < 2 }
WITHIN 10 min""",
    )
    yield Overload(
        "heavy-forwards-k0-3min",
        "a move forwards in four touches of different players, then a shot: inequalities and a band",
        "football",
        """PATTERN SEQ(TOUCH a, TOUCH b, TOUCH c, TOUCH d, SHOT e)
WHERE skip_till_any_match(a, b, c, d, e) {
    [game] AND a.team = 0 AND b.team = 0 AND c.team = 0 AND d.team = 0 AND e.team = 0
    AND b.x > a.x + 8 AND c.x > b.x + 8 AND d.x > c.x + 8 AND e.x > d.x AND abs(e.y - a.y) < 5
    AND b.player <> a.player AND c.player <> b.player AND d.player <> c.player AND e.player = d.player }
WITHIN 3 min""",
    )
    yield Overload(
        "heavy-foul-k0-12min",
        "a player, a near opponent, the player, and a foul on the player by that opponent: bands",
        "football",
        """PATTERN SEQ(TOUCH a, TOUCH b, TOUCH c, FOUL d)
WHERE skip_till_any_match(a, b, c, d) {
    [game] AND b.team <> a.team AND abs(b.x - a.x) < 3 AND abs(b.y - a.y) < 3 AND c.player = a.player
    AND abs(c.x - b.x) < 3 AND abs(c.y - b.y) < 3 AND d.player = b.player AND d.target = a.player }
WITHIN 12 min""",
    )


def _network() -> Iterable[Overload]:
    yield Overload(
        "heavy-lookups-k0-10min",
        "a host looks up x, y, x, then speaks TLS with y: equalities and !=",
        "network",
        """PATTERN SEQ(DNS a, DNS b, DNS c, TLS d)
WHERE skip_till_any_match(a, b, c, d) {
    [host] AND b.name <> a.name AND c.name = a.name AND d.name = b.name AND d.bytes > 2000 }
WITHIN 10 min""",
    )
    yield Overload(
        "heavy-lookups-k1-90s",
        "the same, one event of which may be missing",
        "network",
        """PATTERN SEQ(DNS a, DNS b, DNS c, TLS d)
WHERE skip_till_any_match(a, b, c, d) {
    [host] AND b.name <> a.name AND c.name = a.name AND d.name = b.name AND d.bytes > 2000 }
WITHIN 90 s""",
        errors=1,
    )
    yield Overload(
        "heavy-names-k0-40s",
        "two hosts by turns ask for the same two names; no partition",
        "network",
        """PATTERN SEQ(DNS a, DNS b, DNS c, DNS d)
WHERE skip_till_any_match(a, b, c, d) {
    b.host <> a.host AND b.name = a.name AND c.host = a.host AND c.name <> a.name
    AND d.host = b.host AND d.name = c.name }
WITHIN 40 s""",
        sampled="host",
    )
    yield Overload(
        "heavy-ports-k0-12min",
        "a chain of hosts over three ports; no partition",
        "network",
        """PATTERN SEQ(CONN a, CONN b, CONN c)
WHERE skip_till_any_match(a, b, c) {
    b.host = a.dest AND c.host = b.dest AND b.port <> a.port AND c.port <> b.port AND c.port <> a.port
    AND c.bytes > 4 * b.bytes }
WITHIN 12 min""",
        sampled="host",
    )


def _recorded_streams() -> Iterable[Overload]:
    yield Overload(
        "heavy-echo-next-k0-16d",
        "a greater account writes after a smaller one, then one of about the size of that, then the greater one again",
        "stock_tweets",
        """PATTERN SEQ(ANY a, ANY b, ANY c, ANY d)
WHERE skip_till_next_match(a, b, c, d) {
    b.followers > 10 * a.followers AND abs(c.followers - a.followers) <= 3 AND c.user <> a.user
    AND d.user = b.user }
WITHIN 16 d""",
    )
    yield Overload(
        "heavy-rerun-k0-3h",
        "a job finishes, and another of the same user and name is scheduled; no partition",
        "cluster_jobs",
        """PATTERN SEQ(SUBMIT a, SCHEDULE b, FINISH c, SUBMIT d, SCHEDULE e)
WHERE skip_till_any_match(a, b, c, d, e) {
    b.job_id = a.job_id AND c.job_id = a.job_id AND d.user = a.user AND d.logical_name = a.logical_name
    AND d.job_id <> a.job_id AND e.job_id = d.job_id }
WITHIN 3 h""",
        sampled="user",
    )
    yield Overload(
        "heavy-swing-k0-2s",
        "a swing and back: the acceleration along x rises, falls to within a band of where it began, rises and falls",
        "har_phone_watch",
        """PATTERN SEQ(ANY a, ANY b, ANY c, ANY d)
WHERE skip_till_any_match(a, b, c, d) {
    [key] AND b.x_acc > a.x_acc + 6 AND abs(c.x_acc - a.x_acc) < 0.2 AND abs(c.y_acc - a.y_acc) < 0.2
    AND abs(d.x_acc - b.x_acc) < 0.2 AND abs(d.z_acc - b.z_acc) < 0.2 }
WITHIN 2 s""",
    )
