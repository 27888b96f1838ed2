"""Two dozen correlations in the style of those that people share, with the alerts that they are to give."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

import acep
from acep.alerting.rules import Rules

STREAM = """\
ts,product,service,category,EventID,User,Ip,Host,SubjectUser,TargetUser,Image,CommandLine,DestinationIp,DestinationPort,Bytes,eventName,userIdentity.arn,errorCode
0,windows,security,,4625,ann,10.0.0.1,srv1
10,windows,security,,4625,ann,10.0.0.1,srv1
20,windows,security,,4625,bob,10.0.0.1,srv1
30,windows,security,,4625,ann,10.0.0.1,srv1
40,windows,security,,4624,ann,10.0.0.1,srv1
50,windows,security,,4625,cid,10.0.0.2,srv1
60,windows,security,,4625,dan,10.0.0.2,srv1
400,windows,security,,4625,ann,10.0.0.1,srv1
410,windows,security,,4720,,,srv1,ann,eve
420,windows,security,,4732,,,srv1,ann,eve
430,windows,security,,4726,,,srv1,ann,eve
500,windows,,process_creation,,ann,,srv1,,,C:\\Windows\\System32\\whoami.exe,whoami /all
505,windows,,process_creation,,ann,,srv1,,,C:\\Windows\\System32\\NET.EXE,net user /domain
510,windows,,process_creation,,ann,,srv1,,,C:\\Windows\\System32\\ipconfig.exe,ipconfig -all & WhoAmI
520,windows,,process_creation,,bob,,srv2,,,C:\\Windows\\System32\\net.exe,net group /domain
600,linux,,network_connection,,,,srv1,,,,,8.8.8.8,53,100
601,linux,,network_connection,,,,srv1,,,,,8.8.4.4,443,900
602,linux,,network_connection,,,,srv1,,,,,1.1.1.1,22,7
603,linux,,network_connection,,,,srv1,,,,,10.0.0.9,445,7
700,aws,cloudtrail,,,,,,,,,,,,,CreateUser,arn1
710,aws,cloudtrail,,,,,,,,,,,,,CreateLoginProfile,arn1
720,aws,cloudtrail,,,,,,,,,,,,,AttachUserPolicy,arn1
730,aws,cloudtrail,,,,,,,,,,,,,DeleteTrail,arn2,AccessDenied
740,aws,cloudtrail,,,,,,,,,,,,,StopLogging,arn2,AccessDenied
750,aws,cloudtrail,,,,,,,,,,,,,DeleteTrail,arn2
760,windows,security,,4625,srv1$,10.0.0.1,srv1
"""
INTEGERS = ("ts", "EventID", "DestinationPort", "Bytes")

ALERTS = {
    "Guessed by user": [(0, 1, 3)],
    "Guessed from an address": [(0, 1, 2)],
    "Twice in ten seconds": [(0, 1)],
    "Spray": [(0, 2), (5, 6)],
    "Port scan": [(15, 16, 17, 18)],
    "Guessed and in": [(0, 4)],
    "Failure and logon": [(0, 4)],
    "Account for an hour": [(8, 9, 10)],
    "Account made and unmade": [(8, 10)],
    "Account unmade and made": [],
    "Discovery": [(11, 12, 13)],
    "Discovery in one command": [(13,)],
    "Discovery in order": [(11, 13)],
    "Failure and account": [(7, 8)],
    "Console user": [(19, 20, 21)],
    "Denied twice": [(22, 23)],
    "Trail gone": [(24,)],
    "Outside addresses": [(15, 16, 17)],
    "Uploads": [(15, 16)],
    "Accounts changed": [(8, 10)],
    "Net by two": [(12, 14)],
    "All of it": [(11, 13)],
    "Domain twice": [(12, 14)],
}


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    folder = tmp_path_factory.mktemp("rules")
    shutil.copy(Path(__file__).with_name("correlations.yml"), folder)
    return acep.rules(folder, strict=True)


def columns() -> dict[str, list[object]]:
    rows = [*csv.DictReader(io.StringIO(STREAM))]
    table: dict[str, list[object]] = {
        name: [(int(row[name]) if name in INTEGERS else row[name]) if row[name] else None for row in rows]
        for name in rows[0]
    }
    return table | {"type": ["event"] * len(rows)}


def test_each_rule_gives_its_alerts(rules: Rules) -> None:
    matches = rules.match(columns(), unit="s", strict=True)
    places = {
        name: [tuple(sorted(place for places in match.bindings.values() for place in places)) for match in of_rule]
        for name, of_rule in matches.items()
    }
    assert places == ALERTS


def test_what_alerts_say(rules: Rules) -> None:
    rule = rules.rule("Guessed by user")
    assert (rule.severity, rule.tags) == ("high", ("attack.t1110", "attack.credential-access"))
    assert rule.description == 'Three failures: a "guess".'
    alerts = rules.alerts(rules.match(columns(), unit="s")).to_pylist()
    fields = {alert["rule"]: alert["fields"] for alert in alerts}
    assert fields["Guessed and in"] == '{"failed_logon.Ip": "10.0.0.1", "logon.Ip": "10.0.0.1"}'
    assert fields["Failure and account"] == '{"failed_logon.User": "ann", "account_created.SubjectUser": "ann"}'


def test_the_text_of_a_rule_is_that_rule(rules: Rules, tmp_path: Path) -> None:
    """What `acep sigma` shows can be saved as a file, without pySigma."""
    for number, rule in enumerate(rules.rules):
        (tmp_path / f"{number}.rule").write_text(rule.text)
    saved = acep.rules(tmp_path, strict=True)
    assert [(rule.name, rule.query.where, rule.fields) for rule in saved.rules] == [
        (rule.name, rule.query.where, rule.fields) for rule in rules.rules
    ]
