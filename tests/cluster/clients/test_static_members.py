"""Static and dynamic members in one group: who is soon back under its name moves nothing, and everybody else does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster.plans import CALM, PROMISES, SESSION, topic
from fencepost.checkers import Rebalances
from fencepost.faults import Bounce
from fencepost.model.clients import MemberSpec
from fencepost.model.settings import PROTOCOLS
from fencepost.scenario.scenario import Group
from fencepost.schedule.entries import at
from fencepost.targets import member

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

KNOWN_BY_NAME, NAMELESS = 0, 2
MIXED = Group(members=(MemberSpec(2, static=True), MemberSpec(2)), config=SESSION)
# The group rests for 5 s before each of them goes, and after it is back.
BOUNCED = replace(
    CALM,
    name="a static and a dynamic member are soon back",
    topics=[topic("orders", 8)],
    schedule=[at(8, Bounce(), member(KNOWN_BY_NAME), heal_after=1), at(17, Bounce(), member(NAMELESS), heal_after=1)],
    promises=(*PROMISES, Rebalances(static=True)),
    min_records=26_000,
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_of_one_group_a_static_member_comes_back_to_what_it_had_and_a_dynamic_one_does_not(
    chaos: Any, protocol: str
) -> None:
    run = chaos.run(replace(BOUNCED, group=replace(MIXED, protocol=protocol)))
    run.must_keep_its_promises()
    rounds = run.verdict.rebalances
    assert not [one for one in rounds if one["step"] == 0], "nobody missed it"
    after = [one for one in rounds if one["step"] == 1]
    gone = [one for one in after if not any(name.startswith(f"member-{NAMELESS}.") for name in one["members"])]
    assert after[0] is gone[0], "it said good-bye"
    assert gone[0]["moved"] > 0
