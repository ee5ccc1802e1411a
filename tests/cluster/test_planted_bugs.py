"""A bug that is planted is found out, under exactly its kind, and by name; correct members, under the very same plan,
keep their promises. Every protocol in the nightly run, one (by the date) in the quick one."""

from __future__ import annotations

from datetime import date

import pytest

from cluster.planted import BUGS, DEATH, MOVES, STANDS, under
from fencepost import runner
from fencepost.model import Severity, Validity
from fencepost.scenario import PROTOCOLS

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def each_protocol():
    todays = date.today().toordinal() % len(PROTOCOLS)
    return [pytest.param(p, marks=[] if n == todays else [pytest.mark.slow]) for n, p in enumerate(PROTOCOLS)]


def violations(verdict):
    return [f for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]


@pytest.mark.parametrize("protocol", each_protocol())
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found_under_its_kind_and_the_member_is_named(chaos, monkeypatch, name, protocol):
    bug = BUGS[name]
    monkeypatch.setattr(runner, "DRAIN_S", 15.0)  # who is off by one never commits everything
    verdict = chaos.run(bug.scenario(protocol)).verdict
    found = violations(verdict)
    assert set(bug.kinds) <= {f.kind for f in found} <= {*bug.kinds, *bug.may_follow}
    assert verdict.validity is Validity.INVALID
    blamed = {example["members"][0] for f in found for example in f.examples}
    assert {name.partition(".")[0] for name in blamed} == {f"member-{member}" for member in bug.planted_in}


@pytest.mark.parametrize("protocol", each_protocol())
@pytest.mark.parametrize("scenario", [MOVES, DEATH, STANDS], ids=lambda scenario: scenario.name)
def test_a_correct_member_keeps_its_promises_under_the_same_plan(chaos, scenario, protocol):
    chaos.run(under(protocol, scenario)).must_keep_its_promises()
