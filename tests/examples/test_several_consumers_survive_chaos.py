"""Chaos tests of services that have several consumers: in threads of one process, and in processes that it forks."""

import sqlite3
import sys
from dataclasses import replace

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.checkers import Commits, Delivery, Ownership, Progress
from fencepost.errors import BrokenPromises
from fencepost.faults import Bounce, Kill, Pause
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.usefixtures("shop_database")
TILLS = Scenario(
    name="two threads with a consumer each, while a process is a zombie, one is deployed, and one is killed",
    topics=[Topic("orders", partitions=8, replication_factor=1)],
    brokers=1,  # no fault hits one
    group=Group(
        command=[sys.executable, "-m", "tills.threads"],
        members=2,
        protocol="eager",
        config={"session.timeout.ms": 6000},
    ),
    workload=OwnProgram(processed="commit", payload="shop.fakes:order", rate_hz=200),
    schedule=[
        at(1, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(13, Bounce(), one_member(), heal_after=1),
        at(18, Kill(), one_member(), heal_after=1),
    ],
    promises=[Delivery("at-least-once"), Ownership(of="assignment"), Commits(), Progress(within_s=30)],
    min_records=1000,
)
DISPATCH = replace(
    TILLS,
    name="two workers that are forked, while all of a service are zombies, one is deployed, and one is killed",
    group=replace(TILLS.group, command=[sys.executable, "-m", "dispatch.workers"], client="kafka-python"),
)
EACH = ["member-0.1", "member-0b.1", "member-1.1", "member-1b.1"]


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "table"), [(TILLS, "spent"), (DISPATCH, "sent")], ids=["threads", "workers"])
def test_a_service_keeps_its_promises(chaos, shop_database, scenario, table):
    run = chaos.run(scenario)
    run.must_keep_its_promises()
    assert run.verdict.measures["members"] == 8  # two processes with two each, and two that came after them
    with sqlite3.connect(shop_database) as written:
        (count,) = written.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert count >= scenario.min_records


def accused(chaos, scenario, option):
    """Whom the report of a wrong program names first, by the kind of what it did; nobody, where requests around a
    rebalance do not identify the member for certain."""
    command = [*scenario.group.command, option]
    asked = replace(scenario, group=replace(scenario.group, command=command), schedule=[], chaos_s=10, drain_s=5)
    run = chaos.run(asked)
    with pytest.raises(BrokenPromises):
        run.must_keep_its_promises()
    found = [f for check in run.verdict.checks for f in check.findings if f.severity == "violation"]
    return {f.kind: {name for example in f.examples for name in example["members"][:1]} for f in found}


@pytest.mark.slow
@pytest.mark.chaos
def test_a_thread_that_commits_what_another_one_owns_is_named(chaos):
    assert accused(chaos, TILLS, "--first-commits")["foreign-commit"] <= {"member-0.1", "member-1.1"}


@pytest.mark.slow
@pytest.mark.chaos
def test_a_worker_that_commits_what_it_has_not_got_is_named(chaos):
    assert accused(chaos, DISPATCH, "--whole-batches")["commit-ahead"] <= set(EACH)
