"""Chaos tests of services that are judged by their effects alone: by the rows that ``apps/shop`` leaves in a database,
and by the records that ``apps/receipts`` leaves in a topic. Neither knows of Fencepost."""

import sys
from dataclasses import replace

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.errors import BrokenPromises
from fencepost.faults import Kill, Pause
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.usefixtures("shop_database")
SHOP = Scenario(
    name="orders in a database, while a member is a zombie, and while one is killed",
    topics=[Topic("orders", partitions=6, replication_factor=1)],
    brokers=1,  # no fault hits one
    group=Group(command=[sys.executable, "-m", "shop.consumer"], members=3, config={"session.timeout.ms": 6000}),
    workload=OwnProgram(processed="effect", effects="shop.fakes:written", payload="shop.fakes:order", rate_hz=300),
    schedule=[
        at(2, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(15, Kill(), one_member(), heal_after=1),
    ],
)
RECEIPTS = replace(
    SHOP,
    name="receipts in a topic, while members are killed",
    group=replace(SHOP.group, command=[sys.executable, "-m", "receipts.service"], members=2, protocol="eager"),
    workload=replace(SHOP.workload, effects="receipts.sent:receipts"),
    schedule=[at(2, Kill(), one_member(), heal_after=1), at(5, Kill(), one_member(), heal_after=1)],
    broker_config={"auto.create.topics.enable": True},
)


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize("scenario", [SHOP, RECEIPTS], ids=["table", "topic"])
def test_every_order_has_its_effect(chaos, scenario):
    run = chaos.run(scenario)
    run.must_keep_its_promises()
    assert "effects" in {check.check for check in run.verdict.checks}


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.parametrize(
    ("scenario", "option"),
    [(replace(SHOP, schedule=()), "--without-free"), (RECEIPTS, "--unflushed")],
    ids=["table", "topic"],
)
def test_what_is_committed_without_an_effect_is_lost(chaos, scenario, option):
    group = replace(scenario.group, command=[*scenario.group.command, option])
    run = chaos.run(replace(scenario, group=group, drain_s=5))
    with pytest.raises(BrokenPromises):
        run.must_keep_its_promises()
    kinds = {f.kind for check in run.verdict.checks for f in check.findings if f.severity == "violation"}
    assert {"unseen", "missing-effect"} <= kinds <= {"unseen", "missing-effect", "commit-ahead"}
