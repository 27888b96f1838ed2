"""A text that is written for the corpus is a case of it: it loads, and engines give the matches that stand in it."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.errors import AcepError
from tests import corpus
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_different
from tests.corpus_text import corpus_text
from tests.random_cases import random_case
from tests.test_complaints import case_with_c, types_but_c, types_of
from tests.test_corpus import ENGINES, compare, whole


def test_what_is_printed_is_a_case_of_the_corpus(cases: CaseCounts, tmp_path: Path) -> None:
    """The corpus reads the text of random cases, and the engines give the matches that stand in it."""
    for seed in range(cases(200)):
        loaded = loaded_case(random_case(seed).paste(), tmp_path)
        assert loaded.why == loaded.rulings[0] == "fill in"
        for engine in ENGINES:
            compare(loaded, whole(loaded, engine))


def loaded_case(text: str, folder: Path) -> corpus.Case:
    """The only case of a file of the corpus with a text."""
    (folder / "pasted.toml").write_text(text)
    (loaded,) = corpus.load_all(folder)
    return loaded


def test_a_shrunk_case_is_one_of_the_corpus(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_different(case_with_c(), types_but_c, types_of, ('"""', "all"))
    loaded = loaded_case(str(failure.value), tmp_path)
    assert loaded.column("type") == ("C",)


@pytest.mark.parametrize(
    ("text", "events", "options", "shown_text"),
    [
        ("PATTERN A a WHERE a.s = '1'", [{"ts": 1, "type": "A", "s": "1"}], {}, "'1'"),
        ("PATTERN A a WHERE a.s = 'a b'", [{"ts": 1, "type": "A", "s": "a b"}], {}, 's = "a b"'),
        ('PATTERN "A\\B" a', [{"ts": 1, "type": "A\\B"}], {}, 'matches = ["a=0"]'),
        ("PATTERN A a WHERE a.s = '\\n'\nWITHIN 1", [{"ts": 1, "type": "A", "s": "\\n"}], {}, 'matches = ["a=0"]'),
        ("PATTERN A a WHERE a.u < 2", [{"ts": 1, "type": "A", "u": None}], {}, "the corpus has no type null"),
        (
            "PATTERN A a WHERE a.t > DATE '2020-01-01'",
            [{"ts": 1, "type": "A", "t": date(2020, 1, 2)}],
            {},
            "2020-01-02",
        ),
        ("PATTERN A a", [{"ts": datetime(2020, 1, 2, 3), "type": "A"}], {}, "2020-01-02T03:00:00"),
        ("PATTERN A a", [{"ts": 1, "type": None}, {"ts": 2, "type": "A"}], {}, 'matches = ["a=A1"]'),
        ("PATTERN A a", [{"ts": 1, "type": "A"}], {"unit": "s"}, 'unit = "s"'),
        ("PATTERN A a WITHIN 1 second", [{"ts": 1, "type": "A"}], {"errors": 1}, 'raises = { error = "query"'),
        ("PATTERN A a", [{"ts": None, "type": "A"}], {}, 'raises = { error = "data"'),
        ("PATTERN A a WHERE", [{"ts": 1, "type": "A"}], {}, 'raises = { error = "query"'),
        ("PATTERN A+ a[]", [{"ts": ts, "type": "A"} for ts in range(7)], {}, "count = 127"),
        ("PATTERN A a", [], {}, "matches = []"),
    ],
)
def test_each_kind_of_cell_and_option_is_read_back(
    text: str, events: list[Any], options: dict[str, Any], shown_text: str, tmp_path: Path
) -> None:
    stream = {name: value for name, value in options.items() if name != "errors"}
    errors = {name: value for name, value in options.items() if name == "errors"}
    case_text = corpus_text("pasted", text, events, options=errors, stream=stream)
    assert shown_text in case_text
    loaded = loaded_case(case_text, tmp_path)
    if loaded.raises:
        with pytest.raises(AcepError, match=re.escape(loaded.raises.message)):
            whole(loaded, "auto")
    else:
        compare(loaded, whole(loaded, "auto"))


def test_an_option_that_the_corpus_lacks_is_a_comment(tmp_path: Path) -> None:
    case_text = corpus_text("pasted", "PATTERN A a", [{"ts": 1, "type": "A"}], stream={"budget": 3})
    assert "# the corpus has no option budget = 3" in case_text
    assert len(loaded_case(case_text, tmp_path)) == 1


def test_a_reference_that_fails_is_a_comment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def crash(*_: Any, **__: Any) -> None:
        raise IndexError("out of\nrange")

    monkeypatch.setattr(acep, "match", crash)
    case_text = corpus_text("pasted", "PATTERN A a", [{"ts": 1, "type": "A"}])
    assert "# it fails: IndexError" in case_text
    assert loaded_case(case_text, tmp_path).matches == ()
