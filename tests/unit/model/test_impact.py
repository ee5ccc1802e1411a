"""What faults do to members: classes declare it, events record it, and of old events the class is asked."""

from __future__ import annotations

import pytest

from fencepost.model import impact, serialization
from fencepost.model.impact import Impact

DECLARED = {
    "pause": {Impact.FREEZES, Impact.DELAYS},
    "stall": {Impact.DELAYS},
    "kill": {Impact.ENDS},
    "bounce": {Impact.ENDS, Impact.ASKS},
    **{name: {Impact.ASKS} for name in ("scale_in", "change_assignor", "change_protocol")},
    "duplicate_instance": {Impact.DUPLICATES, Impact.DELAYS},
}


@pytest.mark.parametrize("name", serialization.registry("fault"))
def test_the_event_of_a_former_version_has_the_impact_of_the_class_of_that_name(name: str) -> None:
    assert impact.recorded({"fault": name}) == DECLARED.get(name, set())


@pytest.mark.parametrize(
    ("detail", "found"),
    [
        ({"fault": "mine", "impact": ["ends", "delays"]}, {Impact.ENDS, Impact.DELAYS}),
        ({"fault": "kill", "impact": []}, set()),
        ({"fault": "kill", "impact": ["of a later version"]}, {"of a later version"}),
        ({"fault": "kill", "impact": None}, set()),
        ({"fault": "kill", "impact": 7}, set()),
        ({"fault": "mine"}, set()),
        ({}, set()),
        ({"fault": None}, set()),
    ],
)
def test_an_event_is_believed_before_the_name_of_its_fault(detail: dict[str, object], found: set[str]) -> None:
    assert impact.recorded(detail) == found
