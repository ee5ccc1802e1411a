"""The registry of findings: each kind has all that a kind has, and former names of kinds are still understood."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from fencepost.checkers import faults, group_rules, judge, oracle, promises
from fencepost.checkers.explanations import SENTENCES
from fencepost.checkers.tables import PARTS
from fencepost.model import Check, Finding, Severity, Validity, Verdict, findings, serialization
from fencepost.model.findings import FINDINGS, FORMER, FindingKind, kinds_of, usual_severity

# The checks that are always made find these themselves: no rule does, and no anomaly is put into words.
OF_CHECKS = {*faults.KINDS, judge.KIND_OF_FILES}
RULES = {kind for kinds in {**oracle.RULES, **group_rules.RULES}.values() for kind in kinds}
PROMISES = {serialization.snake(name): getattr(promises, name) for name in promises.__all__}


def test_every_kind_has_a_rule_and_every_rule_reports_kinds_of_the_registry() -> None:
    assert FINDINGS.keys() == RULES | OF_CHECKS


def test_every_kind_has_one_sentence() -> None:
    assert SENTENCES.keys() == FINDINGS.keys() - OF_CHECKS
    functions = [name for name, kind in FINDINGS.items() if not kind.sentence and name not in OF_CHECKS]
    assert len(functions) + sum(bool(kind.sentence) for kind in FINDINGS.values()) == len(SENTENCES)


@pytest.mark.parametrize("kind", FINDINGS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_of_checks_that_are_there_and_needs_parts_that_are_there(kind: FindingKind) -> None:
    promised = {check for check in kind.checks if check not in judge.ALWAYS}
    assert kind.checks
    assert promised <= PROMISES.keys()
    needed = [needs for needs in (kind.needs, kind.needs_of_black_boxes, kind.needs_by_effect) if needs]
    assert bool(needed) == bool(promised), "what a promise judges is certain or not by the evidence that it needs"
    assert all(needs.of_all | needs.of_members <= set(PARTS) for needs in needed)
    assert kind.meaning.endswith(".")
    assert kind.entry.startswith(kind.meaning[:-1])


@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_speaks_of_the_kinds_that_the_registry_gives_it(name: str) -> None:
    assert PROMISES[name].kinds == kinds_of(name) != {}


def test_the_severity_of_a_kind_is_that_of_the_registry_unless_it_is_excused() -> None:
    assert {kind: usual_severity(kind, "") for kind in ("rewind", "lost-reported-as-revoked")} == {
        "rewind": "violation",
        "lost-reported-as-revoked": "note",
    }
    assert usual_severity("rewind", "declared act: reset") == "permitted"


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        ("lost-write", "and it is not in the log at the audit."),
        ("aborted-read", "of an aborted transaction (Jepsen: G1a)."),
        ("rewind", "an earlier offset (Jepsen: nonmonotonic-poll; inside one poll, int-nonmonotonic-poll)."),
        ("poll-skip", "visible in the log (Jepsen: the same; inside one poll, int-poll-skip)."),
    ],
)
def test_the_glossary_has_jepsens_name_where_that_is_another_one(kind: str, entry: str) -> None:
    assert FINDINGS[kind].entry.endswith(entry)


def test_former_names_are_no_names_of_today() -> None:
    assert dict(FORMER) == {
        "callback-ledger": "callback-imbalance",
        "lost-told-as-revoked": "lost-reported-as-revoked",
        "fenced-and-carried-on": "work-after-fencing",
        "collateral-stop": "collateral-stall",
        "stale-backlog": "work-after-reassignment",
    }
    assert not FORMER.keys() & FINDINGS.keys()


@pytest.mark.parametrize(("former", "today"), FORMER.items())
def test_a_stored_verdict_with_a_former_name_has_the_name_of_today(
    former: str, today: str, caplog: pytest.LogCaptureFixture
) -> None:
    check = Check("ownership", "", Validity.INVALID, 1, "", (Finding(today, Severity.VIOLATION, 3),))
    verdict = Verdict("s", 1, Validity.INVALID, (check,), unjudged={today: "nobody saw it"})
    stored = replace(
        verdict,
        checks=(replace(check, findings=(replace(check.findings[0], kind=former),)),),
        unjudged={former: "nobody saw it"},
    ).to_json()
    with caplog.at_level(logging.WARNING):
        assert Verdict.from_json(stored) == verdict
    assert [record.getMessage() for record in caplog.records] == [
        f"the kind of finding {former!r} is now called {today!r}: use the new name"
    ]
    caplog.clear()
    assert Verdict.from_json(verdict.to_json()) == verdict
    assert not caplog.records


def test_a_kind_of_nobody_is_read_as_it_is() -> None:
    assert findings.renamed(["something-new", "rewind"]) == {}
