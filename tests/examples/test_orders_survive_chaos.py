"""What a chaos test in your own repository looks like: copy it, change it, run it with ``pytest -m chaos``."""

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.checkers import Delivery, Ownership, Progress
from fencepost.faults import Kill, Pause
from fencepost.targets import one_member
from fencepost.workloads import PollLoop

SCENARIO = Scenario(
    name="a member is a zombie, and another one is killed",
    topics=[Topic("orders", partitions=12)],
    group=Group(client="confluent-kafka", members=4, protocol="cooperative", config={"session.timeout.ms": 6000}),
    workload=PollLoop(commit="after-processing", rate_hz=2000),
    schedule=[
        at(4, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(16, Kill(), one_member(), heal_after=1),
    ],
    promises=[Delivery("at-least-once"), Ownership(of="assignment"), Progress(within_s=30)],
)


@pytest.mark.chaos
def test_no_order_is_lost(chaos):
    chaos.run(SCENARIO).must_keep_its_promises()
