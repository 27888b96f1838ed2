"""Sigma rules that cannot be said exactly are refused, each by its name and by what of it has no counterpart."""

from __future__ import annotations

import pytest

from acep.alerting.rule import RuleProblem
from acep.alerting.sigma_files import read_sigma_rules

HEAD = "title: t\nlogsource: {product: any}\n"
BASES = (
    "title: a\nname: ra\nlogsource: {product: any}\ndetection: {s: {f: 1}, condition: s}\n---\n"
    "title: b\nname: rb\nlogsource: {product: any}\ndetection: {s: {f: 2}, condition: s}\n---\n"
    "title: c\nname: rc\ncorrelation: {type: event_count, rules: [ra], timespan: 1m, condition: {gte: 2}}\n---\n"
)


def problems(text: str, settings: str | None = None) -> list[str]:
    readings = read_sigma_rules({"rules/x.yml": text}, settings)
    return [reading.error.message for reading in readings if isinstance(reading, RuleProblem)]


DETECTIONS = {
    "{s: [word], condition: s}": "the keyword `word` is looked for in whole events",
    "{s: {'|contains': word}, condition: s}": "the keyword",
    "{s: {f|expand: '%names%'}, condition: s}": "`f` has a placeholder",
    "{s: {f|hour: 3}, condition: s}": "`f` is asked for a part of a time",
    "{s: {f|week: 3}, condition: s}": "`f` is asked for a part of a time",
    "{s: {f|fieldref|contains: g}, condition: s}": "`f` is compared with a part of another field",
    "{s: {f|fieldref|endswith: g}, condition: s}": "`f` is compared with a part of another field",
    "{s: {f|wide: ab}, condition: s}": "the value of `f` has characters",
    "{s: {f: 'Straße'}, condition: s}": "`f` has a letter beyond ASCII",
    "{s: {f: 'ΟΔΟΣ'}, condition: s}": "`f` has a letter beyond ASCII",
    "{s: {f: 9007199254740993}, condition: s}": "the number of `f` has more digits",
    "{s: {f: 1.0e+400}, condition: s}": "pySigma",
    "{s: {f: .inf}, condition: s}": "pySigma",
    "{s: {f: 2024-01-01}, condition: s}": "pySigma",
    "{s: {f|re: 'a(?=b)'}, condition: s}": "",
    "{s: {f|re: '('}, condition: s}": "pySigma refuses it",
    "{s: {f|cidr: 10.0.0.1/8}, condition: s}": "pySigma refuses it",
    "{s: {f|unknown: 1}, condition: s}": "pySigma refuses it",
    "{s: {f|all: [1, 2]}, condition: missing}": "pySigma refuses it",
    "{s: {'f(x)': 1}, condition: s}": "the field `f(x)` is the name of no column",
    "{s: {'tags[1]': 1}, condition: s}": "the field `tags[1]` is the name of no column",
    "{s: {f: 1}, condition: [s, not s]}": "the detection has several conditions",
    "{s: {f: 1}, condition: s | count() > 3}": "pySigma refuses it",
    "{s: {f: 1}, timeframe: 5m, condition: s}": "`timeframe` of a detection is of old Sigma",
    "{s: {f: 1}}": "pySigma refuses it",
    "{s: {}, condition: s}": "pySigma refuses it",
    "{condition: s}": "pySigma refuses it",
    "[s]": "pySigma",
    "{s: {f: 1}, condition: 3}": "",
    "{s: {1: 2}, condition: s}": "pySigma",
    "{s: {f|re: 3}, condition: s}": "pySigma",
    "{s: {f: a, f: b}, condition: s}": "the key `f` is there twice",
    "{s: {f: a}, condition: s, s: {f: b}}": "the key `s` is there twice",
    "{s: {f: 1}, 3: {f: 2}, condition: 1 of s*}": "pySigma cannot read it",
    "{s: {f: 1}, 2024-01-01: {f: 2}, condition: all of s*}": "pySigma cannot read it",
}


@pytest.mark.parametrize("detection", DETECTIONS)
def test_a_detection_is_refused(detection: str) -> None:
    (message,) = problems(f"{HEAD}detection: {detection}\n", '[[logsource]]\nproduct = "any"\n')
    assert message.startswith("rule `t` in `rules/x.yml`: ")
    assert DETECTIONS[detection] in message


