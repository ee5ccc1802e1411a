"""A chaos test of a service as it is in production: ``apps/shop``, which knows nothing of Fencepost."""

import sqlite3
import sys
from dataclasses import replace

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.checkers import Commits, Delivery, Ownership, Progress
from fencepost.errors import BrokenPromises
from fencepost.faults import Bounce, MoveCoordinator, Pause
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.usefixtures("shop_database")
SERVICE = [sys.executable, "-m", "shop.consumer"]
SCENARIO = Scenario(
    name="the order service, while a member is a zombie, and while one is deployed",
    topics=[Topic("orders", partitions=12)],
    group=Group(command=SERVICE, members=3, config={"session.timeout.ms": 6000}),
    workload=OwnProgram(processed="commit", payload="shop.fakes:order", rate_hz=500),
    schedule=[
        at(2, MoveCoordinator()),
        at(3, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(16, Bounce(), one_member(), heal_after=1),  # as a deploy does it: all others take over, and give back
    ],
    promises=[Delivery("at-least-once"), Ownership(of="assignment"), Commits(), Progress(within_s=30)],
)


@pytest.mark.chaos
def test_the_order_service_keeps_its_promises(chaos, shop_database):
    run = chaos.run(SCENARIO)
    run.must_keep_its_promises()
    with sqlite3.connect(shop_database) as database:
        (count,) = database.execute("SELECT count(*) FROM orders").fetchone()
    assert count >= SCENARIO.min_records


@pytest.mark.slow
@pytest.mark.chaos
def test_as_it_was_written_at_first_it_commits_what_it_no_longer_owns(chaos):
    first = replace(SCENARIO, group=replace(SCENARIO.group, command=[*SERVICE, "--keep-batch"]), drain_s=10)
    run = chaos.run(first)
    with pytest.raises(BrokenPromises):
        run.must_keep_its_promises()
    kinds = {f.kind for check in run.verdict.checks for f in check.findings if f.severity == "violation"}
    assert kinds & {"zombie-commit", "commit-regression"}
