"""A chaos test of the function that handles a record, without the program around it: Fencepost's loop calls it."""

import sqlite3

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.faults import Kill, Pause
from fencepost.targets import one_member
from fencepost.workloads import PollLoop

SCENARIO = Scenario(
    name="orders are written, while a member is a zombie, and while one dies",
    topics=[Topic("orders", partitions=12)],
    group=Group(members=3, config={"session.timeout.ms": 6000}),
    workload=PollLoop(handler="shop.handler:write", payload="shop.fakes:order", rate_hz=500),
    schedule=[
        at(2, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(15, Kill(), one_member(), heal_after=1),
    ],
)


@pytest.mark.slow
@pytest.mark.chaos
def test_every_order_is_in_the_database(chaos, shop_database):
    run = chaos.run(SCENARIO)
    run.must_keep_its_promises()
    with sqlite3.connect(shop_database) as database:
        (count,) = database.execute("SELECT count(*) FROM orders").fetchone()
    assert count >= SCENARIO.min_records