CORRELATIONS = {
    "{type: event_count, rules: [ra], timespan: 1m, condition: {lt: 2}}": "`lt` asks for what does not come",
    "{type: event_count, rules: [ra], timespan: 1m, condition: {lte: 2}}": "`lte` asks for what does not come",
    "{type: event_count, rules: [ra], timespan: 1m, condition: {eq: 2}}": "`eq` asks for what does not come",
    "{type: value_count, rules: [ra], timespan: 1m, condition: {neq: 2, field: x}}": "`neq` asks for",
    "{type: event_count, rules: [ra], timespan: 1m, condition: {gte: 0}}": "`gte: 0` is not a whole number from 1",
    "{type: event_count, rules: [ra], timespan: 1m, condition: {gte: 2.5}}": "`gte: 2.5` is not a whole number",
    "{type: event_count, rules: [ra], timespan: 1m, condition: {gte: 2, field: x}}": "`field` is not for",
    "{type: event_count, rules: [ra], timespan: 1m, condition: {gte: 1, lte: 2}}": "pySigma",
    "{type: event_count, rules: [ra], timespan: 1m}": "pySigma",
    "{type: event_count, rules: [ra, rb], timespan: 1m, condition: {gte: 2}, group-by: [w], "
    "aliases: {w: {ra: x, rb: y}}}": "an alias that is another column for each rule",
    "{type: value_count, rules: [ra], timespan: 1m, condition: {gte: 102, field: x}}": "from 1 to 101 here",
    "{type: value_count, rules: [ra], timespan: 1m, condition: {gte: 2}}": "pySigma",
    "{type: value_count, rules: [ra], timespan: 1m, condition: {gte: 2, field: [x, y]}}": "several fields together",
    "{type: value_count, rules: [ra, rb], timespan: 1m, condition: {gte: 2, field: w}, "
    "aliases: {w: {ra: x, rb: y}}}": "the alias `w`, whose values are counted",
    "{type: value_avg, rules: [ra], timespan: 1m, condition: {gte: 2, field: x}}": "of the type `value_avg`",
    "{type: value_sum, rules: [ra], timespan: 1m, condition: {gte: 2, field: x}}": "of the type `value_sum`",
    "{type: temporal_extended, rules: [ra, rb], timespan: 1m}": "pySigma",
    "{type: temporal, rules: [ra, rb], timespan: 1m, condition: {gte: 1}}": "does not ask for all 2 rules",
    "{type: temporal, rules: [ra, rb], timespan: 1m, condition: ra or rb}": "may only join them by `and`",
    "{type: temporal_ordered, rules: [ra, rb], timespan: 1m, condition: ra and not rb}": "may only join them",
    "{type: temporal, rules: [ra, ra], timespan: 1m}": "a rule is named twice",
    "{type: temporal, rules: [ra, rc], timespan: 1m}": "it refers to the correlation `rc`",
    "{type: temporal, rules: [ra, nobody], timespan: 1m}": "it refers to `nobody`, and no rule of the folder has",
    "{type: temporal, rules: [ra, rb], timespan: 1m, group-by: [w], aliases: {w: {ra: x}}}": "names no field of `rb`",
    "{type: temporal, rules: [ra, rb], timespan: 1M}": "`1M` is in months or years",
    "{type: temporal, rules: [ra, rb], timespan: 1y}": "`1y` is in months or years",
    "{type: temporal, rules: [ra, rb], timespan: 0m}": "pySigma",
    "{type: temporal, rules: [ra, rb], timespan: 1 hour}": "pySigma",
    "{type: temporal, rules: [ra, rb]}": "pySigma",
    "{type: temporal, rules: [ra, rb], timespan: 1m, group_by: [x]}": "a correlation has no `group_by` here",
    "{type: temporal, rules: [ra, rb], timespan: 1m, window: tumbling}": "a correlation has no `window` here",
    "{type: temporal, rules: [ra, rb], timespan: 1m, group-by: ['f(x)']}": "the field `f(x)` is the name of no column",
    "{type: temporal, rules: 3, timespan: 1m}": "pySigma",
    "{type: [temporal], rules: [ra], timespan: 1m}": "pySigma",
    "{type: temporal, rules: [[ra]], timespan: 1m}": "",
    "{type: temporal, rules: [], timespan: 1m}": "it refers to no rule",
    "{type: event_count, rules: [], timespan: 1m, condition: {gte: 2}}": "it refers to no rule",
    "{type: value_count, rules: [], timespan: 1m, condition: {gte: 2, field: x}}": "it refers to no rule",
    "{type: value_count, rules: [ra], timespan: 1m, condition: {gte: 2, field: 3}}": "pySigma cannot read it",
    "{type: value_count, rules: [ra], timespan: 1m, condition: {gte: 2, field: {x: y}}}": "pySigma cannot read it",
    "3": "",
}


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_a_correlation_is_refused(correlation: str) -> None:
    (message,) = problems(f"{BASES}title: t\ncorrelation: {correlation}\n", '[[logsource]]\nproduct = "any"\n')
    assert message.startswith("rule `t` in `rules/x.yml`: ")
    assert CORRELATIONS[correlation] in message


