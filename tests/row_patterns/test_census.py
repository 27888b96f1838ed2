"""What the generator of row patterns draws: each kind of case occurs often enough among those with a match.

The numbers are about half of those that the generator has among 3,000 cases, so that no kind stops being tried
unnoticed.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.row_patterns.case_kinds import has_rows, kinds_of_case
from tests.row_patterns.random_cases import random_case

N_SEEDS = 1_000
WITH_MATCH = {
    "0 order keys": 60, "0 partition columns": 255, "0 subsets": 515, "1 order keys": 705, "1 partition columns": 690,
    "1 subsets": 260, "2 order keys": 270, "2 partition columns": 90, "2 subsets": 260, "DEFINE CLASSIFIER": 35,
    "DEFINE CLASSIFIER of a variable": 85, "DEFINE FIRST": 215, "DEFINE FIRST of an expression": 10,
    "DEFINE FIRST with an offset": 140, "DEFINE LAST": 225, "DEFINE LAST of an expression": 10,
    "DEFINE LAST with an offset": 170, "DEFINE NEXT": 125, "DEFINE NEXT of a navigation": 35,
    "DEFINE NEXT with an offset": 95, "DEFINE PREV": 235, "DEFINE PREV of a navigation": 65,
    "DEFINE PREV with an offset": 185, "DEFINE RUNNING FIRST": 85, "DEFINE RUNNING LAST": 85, "DEFINE RUNNING avg": 5,
    "DEFINE RUNNING count": 25, "DEFINE RUNNING max": 30, "DEFINE RUNNING min": 25, "DEFINE RUNNING sum": 20,
    "DEFINE abs": 25, "DEFINE arithmetic": 115, "DEFINE avg": 20, "DEFINE avg DISTINCT": 5, "DEFINE between": 160,
    "DEFINE case": 90, "DEFINE coalesce": 115, "DEFINE column": 640, "DEFINE column of a variable": 800,
    "DEFINE comparison": 865, "DEFINE count": 55, "DEFINE count DISTINCT": 5, "DEFINE count of *": 10,
    "DEFINE count of A.*": 30, "DEFINE in": 165, "DEFINE isnull": 345, "DEFINE junction": 585, "DEFINE literal": 765,
    "DEFINE matchnumber": 40, "DEFINE max": 60, "DEFINE max DISTINCT": 20, "DEFINE min": 55,
    "DEFINE min DISTINCT": 15, "DEFINE not": 75, "DEFINE sum": 35, "DEFINE sum DISTINCT": 10,
    "MEASURES CLASSIFIER": 220, "MEASURES CLASSIFIER of a variable": 145, "MEASURES FINAL FIRST": 240,
    "MEASURES FINAL LAST": 250, "MEASURES FINAL avg": 25, "MEASURES FINAL count": 70, "MEASURES FINAL max": 70,
    "MEASURES FINAL min": 65, "MEASURES FINAL sum": 55, "MEASURES FIRST": 350, "MEASURES FIRST of an expression": 50,
    "MEASURES FIRST with an offset": 275, "MEASURES LAST": 235, "MEASURES LAST of an expression": 50,
    "MEASURES LAST with an offset": 290, "MEASURES NEXT": 140, "MEASURES NEXT of a navigation": 75,
    "MEASURES NEXT with an offset": 120, "MEASURES PREV": 260, "MEASURES PREV of a navigation": 155,
    "MEASURES PREV with an offset": 235, "MEASURES RUNNING FIRST": 130, "MEASURES RUNNING LAST": 145,
    "MEASURES RUNNING avg": 15, "MEASURES RUNNING count": 35, "MEASURES RUNNING max": 40, "MEASURES RUNNING min": 35,
    "MEASURES RUNNING sum": 30, "MEASURES abs": 135, "MEASURES arithmetic": 420, "MEASURES avg": 25,
    "MEASURES avg DISTINCT": 15, "MEASURES between": 80, "MEASURES case": 360, "MEASURES coalesce": 375,
    "MEASURES column": 655, "MEASURES column of a variable": 810, "MEASURES comparison": 375, "MEASURES count": 200,
    "MEASURES count DISTINCT": 15, "MEASURES count of *": 165, "MEASURES count of A.*": 70, "MEASURES in": 80,
    "MEASURES isnull": 85, "MEASURES junction": 105, "MEASURES literal": 545, "MEASURES matchnumber": 215,
    "MEASURES max": 70, "MEASURES max DISTINCT": 40, "MEASURES min": 80, "MEASURES min DISTINCT": 35,
    "MEASURES not": 40, "MEASURES sum": 50, "MEASURES sum DISTINCT": 30, "alternation": 430, "anchor at the end": 75,
    "anchor at the start": 65, "concatenation": 820, "descending": 260, "empty": 160, "empty match": 55,
    "exclusion": 240, "loop whose iterations may be empty": 165, "nulls first": 130, "partition of null": 470,
    "permute": 220, "quantifier *": 140, "quantifier *?": 55, "quantifier +": 110, "quantifier +?": 65,
    "quantifier ?": 140, "quantifier ??": 50, "quantifier of a quantifier": 200, "quantifier {,m}": 160,
    "quantifier {,m}?": 60, "quantifier {n,m}": 125, "quantifier {n,m}?": 50, "quantifier {n,}": 90,
    "quantifier {n,}?": 35, "quantifier {n}": 95, "quantifier {n}?": 55, "rows in several matches": 190,
    "rows left out": 115, "rows: all rows with unmatched rows": 210, "rows: all rows, omit empty matches": 215,
    "rows: all rows, show empty matches": 250, "rows: one row": 355, "several matches": 540, "skip to a subset": 50,
    "skip: past last row": 580, "skip: to first": 45, "skip: to last": 115, "skip: to next row": 295, "ties": 390,
    "unmatched rows": 125, "variable without definition": 235, "within a number": 80, "within a time": 10,
}  # fmt: skip
WITHOUT_MATCH = {"empty match": 20, "error: first row": 60, "error: unbound": 60, "no rows": 30}


@pytest.mark.long
def test_each_kind_of_case_occurs_often_enough() -> None:
    with_match, without_match = Counter[str](), Counter[str]()
    for case in map(random_case, range(N_SEEDS)):
        (with_match if has_rows(case) else without_match).update(kinds_of_case(case))
    for seen, least_counts in ((with_match, WITH_MATCH), (without_match, WITHOUT_MATCH)):
        rare = {kind: seen[kind] for kind, least in least_counts.items() if seen[kind] < least * N_SEEDS / 3_000}
        assert rare == {}


def test_a_case_is_the_same_each_time() -> None:
    for seed in range(20):
        assert random_case(seed) == random_case(seed)
