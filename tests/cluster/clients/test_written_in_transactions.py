"""Members that are given what producers write in transactions, some of which are aborted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from cluster.plans import ABORTS, under
from fencepost import Group
from fencepost.checkers import Commits, Delivery, Order, Progress
from fencepost.faults import Bounce
from fencepost.history import SendOutcome
from fencepost.model.clients import MemberSpec
from fencepost.model.settings import PROTOCOLS
from fencepost.schedule.entries import at
from fencepost.targets import member

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_aborted_is_written_and_is_no_loss(chaos, protocol):
    moves = replace(ABORTS, schedule=[at(1, Bounce(), member(0), heal_after=1)])
    run = chaos.run(under(protocol, moves))
    run.must_keep_its_promises()
    history = run.folder / "history"
    produced = pq.read_table(history / "produced", columns=["tp", "writer", "seq", "outcome"]).to_pandas()
    counts = produced.outcome.value_counts()
    assert counts[SendOutcome.OK] > 2 * counts[SendOutcome.ABORTED] > 0, "each fourth transaction was aborted"
    visible = pq.read_table(history / "log", columns=["tp", "offset", "writer", "seq"]).to_pandas()
    aborted = produced[produced.outcome == SendOutcome.ABORTED]
    assert visible.merge(aborted, on=["tp", "writer", "seq"]).empty
    holes = sum(int((np.diff(np.sort(part.offset)) - 1).sum()) for _, part in visible.groupby("tp"))
    assert holes > len(aborted) * 0.8, "the log holds them, where nobody sees them"


def test_nobody_is_given_what_was_aborted_whatever_the_default_of_a_client(chaos):
    """That of two of these is to read what is not committed, too."""
    clients = ("kafka-python", "aiokafka", "confluent-kafka")
    group = Group([MemberSpec(client=client) for client in clients], protocol="eager", config=ABORTS.group.config)
    promises = (Delivery("at-least-once"), Order(by="key"), Progress(within_s=30), Commits())
    run = chaos.run(replace(ABORTS, name="aborted, three clients", group=group, promises=promises))
    run.must_keep_its_promises()
    events = pq.read_table(run.folder / "history" / "events.parquet").to_pylist()
    reported = [json.loads(e["detail"]) for e in events if e["kind"] == "started" and e["actor"].startswith("member-")]
    assert {each["client"]: each["config"]["isolation.level"] for each in reported} == dict.fromkeys(
        clients, "read_committed"
    )
    delivered = pq.read_table(run.folder / "history" / "delivered", columns=["tp"])
    assert delivered.num_rows > 1000
