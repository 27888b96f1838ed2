"""Sigma correlations against a slow reading of windows: where one is true there is an alert, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pytest

import acep
from tests.case_counts import CaseCounts

Event = Mapping[str, Any]
Span = tuple[int, int]

BASES = {
    "ra": ("{f: [1, 2]}", lambda event: event["f"] in (1, 2)),
    "rb": ("{f: [2, 3]}", lambda event: event["f"] in (2, 3)),
    "rc": ("{f|gte: 3}", lambda event: event["f"] is not None and event["f"] >= 3),
    "rd": ("{f: 4}", lambda event: event["f"] == 4),
}
COLUMNS = ("f", "g", "h", "v")


def base_documents() -> str:
    return "".join(
        f"title: {name}\nname: {name}\nlogsource: {{product: any}}\ndetection: {{s: {asked}, condition: s}}\n---\n"
        for name, (asked, _) in BASES.items()
    )


def write_rule(folder: Path, correlation: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "sigma.toml").write_text('[[logsource]]\nproduct = "any"\n')
    (folder / "x.yml").write_text(f"{base_documents()}title: found\ncorrelation:\n{correlation}")


def draw_events(rng: random.Random, count: int) -> list[Event]:
    ts, events = 0, []
    for place in range(count):
        ts += rng.choice((0, 1, 1, 2, 5))
        values = {
            "f": rng.choice((1, 2, 3, 4, 5, None)),
            "g": rng.choice(("x", "x", "y", None)),
            "h": rng.choice(("x", "y")),
            "v": rng.choice(("p", "q", "r", None)),
        }
        events.append({"place": place, "ts": ts, **values})
    return events


def spans_of_alerts(folder: Path, events: list[Event]) -> list[tuple[dict[str, Any], list[tuple[str, int]]]]:
    """The key of each alert, and the variables and events that it binds, in the order of the stream."""
    table = {name: [event[name] for event in events] for name in ("ts", *COLUMNS)} | {"type": ["e"] * len(events)}
    matches = acep.rules(folder).match(table, unit="s")["found"]
    return [
        (
            match.key,
            sorted(((var, place) for var, places in match.bindings.items() for place in places), key=lambda b: b[1]),
        )
        for match in matches
    ]


def groups(events: list[Event], key: str | None) -> Iterator[tuple[dict[str, Any], list[Event]]]:
    if key is None:
        yield {}, events
        return
    for value in {event[key] for event in events} - {None}:
        yield {key: value}, [event for event in events if event[key] == value]


def check_alerts(
    folder: Path,
    events: list[Event],
    key: str | None,
    within: int,
    rules: list[str],
    is_true: Callable[[list[Event]], bool],
) -> int:
    """Assert that alerts of a group do not overlap, that each is in a window that is true, and that each window that is
    true overlaps one. Return the number of windows that are true."""
    alerts = spans_of_alerts(folder, events)
    n_true = 0
    for group_key, members in groups(events, key):
        spans = [(bound[0][1], bound[-1][1]) for alert_key, bound in alerts if alert_key == group_key]
        for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            assert end < start, "alerts of a group overlap"
        for alert_key, bound in alerts:
            if alert_key == group_key:
                of_alert = [events[place] for _, place in bound]
                assert of_alert[-1]["ts"] - of_alert[0]["ts"] <= within
                assert all(event in members for event in of_alert)
                assert all(any(BASES[rule][1](event) for rule in rules) for event in of_alert)
                assert is_true(of_alert), "an alert is no true window"
        for first, last in combinations(range(len(members) + 1), 2):
            window = members[first:last]
            if window[-1]["ts"] - window[0]["ts"] <= within and is_true(window):
                n_true += 1
                start, end = window[0]["place"], window[-1]["place"]
                assert any(start <= last_place and first_place <= end for first_place, last_place in spans), window
    assert {tuple(alert_key.items()) for alert_key, _ in alerts} <= {tuple(k.items()) for k, _ in groups(events, key)}
    return n_true


def matched(window: list[Event], rules: list[str]) -> list[Event]:
    return [event for event in window if any(BASES[rule][1](event) for rule in rules)]


@pytest.mark.parametrize("key", ["g", None])
def test_event_count(tmp_path: Path, cases: CaseCounts, key: str | None) -> None:
    n_true = 0
    for seed in range(cases(200)):
        rng = random.Random(seed)
        rules, count, within = rng.sample([*BASES], rng.choice((1, 1, 2))), rng.randint(1, 4), rng.randint(1, 9)
        condition = rng.choice((f"gte: {count}", f"gt: {count - 1}" if count > 1 else f"gte: {count}"))
        by = f"  group-by: [{key}]\n" if key else ""
        write_rule(
            tmp_path,
            f"  type: event_count\n  rules: [{', '.join(rules)}]\n{by}  timespan: {within}s\n"
            f"  condition: {{{condition}}}\n",
        )
        n_true += check_alerts(
            tmp_path,
            draw_events(rng, 40),
            key,
            within,
            rules,
            lambda w, rules=rules, n=count: len(matched(w, rules)) >= n,
        )
    cases.expect({"true windows": n_true}, "true windows")


@pytest.mark.parametrize("key", ["g", None])
def test_value_count(tmp_path: Path, cases: CaseCounts, key: str | None) -> None:
    n_true = 0
    for seed in range(cases(200)):
        rng = random.Random(seed)
        rules, count, within = rng.sample([*BASES], rng.choice((1, 1, 2))), rng.randint(1, 3), rng.randint(1, 9)
        by = f"  group-by: [{key}]\n" if key else ""
        write_rule(
            tmp_path,
            f"  type: value_count\n  rules: [{', '.join(rules)}]\n{by}  timespan: {within}s\n"
            f"  condition: {{gte: {count}, field: v}}\n",
        )

        def has_values(window: list[Event], rules: list[str] = rules, count: int = count) -> bool:
            return len({event["v"] for event in matched(window, rules)} - {None}) >= count

        n_true += check_alerts(tmp_path, draw_events(rng, 40), key, within, rules, has_values)
    cases.expect({"true windows": n_true}, "true windows")


def has_all(window: list[Event], rules: list[str]) -> bool:
    return all(any(BASES[rule][1](event) for event in window) for rule in rules)


def has_in_order(window: list[Event], rules: list[str]) -> bool:
    places = [[place for place, event in enumerate(window) if BASES[rule][1](event)] for rule in rules]
    return any(all(a < b for a, b in pairwise(way)) for way in product(*places))


@pytest.mark.parametrize("key", ["g", None])
@pytest.mark.parametrize("kind", ["temporal", "temporal_ordered"])
def test_temporal(tmp_path: Path, cases: CaseCounts, key: str | None, kind: str) -> None:
    n_true, is_true = 0, has_all if kind == "temporal" else has_in_order
    for seed in range(cases(200)):
        rng = random.Random(seed)
        rules, within = rng.sample([*BASES], rng.randint(2, 4)), rng.randint(1, 12)
        by = f"  group-by: [{key}]\n" if key else ""
        write_rule(tmp_path, f"  type: {kind}\n  rules: [{', '.join(rules)}]\n{by}  timespan: {within}s\n")
        n_true += check_alerts(
            tmp_path, draw_events(rng, 30), key, within, rules, lambda w, rules=rules: is_true(w, rules)
        )
    cases.expect({"true windows": n_true}, "true windows")


@pytest.mark.parametrize("kind", ["temporal", "temporal_ordered"])
def test_temporal_with_aliases(tmp_path: Path, cases: CaseCounts, kind: str) -> None:
    """Each true choice of events, one for each rule, of one value is overlapped by an alert of that value."""
    n_true = 0
    for seed in range(cases(200)):
        rng = random.Random(seed)
        rules, within = rng.sample([*BASES], rng.randint(2, 3)), rng.randint(1, 9)
        columns = {rule: rng.choice("gh") for rule in rules}
        write_rule(
            tmp_path,
            f"  type: {kind}\n  rules: [{', '.join(rules)}]\n  group-by: [who]\n  timespan: {within}s\n"
            f"  aliases: {{who: {{{', '.join(f'{rule}: {column}' for rule, column in columns.items())}}}}}\n",
        )
        events = draw_events(rng, 25)
        alerts = [[place for _, place in bound] for _, bound in spans_of_alerts(tmp_path, events)]
        choices = dict[tuple[int, ...], str]()
        for way in product(*([e for e in events if BASES[rule][1](e) and e[columns[rule]]] for rule in rules)):
            values = {event[columns[rule]] for rule, event in zip(rules, way, strict=True)}
            places = [event["place"] for event in way]
            ordered = kind == "temporal" or all(a < b for a, b in pairwise(places))
            times = [event["ts"] for event in way]
            if len(values) == 1 and ordered and max(times) - min(times) <= within:
                choices[tuple(sorted({*places}))] = values.pop()
        n_true += len(choices)
        assert all(tuple(alert) in choices for alert in alerts)
        for places, value in choices.items():
            of_value = [alert for alert in alerts if choices[tuple(alert)] == value]
            assert any(alert[0] <= places[-1] and places[0] <= alert[-1] for alert in of_value), (places, alerts)
    cases.expect({"true windows": n_true}, "true windows")
