"""The labels of a pandas frame stand beside the positions of events, wherever they are others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import acep

pd = pytest.importorskip("pandas")

QUERY = acep.parse(
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { a[i].n > a[i-1].n } WITHIN 9", errors=1
)
ROWS = {"ts": [5, 1, 2, 3, 4, 6], "type": list("xAxAxB"), "n": [0, 1, 2, 3, 4, 5]}


def frames() -> dict[str, Any]:
    """Frames with an index of their own, by what was done to them."""
    frame = pd.DataFrame(ROWS)
    times = pd.to_datetime(frame["ts"], unit="D", utc=True)
    return {
        "filtered": frame[frame["type"] != "x"],
        "sorted": frame.sort_values("n", ascending=False),
        "cut off": frame.iloc[1:],
        "texts": frame.set_axis([*"uvwxyz"]),
        "times": frame.set_axis(times),
        "floats": frame.set_axis([0.5, 1.5, np.nan, 3.5, 4.5, 5.5]),
        "small integers": frame.set_axis(np.arange(7, 13, dtype=np.uint8)),
        "categories": frame.set_axis(pd.Categorical([*"ppqqrr"])),
        "twice the same": frame.set_axis([1, 1, 2, 2, 3, 3]),
        "several levels": frame.set_axis(pd.MultiIndex.from_product([[1, 2], [*"abc"]])),
    }


@pytest.mark.parametrize("kind", frames())
def test_labels_are_those_of_the_rows(kind: str) -> None:
    frame = frames()[kind]
    found = acep.match(frame, QUERY)
    assert {len(one.bindings) for one in found} == {1, 2}, "some matches lack an event"
    nested, flat, events = found.to_pandas(), found.to_pandas(flat=True), found.to_pandas(explode=True)
    for number, match in enumerate(found):
        own = found.events(match)
        labels = [label for variable in ("a", "b") for label in nested["labels"][number].get(variable, ())]
        assert labels == own.index.tolist() or any(label != label for label in labels)
        assert [*nested["labels"][number]] == [*match.bindings]
        assert [len(one) for one in nested["labels"][number].values()] == [*map(len, match.bindings.values())]
        for column, variable, place in (("a_first", "a", 0), ("a_last", "a", -1), ("b", "b", 0)):
            label, ids = flat[f"{column}_label"][number], match.bindings.get(variable)
            if ids is None:
                assert pd.isna(label)
                assert pd.isna(flat[column][number])
                continue
            wanted = frame.index[ids[place]]
            assert (flat[column][number], label == wanted or pd.isna(wanted)) == (ids[place], True)
        assert events["label"][events["match"] == number].tolist() == labels or kind == "floats"
    assert [*flat.columns] == [
        "start", "end", "error", "a_first", "a_first_label", "a_last", "a_last_label", "b", "b_label", "bundle"
    ]  # fmt: skip
    assert [*nested.columns[3:5]] == ["bindings", "labels"] or [*nested.columns[4:6]] == ["bindings", "labels"]
    assert events.columns.get_loc("label") == events.columns.get_loc("event") + 1


def test_a_label_finds_its_row() -> None:
    frame = frames()["filtered"]
    table = acep.match(frame, QUERY).to_pandas(flat=True).dropna(subset=["b"])
    assert str(table["b_label"].dtype) == "Int64"
    assert frame.loc[table["b_label"]]["type"].unique().tolist() == ["B"]
    assert frame.iloc[table["b"]].equals(frame.loc[table["b_label"]])


def test_labels_are_left_out_where_ids_are_labels() -> None:
    frame = pd.DataFrame(ROWS)
    given = {
        "by position": acep.match(frame, QUERY),
        "by position, as integers": acep.match(frame.set_axis(np.arange(6)), QUERY),
        "by an id": acep.match(frame[frame["type"] != "x"].rename_axis("row"), QUERY, id="row"),
        "of no frame": acep.match(ROWS, QUERY),
        "of a query of queries": acep.match(frames()["filtered"], "FROM (PATTERN A a) AS T PATTERN SEQ(T t, T u)"),
    }
    for why, found in given.items():
        assert len(found) > 0, why
        for table in (found.to_pandas(), found.to_pandas(flat=True), found.to_pandas(explode=True)):
            assert not [name for name in table.columns if "label" in name], why
    matcher = acep.Matcher(QUERY)
    found = [*matcher.push(frames()["filtered"])] and matcher.finish()
    assert "labels" not in found.to_pandas().columns


def test_labels_after_a_slice_without_matches_and_when_the_frame_has_changed() -> None:
    frame = frames()["filtered"].copy()
    found = acep.match(frame, QUERY)
    assert found[1:].to_pandas(flat=True)["b_label"].tolist() == found.to_pandas(flat=True)["b_label"].tolist()[1:]
    for none in (found[:0], acep.match(frame, "PATTERN SEQ(B a, A b)")):
        assert none.to_pandas(flat=True).empty
        assert [name for name in none.to_pandas(flat=True).columns if name.endswith("_label")]
        assert [*none.to_pandas(explode=True).columns][3:5] == ["event", "label"]
        assert "labels" in none.to_pandas().columns
    before = found.to_pandas(flat=True)
    frame.index = range(len(frame))
    assert found.to_pandas(flat=True).equals(before), "the labels are those of the frame as it was matched"


def test_a_label_takes_no_name_that_is_given() -> None:
    frame = frames()["filtered"].assign(k=1)
    query = "PATTERN SEQ(A a, B b) WHERE [k] RETURN a.n AS A_label, b.n AS label"
    flat = acep.match(frame, query).to_pandas(flat=True)
    assert flat["A_label"].tolist() == [1, 3]
    assert flat["event_a_label"].tolist() == [1, 3]
    events = acep.match(frame, query).to_pandas(explode=True)
    assert (events["label"].tolist(), events["event_label"].tolist()) == ([5] * 4, [1, 5, 3, 5])
