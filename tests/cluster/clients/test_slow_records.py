"""A record takes longer than ``max.poll.interval.ms``: what becomes of it, by what its member does about that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.plans import BOUNDED, PROMISES, STRICT, SUSPECT, under
from fencepost.checkers import Parked, Requeued
from fencepost.evidence.brokers.clock_conversion import MS
from fencepost.faults import Kill, Stall
from fencepost.history import EventKind
from fencepost.model import Severity
from fencepost.model.settings import PROTOCOLS
from fencepost.schedule.entries import at
from fencepost.targets import member
from fencepost.workloads import DeadLetters, PollLoop, Requeue
from fencepost_member.recording.events import read

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

INTERVAL_MS = 3000  # of BOUNDED
SLOW_S = 10.0
SLOW = replace(
    BOUNDED,
    name="a record takes too long",
    workload=PollLoop(rate_hz=300, handler_ms=2, batch=50),
    schedule=[at(1, Stall(), member(SUSPECT), heal_after=SLOW_S)],
    promises=PROMISES,
    min_records=4_000,
)


def told(run, kind):
    """What lives of the slow member told."""
    paths = sorted((run.folder / "history" / "events").glob(f"member-{SUSPECT}.*.jsonl"))
    return [event for path in paths for event in read(path).events if event["kind"] == kind]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_may_take_long_enough_keeps_its_partitions_and_does_nothing_twice(chaos, protocol):
    config = {**SLOW.group.config, "max.poll.interval.ms": 60_000}
    strict = (STRICT, *PROMISES[1:])
    run = chaos.run(under(protocol, replace(SLOW, group=replace(SLOW.group, config=config), promises=strict)))
    run.must_keep_its_promises()
    assert not told(run, EventKind.ERROR)
    (stall,) = (event for event in told(run, EventKind.STALL) if event["end_ns"])
    assert stall["end_ns"] - stall["begin_ns"] > INTERVAL_MS * MS, "the others would have been put out for it"
    assert not [one for one in run.verdict.rebalances if stall["begin_ns"] < one["begin_ns"] < stall["end_ns"]]


# With the consumer protocol this library's client leaves the group only when its program polls again.
@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_who_only_lets_the_group_rebalance_works_on_through_what_others_have_by_then(chaos, protocol):
    run = chaos.run(under(protocol, SLOW))
    assert {finding.kind for check in run.verdict.checks for finding in check.findings} >= {"processing-overlap"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_relinquishes_in_time_is_never_put_out_and_shares_nothing(chaos, protocol):
    workload = replace(SLOW.workload, deadline_ms=INTERVAL_MS / 2)
    run = chaos.run(under(protocol, replace(SLOW, workload=workload)))
    run.must_keep_its_promises()
    assert "LOCAL_MAX_POLL_EXCEEDED" not in [event["error"] for event in told(run, EventKind.ERROR)]
    left = [event["detail"]["relinquished"] for event in told(run, EventKind.SUBSCRIBED) if event["end_ns"]]
    assert len(left) > 1
    assert all(left)


PARKS = DeadLetters(rate_hz=300, handler_ms=2, batch=4, deadline_ms=500, poison_every=0)
REQUEUES = Requeue(rate_hz=300, handler_ms=2, batch=4, deadline_ms=500)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("workload", "promise"),
    [(PARKS, Parked("at-least-once")), (REQUEUES, Requeued("at-least-once"))],
    ids=["parks", "re-queues"],
)
def test_who_puts_aside_what_takes_too_long_keeps_its_partitions(chaos, workload, promise, protocol):
    run = chaos.run(under(protocol, replace(SLOW, workload=workload, promises=(*PROMISES, promise))))
    run.must_keep_its_promises()
    assert not told(run, EventKind.ERROR)
    stalls = [event["begin_ns"] for event in told(run, EventKind.STALL)]
    assert len(stalls) > 3, "one after the other"
    during = [one for one in run.verdict.rebalances if min(stalls) < one["begin_ns"] < max(stalls)]
    assert not during, "nobody had to take anything over"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("commit", ["after-processing", "transaction"])
def test_who_dies_before_it_commits_that_it_requeued_leaves_records_that_come_twice(chaos, commit, protocol):
    """Unless copies and offsets are in one transaction."""
    workload = replace(REQUEUES, commit=commit, commit_every_ms=30_000)
    schedule = [at(1, Stall(), member(SUSPECT), heal_after=4), at(9, Kill(), member(SUSPECT), heal_after=1)]
    plan = replace(SLOW, workload=workload, schedule=schedule, promises=tuple(workload.promises()))
    run = chaos.run(under(protocol, plan))
    run.must_keep_its_promises()
    findings = [finding for check in run.verdict.checks for finding in check.findings]
    twice = {finding.severity for finding in findings if finding.kind in ("requeue-twice", "requeued-and-done")}
    assert twice == ({Severity.PERMITTED} if commit == "after-processing" else set())


NOT_YET = """
import threading
import time

FIRST_S = {}


def handle(key, value):
    if time.monotonic() < FIRST_S.setdefault(value, time.monotonic()) + 2:
        threading.Event().wait(0.02)
        raise LookupError("what it refers to is not there yet")
"""


@pytest.mark.parametrize("commit", ["after-batch", "transaction"])
def test_what_cannot_be_processed_yet_comes_again_until_it_can_be(chaos, tmp_path, monkeypatch, commit):
    """Also what is re-queued after producers have stopped: that is waited for."""
    (tmp_path / "yet.py").write_text(NOT_YET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    workload = Requeue(commit=commit, handler="yet:handle", deadline_ms=0, rate_hz=30, batch=10)
    plan = replace(SLOW, workload=workload, schedule=[], promises=tuple(workload.promises()), min_records=1_000)
    run = chaos.run(plan)
    run.must_keep_its_promises()
    order = [finding for check in run.verdict.checks for finding in check.findings]
    assert {(finding.kind, finding.severity) for finding in order} <= {("per-entity-order", Severity.PERMITTED)}
