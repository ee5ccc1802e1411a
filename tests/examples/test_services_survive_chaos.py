"""Chaos tests of three services as they are in production, in ``apps``. None of them knows of Fencepost."""

import sqlite3
import sys
from dataclasses import replace

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.checkers import Commits, Delivery, Effects, Ownership, Progress
from fencepost.errors import BrokenPromises
from fencepost.faults import Bounce, Kill, Pause
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.usefixtures("shop_database")
PROMISES = [Delivery("at-least-once"), Ownership(of="assignment"), Commits(), Progress(within_s=30)]
ZOMBIE = at(1, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced")
GROUP = Group(
    command=[sys.executable, "-m", "parcels.printer"],
    members=2,
    protocol="eager",
    config={"session.timeout.ms": 6000},
)
PARCELS = Scenario(
    name="labels by a pool of threads, while a member is a zombie, one is deployed, and one is killed",
    topics=[Topic("orders", partitions=4, replication_factor=1)],
    brokers=1,  # no fault hits one
    group=GROUP,
    workload=OwnProgram("effect", "parcels.printed:printed", payload="shop.fakes:order", rate_hz=100),
    schedule=[ZOMBIE, at(13, Bounce(), one_member(), heal_after=1), at(17, Kill(), one_member(), heal_after=1)],
    promises=[*PROMISES, Effects("at-least-once")],
    min_records=500,
)
INVOICES = replace(
    PARCELS,
    name="invoices by FastStream, while a member is a zombie, and while one is deployed",
    group=replace(GROUP, command=[sys.executable, "-m", "invoices.service"], client="aiokafka"),
    workload=OwnProgram(payload="shop.fakes:order", rate_hz=60),  # it handles one after the other
    schedule=PARCELS.schedule[:2],
    promises=PROMISES,
)
LEDGER = replace(
    PARCELS,
    name="batches and a database, while a member is a zombie, and while one is killed",
    group=replace(GROUP, command=[sys.executable, "-m", "ledger.batches"], client="kafka-python"),
    workload=OwnProgram(processed="commit", payload="shop.fakes:order", rate_hz=200),
    schedule=[ZOMBIE, at(13, Kill(), one_member(), heal_after=1)],
    promises=PROMISES,
)


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("scenario", "table"),
    [
        (INVOICES, "invoices"),
        pytest.param(PARCELS, "labels", marks=pytest.mark.slow),
        pytest.param(LEDGER, "bookings", marks=pytest.mark.slow),
    ],
    ids=["faststream", "threads", "batches"],
)
def test_a_service_keeps_its_promises(chaos, shop_database, scenario, table):
    chaos.run(scenario).must_keep_its_promises()
    with sqlite3.connect(shop_database) as written:
        (count,) = written.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert count >= scenario.min_records


@pytest.mark.slow
@pytest.mark.chaos
def test_threads_that_commit_what_they_finish_are_named(chaos):
    assert broken(chaos, "--as-finished", PARCELS.schedule[:2]) & {"commit-regression", "zombie-commit"}


@pytest.mark.slow
@pytest.mark.chaos
def test_a_loss_inside_of_threads_is_named_by_the_labels_that_are_missing(chaos):
    kills = [at(s, Kill(), one_member(), heal_after=1) for s in (2, 8, 14)]  # the threads may have nothing in hand
    kinds = broken(chaos, "--at-once", kills, rate_hz=200)
    assert {"unseen", "missing-effect"} <= kinds


def broken(chaos, option, schedule, rate_hz=100):
    """By which violations the service breaks its promises with this option."""
    group = replace(PARCELS.group, command=[*PARCELS.group.command, option])
    workload = replace(PARCELS.workload, rate_hz=rate_hz)
    run = chaos.run(replace(PARCELS, group=group, workload=workload, schedule=schedule, chaos_s=20, drain_s=5))
    with pytest.raises(BrokenPromises):
        run.must_keep_its_promises()
    return {f.kind for check in run.verdict.checks for f in check.findings if f.severity == "violation"}
