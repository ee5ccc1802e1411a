"""Load that real services have, hot keys and bursts, for members that commit after each record, or after each poll."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

from cluster.plans import SESSION, topic
from fencepost.clock import NS
from fencepost.faults import Kill, Pause
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, past_session
from fencepost.targets import member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

BURST_S = 2
RATE_HZ = 300


def scenario(commit: str, every_ms: float) -> Scenario:
    load = PollLoop(commit=commit, commit_every_ms=every_ms, rate_hz=RATE_HZ, keys=60, skew=1.2, burst_every_s=BURST_S)
    return Scenario(
        name=f"bursts of hot keys, committed {commit}, {every_ms:g} ms",
        topics=[topic("orders", 6)],
        brokers=1,
        group=Group(members=3, config=SESSION),
        workload=load,
        schedule=[
            at(1, Pause(), member(2), heal_after=past_session(1.5), expect="fenced"),
            at(14, Kill(), member(1), heal_after=1),  # while the group waits for it, nobody else's session ends
        ],
        min_records=3_000,
    )


@pytest.mark.parametrize("committing", [("after-batch", 200), ("after-processing", 0)])
def test_hot_keys_and_bursts_make_nobody_break_a_promise(chaos, committing):
    run = chaos.run(scenario(*committing))
    run.must_keep_its_promises()
    produced = pq.read_table(run.folder / "history" / "produced", columns=["tp", "sent_ns"]).to_pydict()
    shares = Counter(produced["tp"])
    assert max(shares.values()) > 3 * min(shares.values()), "one partition is hot"
    sent_ns = np.sort(produced["sent_ns"])
    apart_ns = np.diff(sent_ns)
    assert (apart_ns > BURST_S * NS / 2).sum() >= len(sent_ns) // (RATE_HZ * BURST_S) - 1, "bursts, and silence between"
