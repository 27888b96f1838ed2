"""What the generator of row patterns draws: each kind of case occurs often enough among those with a match.

The numbers are about half of those that the generator has, so that no kind stops being tried unnoticed.
"""

from __future__ import annotations

from collections import Counter

from tests.row_patterns.case_kinds import has_rows, kinds_of_case
from tests.row_patterns.random_cases import random_case

N_SEEDS = 3_000
WITH_MATCH = {
    "0 order keys": 65, "0 partition columns": 250, "0 subsets": 535, "1 order keys": 785, "1 partition columns": 710,
    "1 subsets": 250, "2 order keys": 215, "2 partition columns": 105, "2 subsets": 275, "DEFINE CLASSIFIER": 40,
    "DEFINE CLASSIFIER of a variable": 70, "DEFINE FIRST": 245, "DEFINE FIRST of an expression": 15,
    "DEFINE FIRST with an offset": 165, "DEFINE LAST": 240, "DEFINE LAST of an expression": 10,
    "DEFINE LAST with an offset": 165, "DEFINE NEXT": 125, "DEFINE NEXT of a navigation": 30,
    "DEFINE NEXT with an offset": 95, "DEFINE PREV": 220, "DEFINE PREV of a navigation": 65,
    "DEFINE PREV with an offset": 180, "DEFINE RUNNING FIRST": 85, "DEFINE RUNNING LAST": 85,
    "DEFINE RUNNING avg": 10, "DEFINE RUNNING count": 25, "DEFINE RUNNING max": 25, "DEFINE RUNNING min": 20,
    "DEFINE RUNNING sum": 20, "DEFINE abs": 20, "DEFINE arithmetic": 125, "DEFINE avg": 15, "DEFINE avg DISTINCT": 5,
    "DEFINE between": 160, "DEFINE case": 105, "DEFINE coalesce": 125, "DEFINE column": 640,
    "DEFINE column of a variable": 840, "DEFINE comparison": 890, "DEFINE count": 55, "DEFINE count DISTINCT": 10,
    "DEFINE count of *": 10, "DEFINE count of A.*": 35, "DEFINE in": 180, "DEFINE isnull": 385,
    "DEFINE junction": 615, "DEFINE literal": 780, "DEFINE matchnumber": 45, "DEFINE max": 55,
    "DEFINE max DISTINCT": 20, "DEFINE min": 50, "DEFINE min DISTINCT": 10, "DEFINE not": 85, "DEFINE sum": 35,
    "DEFINE sum DISTINCT": 10, "MEASURES CLASSIFIER": 220, "MEASURES CLASSIFIER of a variable": 180,
    "MEASURES FINAL FIRST": 235, "MEASURES FINAL LAST": 235, "MEASURES FINAL avg": 30, "MEASURES FINAL count": 65,
    "MEASURES FINAL max": 75, "MEASURES FINAL min": 80, "MEASURES FINAL sum": 65, "MEASURES FIRST": 345,
    "MEASURES FIRST of an expression": 55, "MEASURES FIRST with an offset": 275, "MEASURES LAST": 245,
    "MEASURES LAST of an expression": 60, "MEASURES LAST with an offset": 290, "MEASURES NEXT": 160,
    "MEASURES NEXT of a navigation": 80, "MEASURES NEXT with an offset": 130, "MEASURES PREV": 270,
    "MEASURES PREV of a navigation": 160, "MEASURES PREV with an offset": 260, "MEASURES RUNNING FIRST": 125,
    "MEASURES RUNNING LAST": 135, "MEASURES RUNNING avg": 15, "MEASURES RUNNING count": 45,
    "MEASURES RUNNING max": 35, "MEASURES RUNNING min": 35, "MEASURES RUNNING sum": 25, "MEASURES abs": 135,
    "MEASURES arithmetic": 415, "MEASURES avg": 30, "MEASURES avg DISTINCT": 15, "MEASURES between": 100,
    "MEASURES case": 380, "MEASURES coalesce": 405, "MEASURES column": 710, "MEASURES column of a variable": 840,
    "MEASURES comparison": 345, "MEASURES count": 225, "MEASURES count DISTINCT": 15, "MEASURES count of *": 190,
    "MEASURES count of A.*": 80, "MEASURES in": 105, "MEASURES isnull": 90, "MEASURES junction": 125,
    "MEASURES literal": 585, "MEASURES matchnumber": 250, "MEASURES max": 85, "MEASURES max DISTINCT": 45,
    "MEASURES min": 90, "MEASURES min DISTINCT": 40, "MEASURES not": 45, "MEASURES sum": 65,
    "MEASURES sum DISTINCT": 30, "alternation": 415, "anchor at the end": 70, "anchor at the start": 65,
    "concatenation": 825, "descending": 290, "empty": 160, "empty match": 50, "exclusion": 265,
    "loop whose iterations may be empty": 155, "nulls first": 150, "partition of null": 495, "permute": 225,
    "quantifier *": 150, "quantifier *?": 55, "quantifier +": 135, "quantifier +?": 65, "quantifier ?": 145,
    "quantifier ??": 60, "quantifier of a quantifier": 195, "quantifier {,m}": 150, "quantifier {,m}?": 65,
    "quantifier {n,m}": 115, "quantifier {n,m}?": 45, "quantifier {n,}": 85, "quantifier {n,}?": 45,
    "quantifier {n}": 100, "quantifier {n}?": 45, "rows in several matches": 210, "rows left out": 115,
    "rows: all rows with unmatched rows": 220, "rows: all rows, omit empty matches": 240,
    "rows: all rows, show empty matches": 240, "rows: one row": 365, "several matches": 575, "skip to a subset": 50,
    "skip: past last row": 595, "skip: to first": 50, "skip: to last": 110, "skip: to next row": 310, "ties": 435,
    "unmatched rows": 140, "variable without definition": 245, "within a number": 100, "within a time": 15,
}  # fmt: skip
WITHOUT_MATCH = {"empty match": 20, "error: first row": 60, "error: unbound": 60, "no rows": 30}


def test_each_kind_of_case_occurs_often_enough() -> None:
    with_match, without_match = Counter[str](), Counter[str]()
    for case in map(random_case, range(N_SEEDS)):
        (with_match if has_rows(case) else without_match).update(kinds_of_case(case))
    assert {kind: with_match[kind] for kind, least in WITH_MATCH.items() if with_match[kind] < least} == {}
    assert {kind: without_match[kind] for kind, least in WITHOUT_MATCH.items() if without_match[kind] < least} == {}


def test_a_case_is_the_same_each_time() -> None:
    for seed in range(20):
        assert random_case(seed) == random_case(seed)
