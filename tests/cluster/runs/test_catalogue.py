"""The scenarios that come with Fencepost show what they say: the kinds of findings that they name, or else nothing; and
the errors that they name were answers in that run, of which the verdict tells. What no finding says, the advice does.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fencepost.model import Severity, Validity
from fencepost.reports import folder
from fencepost.reports.glossary import GLOSSARY
from fencepost.reports.lint import advise
from fencepost.scenario import loader
from fencepost_member.recording.events import read

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

UNLOGGED = {"PRODUCER_FENCED"}  # the log of requests has those of consumers
ERROR = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")  # as Kafka names them
ADVICE = {
    "round_robin_with_cooperative": "as long as it contains roundrobin, rebalances stop all members, and the cooper"
}


@pytest.mark.parametrize("name", loader.built_in())
def test_a_built_in_scenario_shows_what_it_says(chaos: Any, name: str) -> None:
    scenario = loader.load(name)
    run = chaos.run(scenario)
    verdict = run.verdict
    named = {kind for kind in GLOSSARY if f"`{kind}`" in scenario.about}
    findings = [finding for check in verdict.checks for finding in check.findings]
    assert named <= {finding.kind for finding in findings if finding.severity is Severity.VIOLATION}
    assert verdict.validity is (Validity.INVALID if named else Validity.VALID)
    assert ADVICE.get(name, "") in " ".join(one.sentence for one in advise(folder.read(run.folder)))
    errors = set(ERROR.findall(scenario.about))
    assert errors <= set(ERROR.findall((run.folder / "verdict.json").read_text()))
    assert errors <= set().union(*map(told, run.folder.glob("history/events/member-*.jsonl"))), "by members' clients"
    assert errors - UNLOGGED <= set(ERROR.findall((run.folder / "history/coordinator/requests.jsonl").read_text()))


def told(path: Path) -> set[str]:
    """The errors of which the client of one life of a member told."""
    return {event["error"] for event in read(path).events if event.get("error")}
