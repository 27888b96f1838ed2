"""Partitions that are matched again: forgotten, and pushed with older events; hashes of matches, and what differs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import acep
from acep.arrivals.ordered_rows import BUCKETS
from acep.events.batch import Batch
from acep.native.session import NativeSession
from tests.case_counts import CaseCounts
from tests.native.harness import ANY, NEXT, plan_of, push_all, session_of, shown, stream, whole
from tests.native.test_order import random_trails

native = pytest.importorskip("acep.native._native")

TEXTS = (
    f"SEQ(A a, B b) WHERE {NEXT}(a, b) {{ [k] AND b.x >= a.x }} WITHIN 20",
    f"SEQ(A a, ~C c, B+ b[]) WHERE {ANY}(a, b[]) {{ [k] }} WITHIN 9",
    f"SEQ(A a, B b, ~C c) WHERE {NEXT}(a, b) {{ [k] }} WITHIN 9",
    "SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] } WITHIN 9",
    "SEQ(A a, B b) WITHIN 6 EVENTS",
)
MERGED = f"SEQ(A a, ANY b, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 15"


def rows(batch: Batch, places: np.ndarray) -> Batch:
    """Some rows of a batch, in order."""
    return Batch(
        batch.ts[places],
        None if batch.types is None else batch.types.take(places),
        np.asarray(batch.ids)[places],
        {name: column.take(places) for name, column in batch.columns.items()},
    )


def late(session: NativeSession, batch: Batch, rng: Random) -> tuple[list[str], set[int]]:
    """Push a batch without some of its events, then match the partitions of these again with them. Return what is
    found then, and the keys of these partitions."""
    plan, size = session.plans[0], len(batch)
    gone = np.array(sorted(rng.sample(range(size), 3)))
    session.push(rows(batch, np.setdiff1d(np.arange(size), gone)))
    keys = batch.columns["k"].values if plan.keys else np.zeros(size, np.int64)
    again = np.flatnonzero(np.isin(keys, keys[gone]) | plan.strict)
    (found,) = session.revise(None, rows(batch, again), len(again))
    return shown(found), set(keys[again].tolist())


@pytest.mark.parametrize(("text", "engine"), [*((text, "nodes") for text in TEXTS), (MERGED, "merged")])
def test_partitions_matched_again_are_as_if_all_had_come_in_order(text: str, engine: str, cases: CaseCounts) -> None:
    for seed in range(cases(40)):
        rng, table = Random(seed), stream(60, seed, k=3, x=4)
        plan = plan_of(f"PATTERN {text}", table)
        batch, session, straight = whole(plan, table), session_of(plan, engine), session_of(plan, engine)
        found, keys = late(session, batch, rng)
        (exact,) = straight.push(batch)
        assert found == shown(one for one in exact if not plan.keys or one.key[0] in keys)
        more = stream(40, seed + 1000, k=3, x=4)
        after = whole(plan, more.set_column(0, "ts", [range(100, 140)]))
        assert shown(push_all(session, [after])[0]) == shown(push_all(straight, [after])[0])


def test_a_partition_whose_events_are_all_gone_holds_nothing() -> None:
    table = stream(30, 3, types="AB", k=1, x=4)
    plan = plan_of(f"PATTERN {TEXTS[0]}", table)
    batch, session = whole(plan, table), session_of(plan, "nodes")
    session.push(batch)
    assert session.live(0) > 0
    assert not session.revise(batch, rows(batch, np.zeros(0, np.intp)), 0)[0]
    assert session.live(0) == 0
    assert not session.finish()[0]


def test_equal_matches_have_equal_hashes_and_others_do_not(cases: CaseCounts) -> None:
    for seed in range(cases(100)):
        end, offsets, ids, codes, _ = random_trails(seed)
        column = np.arange(len(end)) % 2
        hashes = native.contents(end, offsets, ids, codes, [column])
        trails = [
            (end[i], column[i], *ids[offsets[i] : offsets[i + 1]], *codes[offsets[i] : offsets[i + 1]])
            for i in range(len(end))
        ]
        assert len(set(hashes.tolist())) == len(set(trails))
        assert native.contents(end, offsets, ids, codes, [column]).tolist() == hashes.tolist()


def test_changes_of_matches_are_those_of_numpy(cases: CaseCounts) -> None:
    for seed in range(cases(200)):
        rng = np.random.default_rng(seed)
        given, now = (rng.integers(-50, 50, rng.integers(0, 80)) for _ in range(2))
        start, bucket = rng.integers(0, 10, len(given)), rng.integers(0, 4, len(given)).astype(np.uint16)
        cut, among = int(rng.integers(0, 10)), rng.random(BUCKETS) < 0.7
        for buckets in (None, among):
            there = (start >= cut) & (True if buckets is None else buckets[bucket])
            flags = None if buckets is None else buckets.view(np.uint8)
            come, gone = native.changes(start, given, bucket, cut, flags, now)
            assert come.tolist() == np.flatnonzero(~np.isin(now, given[there])).tolist()
            assert gone.tolist() == np.flatnonzero(there & ~np.isin(given, now)).tolist()


def test_gathered_matches_are_those_of_numpy_in_output_order(cases: CaseCounts) -> None:
    for seed in range(cases(200)):
        rng = np.random.default_rng(seed)
        parts, ranks = [], rng.permutation(3).astype(np.uint16)
        for number in range(int(rng.integers(1, 5))):
            end, offsets, ids, codes, _ = random_trails(1000 * seed + number)
            start, bundle, error = (rng.integers(-9, 9, len(end)) for _ in range(3))
            rows = np.sort(rng.permutation(len(end))[: int(rng.integers(0, len(end) + 1))])
            parts.append((start, end, bundle, error, offsets, ids, codes, rows))
        back = int(rng.integers(0, len(parts) + 1))
        *columns, source = native.gathered(parts, back, ranks)
        all_rows = [
            ((one[1][row], ids.tolist(), ranks[codes].tolist()), [column[row] for column in one[:4]], codes.tolist())
            for one in parts
            for row in one[-1].tolist()
            for ids, codes in [[column[one[4][row] : one[4][row + 1]] for column in one[5:7]]]
        ]
        many = sum(len(one[-1]) for one in parts[:back])
        places = sorted(range(many), key=lambda place: all_rows[place][0])
        places += sorted(range(many, len(all_rows)), key=lambda place: all_rows[place][0])
        assert source.tolist() == places
        expected = [all_rows[place] for place in places]
        assert np.transpose(columns[:4]).tolist() == [numbers for _, numbers, _ in expected]
        assert columns[4].tolist() == np.cumsum([0, *(len(codes) for *_, codes in expected)]).tolist()
        assert columns[5].tolist() == [one for (_, ids, _), *_ in expected for one in ids]
        assert columns[6].tolist() == [one for *_, codes in expected for one in codes]


def test_hostile_parts_of_matches_are_refused() -> None:
    one, codes = np.zeros(1, np.int64), np.zeros(1, np.uint16)
    good = (one, one, one, one, np.array([0, 1]), one, codes, one)
    assert [len(column) for column in native.gathered([good], 1, codes)] == [1, 1, 1, 1, 2, 1, 1, 1]
    cases = ((0, one[:0], "length"), (4, one, "offsets"), (4, np.array([0, 5]), "offsets"), (5, one[:0], "vars"))
    for place, bad, message in cases:
        with pytest.raises(ValueError, match=message):
            native.gathered([(*good[:place], bad, *good[place + 1 :])], 1, codes)
    for rows in ([1], [-1], [0, 2**40]):
        with pytest.raises(IndexError, match="rows"):
            native.gathered([(*good[:-1], np.array(rows))], 1, codes)
    two = (*good[:4], np.array([0, 1]), one, codes + np.uint16(1), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="without a rank"):
        native.gathered([two], 1, codes)
    with pytest.raises(ValueError, match="back"):
        native.gathered([good], 2, codes)
    with pytest.raises(ValueError, match="eight"):
        native.gathered([good[:-1]], 1, codes)


def test_hostile_arrays_are_refused() -> None:
    one, codes = np.zeros(1, np.int64), np.zeros(1, np.uint16)
    good = (one, np.array([0, 1]), one, codes, [one])
    assert len(native.contents(*good)) == 1
    for place, bad in ((1, one), (1, np.array([0, 5])), (1, np.array([1, 0])), (2, np.zeros(3, np.int64))):
        with pytest.raises(ValueError, match=r"offsets|vars"):
            native.contents(*good[:place], bad, *good[place + 1 :])
    with pytest.raises(ValueError, match="columns"):
        native.contents(*good[:4], [np.zeros(2, np.int64)])
    for start, bucket, buckets in ((one[:0], codes, None), (one, codes[:0], None), (one, codes, np.zeros(9, np.uint8))):
        with pytest.raises(ValueError, match="bucket"):
            native.changes(start, one, bucket, 0, buckets, one)
    session = session_of(plan_of(f"PATTERN {TEXTS[0]}"), "nodes")._session
    with pytest.raises(ValueError, match="columns"):
        session.reset(one, None, None, None, [], rows=1)


@pytest.mark.parametrize("text", [*TEXTS, MERGED])
def test_a_late_event_gives_what_the_stream_in_order_gives(text: str, cases: CaseCounts) -> None:
    for seed in range(cases(10)):
        rng, table = Random(seed), stream(80, seed, k=3, x=4, id=list(range(80)))
        order = sorted(range(80), key=lambda i: i + rng.randrange(12))
        query = acep.parse(f"PATTERN {text}")
        matcher = acep.Matcher(query, id="id", lateness=20, speculation="inf", engine="native")
        found = [one for at in range(0, 80, 9) for one in matcher.push(table.take(order[at : at + 9]))]
        found += matcher.finish()
        kept: dict[str, int] = {}
        for one in found:
            kept[one.id] = kept.get(one.id, 0) + one.op
        exact = acep.match(table, query, id="id", engine="native")
        assert {one for one, many in kept.items() if many} == {one.id for one in exact}