MANY = ", ".join(f"value{n}" for n in range(9000))
ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
FILES = {
    "": "there is no Sigma rule",
    "---\n---\n": "there is no Sigma rule",
    "a: [": "it is no YAML",
    "a: &x [*x]": "it is no Sigma rule",
    "title: t\n": "it is no Sigma rule",
    "- 1": "it is no Sigma rule",
    "3": "it is no Sigma rule",
    "!!python/object/apply:os.system ['true']": "it is no YAML",
    "x: !!timestamp 2024-99-99": "it is no YAML",
    "{[a]: 1}: 2": "it is no YAML",
    "[" * 250_000: "it is no YAML",
    "{a: " * 60_000: "it is no YAML",
    f"{ALIASES}title: t\nfields: *a9\nlogsource: {{product: x}}\ndetection: {{s: {{f: 1}}, condition: s}}\n": "many",
    f"{ALIASES}title: t\ncorrelation: {{type: *a9}}\n": "pySigma refuses it",
    f"title: t\nlogsource: {{product: any}}\ndetection: {{s: {{f|contains: [{MANY}]}}, condition: s}}\n": "characters",
    "action: global\ntitle: t\n": "`action` is of old collections",
    "title: t\nfilter: {rules: [x], s: {f: 1}, condition: s}\nlogsource: {product: any}\n": "a filter of Sigma",
    "title: t\ndetection: {s: {f: 1}, condition: s}\n": "pySigma refuses it",
    "title: t\nlogsource: {product: any, vendor: x}\ndetection: {s: {f: 1}, condition: s}\n": "logsource has `vendor`",
    "logsource: {product: any}\ndetection: {s: {f: 1}, condition: s}\n": "pySigma refuses it",
    "title: [1]\nlogsource: {product: any}\ndetection: {s: {f: 1}, condition: s}\n": "pySigma",
    "title: t\nlogsource: {product: linux}\ndetection: {s: {product: x}, condition: s}\n": "asks for `product` itself",
    "title: t\ntags: x\nlogsource: {product: any}\ndetection: {s: {f: 1}, condition: s}\n": "`tags` is no list",
    'title: t\ndescription: "a\\ud800"\nlogsource: {product: any}\ndetection: {s: {f: 1}, condition: s}\n': "",
    "title: t\nlevel: great\nlogsource: {product: any}\ndetection: {s: {f: 1}, condition: s}\n": "pySigma",
    f"title: t\nlogsource: {{product: any}}\ndetection: {{s: {{f: 1}}, condition: {'not ' * 2400}s}}\n": "",
    f"title: t\nlogsource: {{product: any}}\ndetection: {{s: {{f: {[*range(9000)]}}}, condition: "
    f"{' and '.join(['s'] * 9)}}}\n": "the condition names more than 100,000 values",
}


@pytest.mark.parametrize("text", FILES, ids=range(len(FILES)))
def test_a_file_is_refused(text: str) -> None:
    (message,) = problems(text)
    assert "`rules/x.yml`: " in message
    assert FILES[text] in message


