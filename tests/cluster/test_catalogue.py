"""The scenarios that come with Fencepost show what they say: the kinds of findings that they name, or else nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cluster.plans import one_in
from fencepost import catalogue
from fencepost.model import Severity, Validity
from fencepost.reports.glossary import GLOSSARY

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

A_DAY = 3


@pytest.mark.parametrize("name", one_in(math.ceil(len(catalogue.built_in()) / A_DAY), catalogue.built_in()))
def test_a_built_in_scenario_shows_what_it_says(chaos: Any, name: str) -> None:
    scenario = catalogue.load(name)
    verdict = chaos.run(scenario).verdict
    named = {kind for kind in GLOSSARY if f"`{kind}`" in scenario.about}
    findings = [finding for check in verdict.checks for finding in check.findings]
    assert named <= {finding.kind for finding in findings if finding.severity is Severity.VIOLATION}
    assert verdict.validity is (Validity.INVALID if named else Validity.VALID)
