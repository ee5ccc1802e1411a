"""A correct group under plans drawn from many seeds is never accused: an alarm would be the checkers' own defect."""

from __future__ import annotations

import pytest

from fencepost.faults import BlackHole, Bounce, Kill, MoveCoordinator, Pause
from fencepost.model import Validity
from fencepost.scenario import PROTOCOLS, Group, Scenario, Topic
from fencepost.schedule import every, past_session
from fencepost.targets import coordinator, one_member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]


def everything_at_once(protocol):
    return Scenario(
        name=f"everything at once, {protocol}",
        topics=[Topic("orders", partitions=8), Topic("refunds", partitions=3)],
        group=Group(members=4, protocol=protocol, config={"session.timeout.ms": 6000}),
        workload=PollLoop(rate_hz=2000, batch=200),
        schedule=[
            every(6, MoveCoordinator(), until_s=18, required=False),
            every(7, BlackHole(), one_member(), until_s=14, heal_after=3, required=False),
            every(9, Pause(), one_member(), until_s=18, heal_after=past_session(1.2), required=False),
            every(11, Kill(), one_member(), until_s=11, heal_after=2, required=False),
            every(13, Bounce(), one_member(), until_s=13, heal_after=1, required=False),
            every(15, Pause(), coordinator(), until_s=15, heal_after=2, required=False),
        ],
        chaos_s=60,
    )


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_correct_group_is_never_accused(chaos, protocol, seed):
    run = chaos.run(everything_at_once(protocol), seed=seed)
    assert run.verdict.validity is Validity.VALID, run.verdict