SETTINGS = {
    "[": "no TOML",
    "a = 1": "unknown key `a`",
    "fields = 3": "[fields] has columns by fields",
    "[fields]\nx = 3": "[fields] has columns by fields",
    "logsource = 3": "logsource is no list of tables",
    "[[logsource]]\nwhere = \"e.x = 1\"": "a [[logsource]] has none of product, category, service",
    "[[logsource]]\nproduct = 3": "`product` of [[logsource]] is not a text",
    "[[logsource]]\nprodct = \"x\"": "`prodct` of [[logsource]] is not a text",
    "[[logsource]]\nproduct = \"x\"\nwhere = \"f.x = 1\"": "`where` of [[logsource]]: unknown variable `f`",
    "[[logsource]]\nproduct = \"x\"\nwhere = \"e.x = 1 WITHIN 5\"": "more than conditions on one event",
    "[[logsource]]\nproduct = \"x\"\nwhere = \"[x]\"": "more than conditions on one event",
    "[[logsource]]\nproduct = \"x\"\nwhere = \"e.x = 1 OUTPUT LONGEST\"": "",
}  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_mistake_in_the_settings_stops_all_sigma_rules(settings: str) -> None:
    text = f"{HEAD}detection: {{s: {{f: 1}}, condition: s}}\n"
    (message,) = problems(text, settings)
    assert SETTINGS[settings] in message
    assert message.startswith("`rules/x.yml`: ")


def test_a_folder_that_is_read_again_says_the_same() -> None:
    text = f"{HEAD}detection: {{s: [word], condition: s}}\n"
    first = problems(text)
    assert problems(text) == first


def test_rules_of_one_name_are_not_told_apart() -> None:
    again = BASES + BASES.split("---\n", maxsplit=1)[0].replace("title: a", "title: d") + "---\n"
    (first, second) = problems(f"{again}title: t\ncorrelation: {{type: temporal, rules: [ra, rb], timespan: 1m}}\n")
    assert "it refers to `ra`, and 2 rules have this name or id" in first
    assert "it refers to `ra`, and 2 rules have" in second


def test_the_rules_of_a_correlation_give_alerts_if_it_says_so() -> None:
    correlation = "title: t\ncorrelation: {type: temporal, rules: [ra, rb], timespan: 1m, generate: %s}\n"
    bases = BASES.split("title: c", maxsplit=1)[0]
    for generate, names in (("false", ["t"]), ("true", ["a", "b", "t"])):
        readings = read_sigma_rules({"x.yml": bases + correlation % generate}, None)
        assert [reading.name for reading in readings if not isinstance(reading, RuleProblem)] == names


@pytest.mark.parametrize("mistake", ["timespan: 60", "timespan: 1m, group_by: [f]", "timespan: 1m, timespan: 2m"])
def test_the_rules_of_a_correlation_that_is_refused_give_no_alerts_either(mistake: str) -> None:
    bases = BASES.split("title: c", maxsplit=1)[0]
    correlation = f"title: t\ncorrelation: {{type: event_count, rules: [ra], condition: {{gte: 2}}, {mistake}}}\n"
    readings = read_sigma_rules({"x.yml": bases + correlation}, None)
    assert [reading.name for reading in readings if not isinstance(reading, RuleProblem)] == ["b"]
    assert [isinstance(reading, RuleProblem) for reading in readings] == [False, True]


def test_a_key_that_is_there_twice_refuses_its_document_alone() -> None:
    text = f"{HEAD}detection: {{s: {{f: 1, f: 2}}, condition: s}}\n---\n"
    (message,) = problems(text + BASES.split("---\n", maxsplit=1)[0])
    assert message.startswith("rule `t` in `rules/x.yml`: the key `f` is there twice")


def test_a_merge_is_no_key_that_is_there_twice() -> None:
    text = f"{HEAD}detection: {{a: &a {{f: 1, g: 1}}, s: {{<<: *a, f: 2}}, t: {{<<: *a, g: 2}}, condition: s or t}}\n"
    assert problems(text) == []


def test_what_people_write_besides_decides_nothing() -> None:
    text = f"{HEAD}id: 17\nstatus: good\ndate: 2024/13/41\nreferences: here\nauthor: [x]\ntags: [plain, a.b, plain]\n"
    readings = read_sigma_rules({"x.yml": f"{text}detection: {{s: {{f: 1}}, condition: s}}\n"}, None)
    assert [getattr(reading, "tags", str(reading)) for reading in readings] == [("plain", "a.b")]
