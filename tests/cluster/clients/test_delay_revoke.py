"""Revocations that are put off (KIP-983): the member polls on while records of what it is to give up are worked on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cluster.plans import topic
from fencepost import Group, Scenario, at
from fencepost.checkers.tables import load
from fencepost.clock import NS
from fencepost.faults import Bounce, ScaleOut
from fencepost.history import EventKind
from fencepost.plugin import Chaos
from fencepost.targets import idle, member
from fencepost.workloads import WorkerPool

pytestmark = pytest.mark.cluster

TAKES_MS = 2500  # each record, longer than a poll may be apart from the next one without being told


def scenario(protocol: str, delay_revoke: bool) -> Scenario:
    """A third member comes, and another one goes for a while: the others give up what they are at work on."""
    return Scenario(
        name=f"partitions move, {'delayed' if delay_revoke else 'blocking'}",
        topics=[topic("orders", 6)],
        brokers=1,
        group=Group(members=2, spare=1, protocol=protocol, config={"session.timeout.ms": 10_000}),
        workload=WorkerPool(
            workers=64, lanes="key", handler_ms=TAKES_MS, rate_hz=20, keys=300, delay_revoke=delay_revoke
        ),
        schedule=[at(2, ScaleOut(joined_within_s=20), idle()), at(14, Bounce(), member(2), heal_after=1)],
        min_records=300,
    )


def gaps(run: Path) -> Iterator[dict[str, Any]]:
    """When members did not poll for a second or more, while partitions were being given up."""
    tables = load(run)
    begun_ns = min(step.begun_ns for step in tables.steps)
    for event in pq.read_table(run / "history/events.parquet").to_pylist():
        if event["kind"] == EventKind.POLL_GAP and begun_ns < event["begin_ns"] < tables.closing_ns:
            yield event


@pytest.mark.parametrize("delay_revoke", [False, True], ids=["blocking", "delayed"])
@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_a_member_polls_on_while_a_revocation_is_put_off_and_stands_still_in_a_callback_that_waits(
    chaos: Chaos, protocol: str, delay_revoke: bool
) -> None:
    run = chaos.run(scenario(protocol, delay_revoke))
    run.must_keep_its_promises()
    assert [i for i in load(run.folder).intervals if i.how == "revoked" and i.incarnation != "member-2.1"]
    longest_s = max(((gap["end_ns"] - gap["begin_ns"]) / NS for gap in gaps(run.folder)), default=0.0)
    if delay_revoke:
        assert longest_s < 0.8 * TAKES_MS / 1000, "a busy machine may take a while"
    else:
        assert longest_s
