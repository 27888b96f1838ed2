"""Events are classified alike, however the column of their types is stored and however many classes there are."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import acep

INDICES = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64()}


def query_of(classes: int) -> str:
    """One of all types but the last two, and then the last but one."""
    first = " | ".join(f"T{n} v{n}" for n in range(classes - 1))
    conditions = " AND ".join(f"v{n}.x > 2" for n in range(0, classes - 1, 3))
    return f"PATTERN SEQ(({first}), T{classes - 1} z) WHERE z.x < 8 AND {conditions} WITHIN 20"


# The core keeps up to 12 classes in 16 bits, and more in words of 64.
@pytest.mark.parametrize("classes", [2, 14, 70])
@pytest.mark.parametrize("nulls", [False, True], ids=["", "with nulls"])
@pytest.mark.parametrize("index", INDICES)
def test_a_dictionary_of_types_gives_what_texts_give(index: str, nulls: bool, classes: int) -> None:
    rng = random.Random(f"{classes} {nulls}")
    names = [f"T{n}" for n in range(classes + 1)]
    types = [None if nulls and rng.random() < 0.2 else rng.choice([*names, names[-2]]) for _ in range(400)]
    texts = pa.table({"ts": range(400), "x": [rng.randint(0, 9) for _ in range(400)], "type": pa.array(types)})
    column = texts["type"].combine_chunks().dictionary_encode()
    stored = pa.DictionaryArray.from_arrays(column.indices.cast(INDICES[index]), column.dictionary)
    query = query_of(classes)
    wanted = acep.match(texts, query, engine="reference")
    assert len(wanted) > 5
    assert acep.match(texts, query) == wanted
    assert acep.match(texts.set_column(2, "type", stored), query) == wanted
