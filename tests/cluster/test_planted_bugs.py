"""A member that is wrong on purpose is found out, under exactly its kind and name; a correct one, under the very same
plan, keeps its promises. Every protocol in the nightly run, one (by the date) in the quick one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from fencepost import runner
from fencepost.checkers import Commits, Delivery, Order, Ownership, Progress
from fencepost.faults import Bounce, Kill
from fencepost.model import Severity, Validity
from fencepost.scenario import PROTOCOLS, Group, Scenario, Topic
from fencepost.schedule import at
from fencepost.targets import member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SUSPECT = 1
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
PROMISES = (Delivery("at-least-once"), Order(by="key"), Ownership(of="processing"), Progress(within_s=30), Commits())

# Others come back and take partitions over, and nobody is paused: a correct member keeps even the strictest promise.
MOVES = Scenario(
    name="partitions move",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, config=SESSION),
    workload=PollLoop(rate_hz=1000, batch=100, keys=60),
    schedule=[at(1, Bounce(), member(0), heal_after=1)],
    promises=PROMISES,
    min_records=11_000,
    chaos_s=90,  # a ceiling that only a slow machine comes near
)

# Slow handlers keep the victim in the middle of a poll's records nearly all the time.
DEATH = replace(
    MOVES,
    name="a member dies at work",
    workload=PollLoop(rate_hz=600, batch=100, handler_ms=4),
    schedule=[at(2, Kill(), member(SUSPECT), heal_after=1)],
    min_records=3_000,
)

ALL = (0, 1, 2)

# bug: where it is looked for, what is planted, in whom, and exactly the kinds that it turns red
BUGS = {
    "seek-back": (MOVES, {"planted_bug": "seek-back"}, (SUSPECT,), {"rewind"}),
    "out-of-order": (MOVES, {"planted_bug": "out-of-order"}, (SUSPECT,), {"key-order"}),
    "stale-backlog": (MOVES, {"planted_bug": "stale-backlog"}, (SUSPECT,), {"processing-after-revocation"}),
    "commit-before-processing": (
        replace(DEATH, promises=(*PROMISES[:-1], Commits(order="before-processing"))),
        {"commit": "before-processing"},
        (SUSPECT,),  # all do it; who dies loses by it
        {"unseen"},
    ),
    "off-by-one": (MOVES, {"planted_bug": "off-by-one"}, ALL, {"off-by-one"}),
    "commit-ahead": (MOVES, {"planted_bug": "commit-ahead"}, (SUSPECT,), {"commit-ahead"}),
    # Offsets that are old as well as another's: the group goes back, until the owner commits again.
    "foreign-commit": (
        MOVES,
        {"planted_bug": "foreign-commit"},
        (SUSPECT,),
        {"foreign-commit", "commit-regression"},
    ),
    "late-commit": (MOVES, {"planted_bug": "late-commit"}, (SUSPECT,), {"zombie-commit", "commit-regression"}),
    # A little below the committed offset: what was done is done again.
    "wrong-start": (MOVES, {"planted_bug": "wrong-start"}, (SUSPECT,), {"wrong-start", "redelivery-below-commit"}),
}
# Who begins too low commits what it did again; whether in time to take the group back depends on when it commits.
MAY_FOLLOW = {"wrong-start": {"commit-regression"}}


def each_protocol():
    todays = date.today().toordinal() % len(PROTOCOLS)
    return [pytest.param(p, marks=[] if n == todays else [pytest.mark.slow]) for n, p in enumerate(PROTOCOLS)]


def violations(verdict):
    return [f for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]


def under(protocol, scenario):
    return replace(scenario, group=replace(scenario.group, protocol=protocol))


@pytest.mark.parametrize("protocol", each_protocol())
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_under_its_kind_and_the_member_is_named(chaos, monkeypatch, bug, protocol):
    scenario, change, planted_in, kinds = BUGS[bug]
    monkeypatch.setattr(runner, "DRAIN_S", 15.0)  # who is off by one never commits everything
    if "planted_bug" in change:
        change = {**change, "planted_in": planted_in}
    verdict = chaos.run(under(protocol, replace(scenario, workload=replace(scenario.workload, **change)))).verdict
    found = violations(verdict)
    assert kinds <= {f.kind for f in found} <= kinds | MAY_FOLLOW.get(bug, set())
    assert verdict.validity is Validity.INVALID
    blamed = {example["members"][0] for f in found for example in f.examples}
    assert {name.partition(".")[0] for name in blamed} == {f"member-{member}" for member in planted_in}


@pytest.mark.parametrize("protocol", each_protocol())
@pytest.mark.parametrize("scenario", [MOVES, DEATH], ids=lambda scenario: scenario.name)
def test_a_correct_member_keeps_its_promises_under_the_same_plan(chaos, scenario, protocol):
    chaos.run(under(protocol, scenario)).must_keep_its_promises()
